// The book's own GPT in the page: it writes, and one sees what surprises it, what it expects, what each of its
// sixteen heads reads, and in which block the next letter settles.
(() => {
  const { define, html, svg, text, each, colour, shade, number, spoken, shown, list } = window.TformerLive;
  const { nextProbabilities, softmax, random } = window.TformerMaths;
  const model = new window.TformerGPT(window.TformerModel);
  delete window.TformerModel;
  const [NEXT, LENS, STRIP, WRITES] = [5, 5, 64, 200]; // letters beside the cursor, in the lens, in a strip, of one Write
  const SURE = 7; // bits at which a letter's colour is full
  const known = (whole) => Array.from(whole).filter((letter) => model.letters.includes(letter));
  const order = (p) => p.map((_, i) => i).sort((a, b) => p[b] - p[a]);
  const mean = (all) => all.reduce((a, b) => a + b, 0) / all.length;
  const percent = (p) => `${number(100 * p, 0)}%`;
  const silenced = (state) => new Set(String(state.silent).split(",").filter((name) => /^\d+:\d+$/.test(name)));

  // The window that the model reads, kept while a text only grows or shrinks at its end: what it found there, and how
  // many bits each letter took. Of more letters than the context holds the oldest half is dropped at once.
  class Reader {
    constructor() {
      Object.assign(this, { key: null, ids: [], steps: [] });
    }

    read(whole, silent) {
      const letters = known(whole);
      const all = model.encode(letters.length ? letters.join("") : "\n");
      const half = model.context / 2;
      const from = all.length <= model.context ? 0 : Math.ceil((all.length - model.context) / half) * half;
      const ids = all.slice(from);
      const key = `${from}|${[...silent].sort()}`;
      if (this.key !== key) Object.assign(this, { key, ids: [], steps: [], cache: model.newCache() });
      let same = 0;
      while (same < Math.min(ids.length, this.ids.length) && ids[same] === this.ids[same]) same += 1;
      this.steps.length = same;
      for (const block of this.cache) block.k.length = block.v.length = same;
      for (const id of ids.slice(same)) {
        const before = this.steps[this.steps.length - 1];
        const bits = before ? -Math.log2(softmax(before.logits)[id]) : null;
        this.steps.push({ ...model.step(id, this.cache, silent), bits });
      }
      Object.assign(this, { ids, from });
      return this.steps[this.steps.length - 1];
    }
  }

  define("live-model", {
    state: { text: "ROMEO:\nO, she doth teach the torches to b", temperature: 0.8, topP: 0.95, seed: 1, block: 1, head: 1, silent: "" },
    tasks: [
      ["Press Write. Where was the model surprised? Its letters have more colour there.", ({ text: now }, start) => now.length >= start.text.length + 100],
      ["Each strip is a head, and ends at the cursor. Tap the one that looks furthest back.",
        ({ block, head }) => [0, 3].includes(block) && head === 0,
        ({ block, head }, start) => (block === start.block && head === start.head ? "" // which nobody has tapped
          : `Head ${block + 1}.${head + 1} stays near the cursor. Tap the one whose bars stand furthest to the left.`)],
      ["Silence heads, one after the other, and let it write. At which one do the words fall apart?",
        (state) => silenced(state).has("0:3") || silenced(state).size > 3],
    ],
    learned: "Some heads are missed at once, others hardly: a letter is the work of many, and not of each as much.",
    build(ui) {
      const [reader, whole] = [new Reader(), new Reader()]; // with the silenced heads, and with all
      const button = (label, onclick, more = {}) => html("button", { type: "button", onclick, ...more }, label);
      const [m, h] = [() => Math.min(model.M - 1, Math.max(0, Math.round(ui.state.block))), () => Math.min(model.H - 1, Math.max(0, Math.round(ui.state.head)))];
      const read = () => reader.read(ui.state.text, silenced(ui.state));

      // --- The cursor: how many letters of the text stand before it. Bars, heads and lens are of this place.
      let at = Infinity; // the end, also when the text grows
      const before = () => ui.state.text.slice(0, at);
      const moveTo = (place) => {
        const now = place < ui.state.text.length ? place : Infinity;
        if (now === at) return;
        at = now;
        ui.redraw();
      };
      // The last letter before it of those in the window; of a text that begins with it, the first.
      const last = () => Math.min(reader.ids.length, Math.max(1, known(before()).length - reader.from)) - 1;
      // Behind the letter that stands at this place of the window.
      const behindLetter = (s) => {
        const places = [];
        let end = 0;
        for (const letter of ui.state.text) {
          end += letter.length;
          if (model.letters.includes(letter)) places.push(end);
        }
        return places[reader.from + s] ?? Infinity;
      };

      // --- The text: a field, and behind it the same letters, which carry the colours and, at the cursor, the bars.
      const box = html("textarea", { spellcheck: "false", "aria-label": "Text that the model reads" });
      const behind = html("div", { class: "tl-behind" });
      const bars = html("div", { class: "tl-next" });
      const scrolled = () => { behind.style.transform = bars.style.transform = `translateY(${-box.scrollTop}px)`; };
      box.addEventListener("scroll", scrolled);
      const faults = html("p", { class: "tl-fault", role: "status" });
      const told = html("p", { class: "tl-hidden", role: "status" });

      // --- Undo: the texts before each word that was typed, each letter and each Write.
      const past = [];
      let typing = false;
      const remember = () => {
        if (past[past.length - 1] !== ui.state.text) past.push(ui.state.text);
        if (past.length > 200) past.shift();
      };
      box.addEventListener("input", (event) => {
        if (!typing || event.inputType !== "insertText" || /\s/.test(event.data ?? "")) remember();
        typing = true;
        at = box.selectionEnd < box.value.length ? box.selectionEnd : Infinity;
        ui.change({ text: box.value });
        if (box.selectionEnd === box.value.length) box.scrollTop = box.scrollHeight; // the bars are seen, and whole lines
      });
      document.addEventListener("selectionchange", () => document.activeElement === box && box.value === ui.state.text && moveTo(box.selectionEnd));
      const undo = button("Undo", () => {
        stop();
        typing = false;
        if (past.length) ui.change({ text: past.pop() });
      });

      const put = (text) => { // in the place of what stands there
        stop();
        remember();
        typing = false;
        ui.change({ text });
      };
      const clear = button("Clear", () => {
        put("");
        box.focus();
      });

      // --- It writes letter by letter, so that one can watch; at once where motion is unwanted. It stops when somebody
      // goes to the text or changes it.
      const still = matchMedia("(prefers-reduced-motion: reduce)");
      let [writing, timer, first, left, drawn] = [0, 0, "", "", 0];
      ui.runs = () => writing > 0;
      const draw = () => {
        const p = nextProbabilities(read().logits, ui.state);
        let u = random(ui.state.seed).even();
        const at = p.findIndex((q) => (u -= q) < 0);
        Object.assign(ui.state, { text: ui.state.text + model.letters[at < 0 ? p.indexOf(Math.max(...p)) : at], seed: (ui.state.seed % 99999) + 1 });
      };
      const stop = () => {
        if (!writing && write.textContent === "Write") return;
        clearTimeout(timer);
        told.textContent = `It has written: ${left.slice(first.length)}`;
        writing = 0;
        write.textContent = "Write";
      };
      const piece = () => {
        if (!writing || !ui.isConnected || ui.state.text !== left) {
          stop();
          return;
        }
        const now = performance.now(); // some 36 letters a second, unless a picture takes very long
        for (let n = still.matches ? 10 : Math.min(10, Math.max(1, Math.round(0.036 * (now - drawn)))); n && writing; n -= 1, writing -= 1) draw();
        drawn = now;
        left = ui.state.text;
        ui.change({});
        timer = setTimeout(piece, 25);
      };
      for (const kind of ["focus", "pointerdown", "keydown"]) box.addEventListener(kind, () => writing && stop());
      const begin = () => {
        remember();
        typing = false;
        told.textContent = "";
      };
      const write = button("Write", () => {
        if (writing) {
          stop();
          return;
        }
        begin();
        [writing, first, left, drawn] = [WRITES, ui.state.text, ui.state.text, performance.now()];
        write.textContent = "Stop";
        piece();
      }, { class: "tl-first" });
      const one = button("One letter", () => {
        begin();
        draw();
        ui.change({});
      });

      // --- What heads read: sixteen strips, and the chosen one letter by letter.
      const strips = Array.from({ length: model.M }, (_, i) => Array.from({ length: model.H }, (__, j) => {
        const bar = svg("path", { stroke: colour("weights"), "stroke-width": 0.8, fill: "none" });
        return { bar, button: button([html("span", {}, `${i + 1}.${j + 1}`), svg("svg", { viewBox: `0 0 ${STRIP} 24`, preserveAspectRatio: "none", "aria-hidden": "true" }, bar)],
          () => ui.change({ block: i, head: j })) };
      }));
      const heads = html("div", { class: "tl-strips", role: "group", "aria-label": "Heads: which one is shown" }, strips.flat().map((strip) => strip.button));
      const reads = html("p", { class: "tl-reads", role: "img", "aria-label": "The text, in a stronger colour where this head reads more. The sentence below says the first three letters." });
      reads.addEventListener("click", ({ target }) => {
        const s = [...reads.children].indexOf(target);
        if (s >= 0 && s < reader.ids.length) moveTo(behindLetter(s));
      });
      const silence = button("", () => {
        const silent = silenced(ui.state);
        const name = `${m()}:${h()}`;
        if (!silent.delete(name)) silent.add(name);
        ui.change({ silent: [...silent].join(",") });
      });

      // --- Where the letter settles: the likeliest letters after each block, and the way of the one that wins.
      const lens = svg("svg", { class: "tl-lens", viewBox: `0 0 356 ${40 + 34 * (LENS + 1)}`, role: "img" });

      lens.addEventListener("click", ({ target }) => {
        const { letter } = target.dataset;
        if (!letter) return;
        const [head, tail] = [before(), ui.state.text.slice(at)];
        put(head + letter + tail);
        if (tail) moveTo(head.length + letter.length);
      });
      const spoils = html("p", { class: "tl-spoils" });

      ui.slider("temperature", "Temperature", { min: 0, max: 2, step: 0.05, show: (x) => number(x, 2) });
      ui.slider("topP", "Top-p", { min: 0.05, max: 1, step: 0.01, show: (p) => (p < 1 ? number(p, 2) : "off") });
      ui.stage.classList.add("tl-desk");
      const title = (words, more) => html("p", { class: "tl-label" }, html("strong", {}, words), ` ${more}`);
      ui.stage.append(
        html("div", { class: "tl-writes" }, html("div", { class: "tl-paperlike" }, html("div", { class: "tl-clip", "aria-hidden": "true" }, behind, bars), box, faults), told),
        html("div", { class: "tl-hands" }, html("div", { class: "tl-row tl-buttons" }, write, one, undo, clear), ui.panel,
          html("p", { class: "tl-scale", "aria-hidden": "true" }, "expected", html("span"), "surprising"),
          html("p", { class: "tl-key", "aria-hidden": "true" }, "Bars at the cursor: with temperature and top-p. Tick: without.")),
        html("div", { class: "tl-all" }, title("What sixteen heads read", "each strip ends at the cursor"), heads,
          html("div", { class: "tl-row tl-buttons" }, silence, button("All heads speak", () => ui.change({ silent: "" }))), spoils),
        reads,
        html("div", {}, title("Where the letter settles", "likeliest by block; tap one to write it"), lens),
      );
      ui.model = model; // for the tests

      const drawText = (state, p, plain) => {
        if (box.value !== state.text) {
          box.value = state.text;
          box.scrollTop = box.scrollHeight; // what is written last is seen
        }
        let place = -reader.from;
        each(behind, [...state.text, "\u200b"], () => html("span"), (letter) => { // behind the last one is the cursor
          const bits = model.letters.includes(letter) ? reader.steps[place++]?.bits : null;
          return [{ style: bits ? `--surprise: ${Math.min(1, bits / SURE).toFixed(2)}` : null }, letter];
        });
        const end = behind.children[[...state.text.slice(0, at < Infinity ? behindLetter(last()) : at)].length];
        const most = Math.max(...plain, ...p);
        each(bars, order(plain).slice(0, NEXT).flatMap((i) => [
          [{}, shown(model.letters[i])],
          [{ class: "tl-bar", style: `--now: ${(p[i] / most).toFixed(3)}; --plain: ${(plain[i] / most).toFixed(3)}` }],
          [{}, percent(p[i])]]), () => html("span"), (looks) => looks);
        bars.style.left = `${Math.max(8, Math.min(end.offsetLeft, behind.clientWidth - 190))}px`;
        bars.style.top = `${end.offsetTop + end.offsetHeight + 6}px`;
        scrolled();
      };

      const drawHeads = (found, silent) => {
        strips.forEach((row, i) => row.forEach(({ bar, button: strip }, j) => {
          const weights = found.attention[i][j].slice(-STRIP); // up to the cursor
          const most = Math.max(...weights);
          bar.setAttribute("d", weights.map((w, s) => `M${STRIP - weights.length + s + 0.5} 24v-${(22 * w / most).toFixed(1)}`).join(""));
          const quiet = silent.has(`${i}:${j}`);
          strip.setAttribute("aria-pressed", i === m() && j === h());
          strip.classList.toggle("tl-silent", quiet);
          strip.setAttribute("aria-label", `Block ${i + 1}, head ${j + 1}${quiet ? ", silenced" : ""}`);
        }));
        silence.textContent = `${silent.has(`${m()}:${h()}`) ? "Let" : "Silence"} head ${m() + 1}.${h() + 1}${silent.has(`${m()}:${h()}`) ? " speak" : ""}`;
        const weights = found.attention[m()][h()];
        const most = Math.max(...weights);
        // The longest text's room is kept from the start: what lies below must not move from under a finger.
        const room = [{ "aria-hidden": "true", style: "visibility: hidden", title: null }, "x".repeat(model.context - reader.ids.length)];
        each(reads, [...reader.ids.map((id, s) => [{ "aria-hidden": null, ...(s < weights.length
          ? { style: shade(weights[s] / most), title: `${number(100 * weights[s], 1)}%` } : { style: "opacity: 0.5", title: null }) }, shown(model.letters[id])]), room],
          () => html("span"), (looks) => looks);
      };

      const drawLens = (found) => {
        const columns = found.lens.map((logits) => softmax(logits));
        const winner = order(columns[columns.length - 1])[0];
        const rows = columns.map((q) => {
          const best = order(q).slice(0, LENS);
          return best.includes(winner) ? best : [...best, winner];
        });
        const x = (i) => 26 + 92 * i;
        const y = (r) => 42 + 34 * r;
        const way = (i, id) => {
          const [a, b] = [rows[i].indexOf(id), rows[i + 1].indexOf(id)];
          return a < 0 || b < 0 ? null : `M${x(i) + 14} ${y(a)}C${x(i) + 44} ${y(a)} ${x(i + 1) - 44} ${y(b)} ${x(i + 1) - 14} ${y(b)}`;
        };
        const wins = { stroke: colour("stream"), "stroke-width": 3 };
        ui.glide(lens, () => lens.replaceChildren(
          ...rows.slice(1).flatMap((_, i) => [...rows[i].filter((id) => id !== winner), winner].map((id) => way(i, id) && svg("path", {
            d: way(i, id), fill: "none", stroke: "currentColor", "stroke-opacity": id === winner ? 1 : 0.25, "stroke-width": 1.2, ...(id === winner ? wins : {}) }))).filter(Boolean),
          ...rows.flatMap((ids, i) => [text(x(i), 16, `block ${i + 1}`, { size: 13, opacity: 0.75 }), ...ids.flatMap((id, r) => [
            svg("rect", { x: x(i) - 14, y: y(r) - 13, width: 28, height: 26, rx: 4, fill: "var(--pst-color-background)" }),
            svg("rect", { x: x(i) - 14, y: y(r) - 13, width: 28, height: 26, rx: 4, fill: colour("stream"), "fill-opacity": (0.6 * columns[i][id]).toFixed(2), "data-key": `${i} ${r}`,
              stroke: id === winner ? colour("stream") : "currentColor", "stroke-opacity": id === winner ? 1 : 0.3, "stroke-width": id === winner ? 2 : 1, "data-letter": model.letters[id] }),
            text(x(i), y(r) + 5, shown(model.letters[id]), { size: 15, class: "tl-mono" }),
            i === rows.length - 1 && text(x(i) + 20, y(r) + 5, percent(columns[i][id]), { size: 13, anchor: "start", opacity: 0.75 })].filter(Boolean))]),
        ));
        lens.setAttribute("aria-label", `The likeliest letters after each block. ${rows.map((ids, i) => `Block ${i + 1}: ${
          list(ids.slice(0, 3).map((id) => `${spoken(model.letters[id])} ${percent(columns[i][id])}`))}.`).join(" ")}`);
      };

      return (state) => {
        const unknown = [...new Set(Array.from(state.text).filter((letter) => !model.letters.includes(letter)))];
        faults.textContent = unknown.length ? `The model has never met ${unknown.join(" ")}, and skips it.` : "";
        const silent = silenced(state);
        read();
        if (box.value !== state.text) at = Infinity; // somebody else has written
        const found = reader.steps[last()];
        const plain = softmax(found.logits);
        drawText(state, nextProbabilities(found.logits, state), plain);
        drawHeads(found, silent);
        drawLens(found);
        undo.disabled = !past.length;
        const next = order(plain).slice(0, 3).map((i) => `${spoken(model.letters[i])} (${percent(plain[i])})`);
        const back = (s) => {
          const far = last() - s;
          return far ? `${spoken(model.letters[reader.ids[s]])}, ${far} ${far === 1 ? "letter" : "letters"} back` : "the last letter itself";
        };
        const weights = found.attention[m()][h()];
        const [best, ...more] = order(weights).slice(0, 3).map((s) => `${back(s)} (${percent(weights[s])})`);
        const quiet = [...silent].sort().map((name) => name.split(":").map((i) => Number(i) + 1).join("."));
        const bits = ({ steps }) => steps.map((step) => step.bits).filter((one) => one != null);
        const took = bits(reader);
        if (quiet.length) whole.read(state.text, new Set());
        spoils.textContent = !took.length ? "" : quiet.length
          ? `Without ${list(quiet)}: ${number(mean(took), 2)} bits a letter; with all heads ${number(mean(bits(whole)), 2)}.`
          : `With all heads: ${number(mean(took), 2)} bits a letter.`;
        return `Next it expects ${list(next)}. Head ${m() + 1}.${h() + 1} reads most from ${best}${more.length ? `, then from ${more.join(", and ")}` : ""}.${
          took.length > 30 ? ` The letters took it ${number(mean(took), 1)} bits each.` : ""}${quiet.length ? ` Silent: ${list(quiet)}.` : ""}`;
      };
    },
  });
})();
