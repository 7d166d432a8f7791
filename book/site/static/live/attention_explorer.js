// Chapters 7, 9, 10: recorded weights of the book's own models; pick a head and a place, silence the head.
(() => {
  const { define, html, svg, rect, colour, shade, number, quoted, list } = window.TformerLive;
  const { sum } = window.TformerMaths;
  const MAPS = window.TformerMaps;
  const ABOUT = {
    BERT: "BERT (chapter 7): a hole in a text",
    translator: "Translator (chapter 9): the decoder reads the source",
    ViT: "Vision transformer (chapter 10): the class token reads patches",
  };
  const percent = (p) => `${number(100 * p, 0)}%`;
  const share = (p) => (p > 0 && p < 0.005 ? "less than 1%" : percent(p));
  const word = (w) => quoted(w.replace("␣", "")); // the sign says that a word begins
  const seen = (w) => (w.startsWith("␣") ? [html("span", { "aria-hidden": "true" }, "␣"), w.slice(1)] : w);
  const said = (rows) => rows.map(([answer, p]) => `“${answer}” ${percent(p)}`).join(", ");

  define("attention-explorer", {
    state: { model: "BERT", item: "0", block: 1, head: 0, row: 99, key: -1, mean: false, silent: false },
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
      ui.stage.prepend(html("p", { class: "tl-label" }, "Who reads:"), asks, html("p", { class: "tl-label" }, "What is read (stronger colour: more; choose one for its weight):"), reads);
      ui.stage.append(html("p", { class: "tl-label" }, "Head (block.head):"), heads);
      const answers = ui.table("What the model answers");
      ui.choice("model", "Model", Object.entries(ABOUT), (model) => ({ model, item: "0", row: 99, key: -1, block: 0, head: 0, silent: false }));
      const item = ui.choice("item", "Example", ["0", "1", "2", "3", "4"].map((i) => [i, i]), (chosen) => ({ item: chosen, row: 99, key: -1 }));
      ui.toggle("mean", "Show the mean of all heads of the block");
      ui.toggle("silent", "Silence this head");
      let shape = "";
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
          shape = state.model;
          options.replaceChildren(...model.map((one, i) => html("option", { value: String(i) }, one.pixels ? `digit ${i + 1}: a ${one.true}` : one.reads.slice(0, 12).join(" ").replaceAll(" ##", ""))));
          options.value = String(model.indexOf(example));
          heads.replaceChildren(...weights.map((block, b) => html("div", {}, block.map((_, n) => html("button", {
            type: "button", "data-head": `${b}:${n}`, "aria-label": `Block ${b + 1}, head ${n + 1}`, onclick: () => ui.change({ block: b, head: n }) }, `${b + 1}.${n + 1}`)))));
        }
        for (const button of heads.querySelectorAll("button")) button.setAttribute("aria-pressed", button.dataset.head === `${m}:${h}`);
        const read = state.mean
          ? weights[m][0][row].map((_, s) => sum(weights[m].map((head) => head[row][s])) / H)
          : weights[m][h][row];
        const most = Math.max(...read);
        const key = state.key >= 0 && state.key < read.length ? Math.round(state.key) : -1;
        const stop = (s, first) => (s === (key < first ? first : key) ? "0" : "-1");
        const held = document.activeElement?.dataset?.key;
        const back = (group) => held != null && group.contains(document.activeElement);
        const image = Boolean(example.pixels);
        asks.hidden = reads.hidden = image;
        asks.previousElementSibling.hidden = reads.previousElementSibling.hidden = image;
        picture.style.display = image ? "" : "none";
        if (image) {
          const side = Math.min(width, 280);
          const cell = side / 28;
          const step = side / 4;
          const focused = back(picture);
          patches(side, side,
            rect(0, 0, side, side, { fill: "#000" }),
            Array.from(example.pixels, (ink, i) => ink !== "0" && rect((i % 28) * cell, Math.floor(i / 28) * cell, cell + 0.3, cell + 0.3, { fill: "#fff", opacity: Number(ink) / 9 })),
            read.slice(1).map((a, s) => svg("rect", {
              x: (s % 4) * step + 3, y: Math.floor(s / 4) * step + 3, width: step - 6, height: step - 6, fill: "none",
              stroke: colour("weights"), "stroke-width": 5, opacity: a / most })),
            read.slice(1).map((a, s) => svg("rect", {
              x: (s % 4) * step + 0.5, y: Math.floor(s / 4) * step + 0.5, width: step - 1, height: step - 1, fill: "transparent", class: "tl-part",
              role: "button", tabindex: stop(s + 1, 1), "data-key": s + 1, "aria-pressed": s + 1 === key, "aria-label": `patch ${s + 1}: ${share(a)}` })));
          if (focused) picture.querySelector(`[data-key="${held}"]`)?.focus();
        } else {
          const focused = document.activeElement?.dataset?.row;
          asks.replaceChildren(...example.asks.map((w, n) => html("button", {
            type: "button", "data-row": n, "aria-pressed": n === row, onclick: () => ui.change({ row: n }) }, seen(w))));
          if (focused != null) asks.querySelector(`[data-row="${focused}"]`)?.focus();
          const kept = back(reads);
          reads.replaceChildren(...example.reads.map((w, s) => html("button", { type: "button", style: shade(read[s] / most), title: percent(read[s]),
            tabindex: stop(s, 0), "data-key": s, "aria-pressed": s === key }, seen(w), html("span", { class: "tl-hidden" }, ` ${percent(read[s])}`))));
          if (kept) reads.querySelector(`[data-key="${held}"]`)?.focus();
        }
        const at = example.asked.indexOf(row);
        const before = example.answers[""][Math.max(0, at)];
        const after = example.answers[`${m}:${h}`][Math.max(0, at)];
        const where = image ? "for this digit" : state.model === "BERT" ? "in the hole" : `where it writes ${word(example.asks[example.asked[Math.max(0, at)]])}`;
        answers([where, "first three answers"], [["all heads", said(before)], ...(state.silent ? [[`without head ${m + 1}.${h + 1}`, said(after)]] : [])]);
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
