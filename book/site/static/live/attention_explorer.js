// Chapters 7, 9, 10: recorded weights of the book's own models; pick a head and a place, silence the head.
(() => {
  const { define, html, svg, text, rect, each, colour, shade, number, quoted, list } = window.TformerLive;
  const { sum } = window.TformerMaths;
  const MAPS = window.TformerMaps;
  const NAMES = [["BERT", "BERT"], ["translator", "Translator"], ["ViT", "Vision transformer"]];
  const is = ({ block, head, mean }, m, h) => !mean && block === m && head === h;
  const first = ({ model, item }, key, place = 0) => MAPS[model][Number(item)].answers[key][place][0][0];
  const turns = (state) => state.silent && first(state, `${state.block}:${state.head}`) !== first(state, "");
  const PLANS = {
    BERT: {
      tasks: [
        ["Each small square is a head: a row for each reader. Find the head that reads the token before.", (state) => is(state, 0, 3)],
        ["Now the head that reads the token after.", (state) => is(state, 0, 1)],
        ["Guess: without which of the eight heads does “of” lose most? Silence it.",
          (state) => state.silent && state.item === "0" && state.block === 0 && state.head === 3],
      ],
      learned: "The two heads that are easiest to describe are also those on which this answer depends most.",
    },
    translator: {
      tasks: [
        ["“Taipeh” is written in five pieces. Find the head in which all five read “Taiwan”.", (state) => state.item === "0" && is(state, 1, 3)],
        ["Silence a head and choose piece after piece. Which answer changes?",
          (state) => state.item === "0" && state.silent && state.row === 6],
      ],
      learned: "Only one answer of eleven changes, and every head changes it: the model was unsure there. That says little about the head.",
    },
    ViT: {
      tasks: [
        ["The model takes this 7 for a 2. Find a head whose silence makes it a 7.", (state) => state.item === "0" && turns(state)],
        ["Take another digit. Find a head whose silence changes the answer there.", (state) => state.item !== "0" && turns(state)],
      ],
      learned: "Frames show where a head looks. What it adds they do not show: heads with clear frames may matter little, and heads with none much.",
    },
  };
  const percent = (p) => `${number(100 * p, 0)}%`;
  const share = (p) => (p > 0 && p < 0.005 ? "less than 1%" : percent(p));
  const word = (w) => quoted(w.replace("␣", "")); // the sign says that a word begins
  const seen = (w) => (w.startsWith("␣") ? [html("span", { "aria-hidden": "true" }, "␣"), w.slice(1)] : w);
  define("attention-explorer", {
    state: { model: "BERT", item: "0", block: 1, head: 0, row: 99, key: -1, mean: false, silent: false },
    plan: ({ model }) => PLANS[model],
    build(ui) {
      const asks = html("p", { class: "tl-words", role: "group", "aria-label": "Who reads: choose a token" });
      const reads = html("p", { class: "tl-words", role: "group", "aria-label": "What is read: choose a token to be told its weight" });
      const patches = ui.picture("A digit in sixteen patches; the more the class token reads of a patch, the stronger its frame. Choose a patch to be told its weight.");
      const picture = ui.stage.lastElementChild;
      picture.setAttribute("role", "group");
      // Of what is read one is in the order of the tab key; arrows go on from there. A tap or the focus chooses.
      const walk = (event) => {
        const by = { ArrowRight: 1, ArrowDown: picture.contains(event.target) ? 4 : 1, ArrowLeft: -1, ArrowUp: picture.contains(event.target) ? -4 : -1 }[event.key];
        const next = by && event.currentTarget.querySelector(`[data-key="${Number(event.target.dataset.key) + by}"]`);
        if (next) next.focus();
        if (by) event.preventDefault();
      };
      for (const group of [reads, picture]) {
        group.addEventListener("keydown", walk);
        for (const kind of ["focusin", "click"]) {
          group.addEventListener(kind, (event) => {
            const { key } = event.target.closest("[data-key]")?.dataset ?? {};
            if (key != null && Number(key) !== ui.state.key) ui.change({ key: Number(key) });
          });
        }
      }
      const heads = html("div", { class: "tl-heads", role: "group", "aria-label": "Heads: which one is shown" });
      const models = ui.buttons("model", "Model", NAMES, (model) => ({ model, item: "0", row: 99, key: -1, block: 0, head: 0, silent: false, mean: false }));
      const item = ui.choice("item", "Example", ["0", "1", "2", "3", "4"].map((i) => [i, i]), (chosen) => ({ item: chosen, row: 99, key: -1 }));
      item.style.flexBasis = "100%";
      ui.toggle("silent", "Silence this head");
      ui.toggle("mean", "Show the mean of all heads of the block");
      ui.panel.classList.add("tl-short");
      const words = html("div", { class: "tl-side" }, html("p", { class: "tl-label" }, "Who reads:"), asks,
        html("p", { class: "tl-label" }, "What is read (stronger colour: more):"), reads);
      ui.stage.prepend(models, html("div", { class: "tl-halves" }, words, picture, html("div", { class: "tl-rest" }, html("p", { class: "tl-label" }, "Heads (block.head):"), heads)));
      const answers = ui.picture("The first three answers of the model as bars, with all heads and, where a head is silent, without it.");
      // What a head reads, small: for each reader a row, or the patches of an image.
      const sketch = (canvas, rows) => {
        [canvas.width, canvas.height] = [rows[0].length, rows.length];
        const pen = canvas.getContext("2d");
        pen.fillStyle = getComputedStyle(ui).getPropertyValue("--tformer-weights") || "#CC79A7";
        const most = Math.max(...rows.flat());
        rows.forEach((row, y) => row.forEach((a, x) => {
          pen.globalAlpha = a / most;
          pen.fillRect(x, y, 1, 1);
        }));
      };
      let [shape, drawn] = ["", null];
      return (state, width) => {
        const model = MAPS[state.model] ?? MAPS.BERT;
        const options = item.querySelector("select");
        const example = model[Number(state.item)] ?? model[0];
        const { weights } = example;
        const [M, H] = [weights.length, weights[0].length];
        const m = Math.min(M - 1, Math.max(0, Math.round(state.block)));
        const h = Math.min(H - 1, Math.max(0, Math.round(state.head)));
        const T = weights[0][0].length;
        const row = state.row >= 0 && state.row < T ? Math.round(state.row) : example.asked[0];
        if (shape !== state.model) { // names of examples and heads are those of the model
          options.replaceChildren(...model.map((one, i) => html("option", { value: String(i) }, one.pixels ? `digit ${i + 1}: a ${one.true}` : one.reads.slice(0, 12).join(" ").replaceAll(" ##", ""))));
          options.value = String(model.indexOf(example));
          heads.replaceChildren(...weights.map((block, b) => html("div", {}, block.map((_, n) => html("button", {
            type: "button", "data-head": `${b}:${n}`, "aria-label": `Block ${b + 1}, head ${n + 1}`, onclick: () => ui.change({ block: b, head: n }) },
          html("canvas", { "aria-hidden": "true" }), `${b + 1}.${n + 1}`)))));
        }
        if (shape !== state.model || drawn !== example) {
          [shape, drawn] = [state.model, example];
          const square = ([row]) => [0, 4, 8, 12].map((at) => row.slice(at + 1, at + 5));
          [...heads.querySelectorAll("canvas")].forEach((canvas, i) => {
            const rows = weights[Math.floor(i / H)][i % H];
            sketch(canvas, example.pixels ? square(rows) : rows);
          });
        }
        heads.classList.toggle("tl-many", H > 4);
        for (const button of heads.querySelectorAll("button")) {
          const chosen = button.dataset.head === `${m}:${h}`;
          button.setAttribute("aria-pressed", chosen);
          button.classList.toggle("tl-silent", chosen && state.silent);
        }
        const read = state.mean
          ? weights[m][0][row].map((_, s) => sum(weights[m].map((head) => head[row][s])) / H)
          : weights[m][h][row];
        const most = Math.max(...read);
        const key = state.key >= 0 && state.key < read.length ? Math.round(state.key) : -1;
        const stop = (s, first) => (s === (key < first ? first : key) ? "0" : "-1");
        const image = Boolean(example.pixels);
        words.hidden = image;
        picture.style.display = image ? "" : "none";
        if (image) {
          const side = Math.min(width, width < 480 ? 104 : 230);
          const cell = side / 28;
          const step = side / 4;
          const focused = picture.contains(document.activeElement) ? document.activeElement.dataset.key : null;
          const strong = ui.arrive("frames", read.slice(1).map((a) => a / most));
          patches(side, side,
            rect(0, 0, side, side, { fill: "#000" }),
            Array.from(example.pixels, (ink, i) => ink !== "0" && rect((i % 28) * cell, Math.floor(i / 28) * cell, cell + 0.3, cell + 0.3, { fill: "#fff", opacity: Number(ink) / 9 })),
            strong.map((opacity, s) => svg("rect", {
              x: (s % 4) * step + 3, y: Math.floor(s / 4) * step + 3, width: step - 6, height: step - 6, fill: "none",
              stroke: colour("weights"), "stroke-width": 5, opacity })),
            read.slice(1).map((a, s) => svg("rect", {
              x: (s % 4) * step + 0.5, y: Math.floor(s / 4) * step + 0.5, width: step - 1, height: step - 1, fill: "transparent", class: "tl-part",
              role: "button", tabindex: stop(s + 1, 1), "data-key": s + 1, "aria-pressed": s + 1 === key, "aria-label": `patch ${s + 1}: ${share(a)}` })));
          if (focused != null) picture.querySelector(`[data-key="${focused}"]`)?.focus();
        } else {
          each(asks, example.asks, (n) => html("button", { type: "button", "data-row": n, onclick: () => ui.change({ row: n }) }),
            (w, n) => [{ "aria-pressed": n === row }, seen(w)]);
          each(reads, example.reads, (s) => html("button", { type: "button", "data-key": s }),
            (w, s) => [{ style: shade(read[s] / most), title: percent(read[s]), tabindex: stop(s, 0), "aria-pressed": s === key },
              seen(w), html("span", { class: "tl-hidden" }, ` ${percent(read[s])}`)]);
        }
        const at = example.asked.indexOf(row);
        const before = example.answers[""][Math.max(0, at)];
        const after = example.answers[`${m}:${h}`][Math.max(0, at)];
        const where = image ? "for this digit" : state.model === "BERT" ? "in the hole" : `where it writes ${word(example.asks[example.asked[Math.max(0, at)]])}`;
        const sides = [["all heads", before], ...(state.silent ? [[`without head ${m + 1}.${h + 1}`, after]] : [])];
        const full = state.silent ? (width - 16) / 2 : width;
        const long = ui.arrive("answers", [...before, ...after].map(([, p]) => p));
        answers(width, 96, sides.map(([title, rows], i) => [
          text(i * (full + 16), 14, title, { anchor: "start", size: 13 }),
          rows.map(([answer, p], n) => [
            rect(i * (full + 16), 22 + 25 * n, full, 21, { fill: "none", stroke: "currentColor", opacity: 0.3 }),
            rect(i * (full + 16), 22 + 25 * n, full * long[3 * i + n], 21, { fill: `color-mix(in srgb, ${colour("value")} 45%, transparent)` }),
            text(i * (full + 16) + 7, 38 + 25 * n, answer, { anchor: "start", "font-weight": n ? 400 : 700 }),
            text(i * (full + 16) + full - 6, 38 + 25 * n, percent(p), { anchor: "end", size: 13 })])]));
        const name = (n) => (image ? (n ? `patch ${n} of 16` : "the class token itself") : word(example.reads[n]));
        const order = read.map((_, n) => n).sort((i, j) => read[j] - read[i]).slice(0, 3).map((n) => `${name(n)} (${percent(read[n])})`);
        const who = state.mean ? `On average the heads of block ${m + 1}` : `Head ${h + 1} of block ${m + 1}`;
        const reader = image ? "For the class token" : `For ${word(example.asks[row])}`;
        const [[plain, p], [now, q]] = [before[0], after[0]];
        const without = state.silent ? ` Without head ${m + 1}.${h + 1} the answer ${where} ${now === plain
          ? `stays “${plain}”, with ${percent(q)} instead of ${percent(p)}` : `becomes “${now}” (${percent(q)}) instead of “${plain}” (${percent(p)})`}.` : ` The answer ${where} is “${plain}” with ${percent(p)}.`;
        const chosen = key < 0 ? "" : ` ${name(key).replace(/^p/, "P")} gets ${share(read[key])}.`;
        return `${reader}: ${who} ${state.mean ? "read" : "reads"} most from ${order[0]}, then from ${list(order.slice(1))}.${chosen}${image ? " Patches are counted row by row." : ""}${without}`;
      };
    },
  });
})();
