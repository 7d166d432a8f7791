// The book's own GPT in the page: type, and see what it expects, what each head reads, and what one head is worth.
(() => {
  const { define, html, text, rect, line, colour, shade, number, spoken, shown, letters, list } = window.TformerLive;
  const { nextProbabilities, softmax, random } = window.TformerMaths;
  const model = new window.TformerGPT(window.TformerModel);
  delete window.TformerModel;
  const SHOWN = 12;

  define("live-model", {
    state: { text: "ROMEO:\nO, she doth teach the torches to b", temperature: 0.8, topP: 0.95, seed: 1, block: 0, head: 0, silent: "" },
    build(ui) {
      const box = html("textarea", { rows: 4, spellcheck: "false", "aria-label": "Text that the model reads", oninput: () => ui.change({ text: box.value }) });
      const faults = html("p", { class: "tl-fault", role: "status" });
      const told = html("p", { class: "tl-hidden", role: "status" });
      const button = (label, onclick) => html("button", { type: "button", onclick }, label);
      const bars = ui.picture("Bars: the probability of each of the twelve likeliest next letters. The sentence below says the first.");
      const reads = html("p", { class: "tl-reads", role: "img", "aria-label": "The text, in a stronger colour where this head reads more. The sentence below says the first three letters." });
      const heads = html("div", { class: "tl-heads", role: "group", "aria-label": "Heads: which one is shown" });
      ui.stage.append(html("p", { class: "tl-label" }, "What each head of each block reads for the next letter (stronger colour: more); choose one:"), heads);
      const off = () => new Set(String(ui.state.silent).split(",").filter(Boolean));
      const chosen = () => [Math.min(model.M - 1, Math.max(0, Math.round(ui.state.block))), Math.min(model.H - 1, Math.max(0, Math.round(ui.state.head)))];
      const buttons = Array.from({ length: model.M }, (_, m) => Array.from({ length: model.H }, (_, h) => html("button", {
        type: "button", onclick: () => ui.change({ block: m, head: h }) }, `${m + 1}.${h + 1}`)));
      buttons.forEach((row) => heads.append(html("div", {}, row)));
      ui.slider("temperature", "Temperature", { min: 0, max: 2, step: 0.05, show: (x) => number(x, 2) });
      ui.slider("topP", "Top-p", { min: 0.05, max: 1, step: 0.01, show: (p) => (p < 1 ? number(p, 2) : "off") });
      // Letter by letter, so that one can watch; all at once where motion is unwanted. It stops when somebody goes to the text or changes it.
      const still = matchMedia("(prefers-reduced-motion: reduce)");
      const draw = () => {
        const { text: now, seed } = ui.state;
        const p = nextProbabilities(read(now).logits, ui.state);
        let u = random(seed).even();
        const at = p.findIndex((q) => (u -= q) < 0);
        Object.assign(ui.state, { text: now + model.letters[at < 0 ? p.indexOf(Math.max(...p)) : at], seed: (seed % 99999) + 1 });
      };
      let [writing, timer] = [0, 0];
      let [first, last, drawn] = ["", "", 0];
      const stop = () => {
        clearTimeout(timer);
        told.textContent = `It has written: ${last.slice(first.length)}`;
        writing = 0;
        write.textContent = "Write";
      };
      const piece = () => {
        if (!writing || !ui.isConnected || ui.state.text !== last) {
          stop();
          return;
        }
        const now = performance.now(); // some 36 letters a second, unless a picture takes very long
        for (let n = still.matches ? 10 : Math.min(10, Math.max(1, Math.round(0.036 * (now - drawn)))); n && writing; n -= 1, writing -= 1) draw();
        drawn = now;
        last = ui.state.text;
        ui.change({});
        timer = setTimeout(piece, 25);
      };
      for (const kind of ["focus", "pointerdown", "keydown"]) {
        box.addEventListener(kind, () => {
          if (writing) stop();
        });
      }
      const write = button("Write", () => {
        if (writing) {
          stop();
          return;
        }
        writing = 200;
        first = last = ui.state.text;
        drawn = performance.now();
        told.textContent = "";
        write.textContent = "Stop";
        piece();
      });
      const one = button("One letter", () => {
        draw();
        ui.change({});
      });
      ui.stage.prepend(box, html("div", { class: "tl-row tl-buttons" }, write, one), faults, told);
      const silence = button("", () => {
        const silent = off();
        const name = chosen().join(":");
        if (!silent.delete(name)) silent.add(name);
        ui.change({ silent: [...silent].join(",") });
      });
      heads.after(html("div", { class: "tl-row tl-buttons" }, silence, button("All heads speak", () => ui.change({ silent: "" }))), reads);
      const lens = ui.table("Logit lens: the likeliest letters after each block");

      // The cache is kept while a text only grows; the last `context` letters are read, the oldest half dropped at once.
      let kept = { key: null, ids: [], cache: null, found: null };
      const read = (whole) => {
        const known = Array.from(whole).filter((letter) => model.letters.includes(letter));
        const all = model.encode(known.length ? known.join("") : "\n");
        const half = model.context / 2;
        const from = all.length <= model.context ? 0 : Math.ceil((all.length - model.context) / half) * half;
        const ids = all.slice(from);
        const key = `${from}|${ui.state.silent}`;
        const grows = kept.key === key && ids.length >= kept.ids.length && kept.ids.every((id, i) => id === ids[i]);
        if (!grows) kept = { key, ids: [], cache: model.newCache(), found: null };
        const silent = off();
        for (const id of ids.slice(kept.ids.length)) kept.found = model.step(id, kept.cache, silent);
        kept.ids = ids;
        return kept.found;
      };
      ui.model = model; // for the tests
      return (state, width) => {
        if (box.value !== state.text) {
          box.value = state.text;
          box.scrollTop = box.scrollHeight; // what is written last is seen
        }
        const unknown = [...new Set(Array.from(state.text).filter((letter) => !model.letters.includes(letter)))];
        faults.textContent = unknown.length ? `The model has never met ${unknown.join(" ")}, and skips it.` : "";
        const found = read(state.text);
        const p = nextProbabilities(found.logits, state);
        const plain = softmax(found.logits);
        const order = plain.map((_, i) => i).sort((a, b) => plain[b] - plain[a]).slice(0, SHOWN);
        const top = Math.max(...order.map((i) => Math.max(p[i], plain[i])));
        const step = (width - 8) / SHOWN;
        bars(width, 198, order.map((i, n) => [
          rect(4 + n * step + 3, 170 - (p[i] / top) * 116, step - 6, (p[i] / top) * 116, { fill: colour("weights") }),
          rect(4 + n * step + 3, 170 - (plain[i] / top) * 116, step - 6, (plain[i] / top) * 116, { fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3" }),
          text(4 + (n + 0.5) * step, 190, shown(model.letters[i])),
        ]), line(4, 170, width - 4, 170),
        text(width - 4, 14, `highest: ${number(100 * top, 0)}%`, { anchor: "end", size: 13 }),
        text(width - 4, 34, "dashed: temperature 1, top-p off", { anchor: "end", size: 13 }));
        const [m, h] = chosen();
        const silent = off();
        silence.textContent = silent.has(`${m}:${h}`) ? `Let head ${m + 1}.${h + 1} speak` : `Silence head ${m + 1}.${h + 1}`;
        buttons.forEach((row, i) => row.forEach((button, j) => {
          button.setAttribute("aria-pressed", i === m && j === h);
          const quiet = silent.has(`${i}:${j}`);
          button.classList.toggle("tl-silent", quiet);
          button.setAttribute("aria-label", `Block ${i + 1}, head ${j + 1}${quiet ? ", silenced" : ""}`);
        }));
        const weights = found.attention[m][h];
        const most = Math.max(...weights);
        // The longest text's room is kept from the start: what lies below must not move from under a finger.
        const room = html("span", { "aria-hidden": "true", style: "visibility: hidden" }, "x".repeat(model.context - kept.ids.length));
        reads.replaceChildren(...kept.ids.map((id, s) => html("span", {
          style: shade(weights[s] / most),
          title: `${number(100 * weights[s], 1)}%`,
        }, shown(model.letters[id]))), room);
        lens(["after block", "letters", "likeliest"], found.lens.map((logits, i) => {
          const q = softmax(logits);
          const best = q.map((_, j) => j).sort((a, b) => q[b] - q[a]).slice(0, 4);
          return [String(i + 1), letters(best.map((j) => model.letters[j]), "  "), `${number(100 * q[best[0]], 0)}%`];
        }));
        const next = order.slice(0, 3).map((i) => `${spoken(model.letters[i])} (${number(100 * plain[i], 0)}%)`);
        const back = (s) => {
          const far = kept.ids.length - 1 - s;
          return far ? `${spoken(model.letters[kept.ids[s]])}, ${far} ${far === 1 ? "letter" : "letters"} back` : "the last letter itself";
        };
        const [best, ...more] = weights.map((_, s) => s).sort((i, j) => weights[j] - weights[i]).slice(0, 3)
          .map((s) => `${back(s)} (${number(100 * weights[s], 0)}%)`);
        const quiet = [...silent].filter((name) => /^\d+:\d+$/.test(name)).sort().map((name) => name.split(":").map((i) => Number(i) + 1).join("."));
        return `Next it expects ${list(next)}. Head ${m + 1}.${h + 1} reads most from ${best}${more.length ? `, then from ${more.join(", and ")}` : ""}.${
          quiet.length ? ` Silent: ${list(quiet)}.` : ""}`;
      };
    },
  });
})();
