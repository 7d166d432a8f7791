// The book's own GPT in the page: type, and see what it expects, what each head reads, and what one head is worth.
(() => {
  const { define, html, text, rect, line, colour, shade, number } = window.TformerLive;
  const { nextProbabilities, softmax, random } = window.TformerMaths;
  const model = new window.TformerGPT(window.TformerModel);
  delete window.TformerModel;
  const named = (letter) => ({ " ": "␣", "\n": "↵" })[letter] ?? letter;
  const SHOWN = 12;

  define("live-model", {
    state: { text: "ROMEO.\nO, she doth teach the torches to b", temperature: 0.8, topP: 0.95, seed: 1, block: 0, head: 0, silent: "" },
    build(ui) {
      const box = html("textarea", { rows: 4, spellcheck: "false", "aria-label": "Text that the model reads", oninput: () => ui.change({ text: box.value }) });
      const faults = html("p", { class: "tl-fault", role: "status" });
      ui.stage.append(box, faults);
      const bars = ui.picture("Bars: the probability of each of the twelve likeliest next letters. The sentence below says the first.");
      const reads = html("p", { class: "tl-reads" });
      const heads = html("div", { class: "tl-heads", role: "group", "aria-label": "Heads: which one is shown" });
      ui.stage.append(html("p", { class: "tl-label" }, "What each head of each block reads for the next letter (darker: more); choose one:"), heads, reads);
      const lens = ui.table("The logit lens: the likeliest letters if the stream were read after each block");
      const off = () => new Set(String(ui.state.silent).split(",").filter(Boolean));
      const buttons = Array.from({ length: model.M }, (_, m) => Array.from({ length: model.H }, (_, h) => html("button", {
        type: "button", onclick: () => ui.change({ block: m, head: h }) }, `${m + 1}.${h + 1}`)));
      buttons.forEach((row) => heads.append(html("div", {}, row)));
      ui.slider("temperature", "Temperature", { min: 0, max: 2, step: 0.05, show: (x) => number(x, 2) });
      ui.slider("topP", "Top-p", { min: 0.05, max: 1, step: 0.01, show: (p) => (p < 1 ? number(p, 2) : "off") });
      // Writing goes on in small pieces, so that the page can be used meanwhile.
      let writing = 0;
      const write = ui.button("Write", () => {
        writing = writing ? 0 : 200;
        const piece = () => {
          if (!writing || !ui.isConnected) {
            writing = 0;
            write.textContent = "Write";
            return;
          }
          const until = performance.now() + 24;
          let { text: now, seed } = ui.state;
          while (writing && performance.now() < until) {
            const p = nextProbabilities(read(now).logits, ui.state);
            let u = random(seed).even();
            seed = (seed % 99999) + 1;
            const at = p.findIndex((q) => (u -= q) < 0);
            now += model.letters[at < 0 ? p.indexOf(Math.max(...p)) : at];
            writing -= 1;
          }
          ui.change({ text: now, seed });
          requestAnimationFrame(piece);
        };
        write.textContent = writing ? "Stop" : "Write";
        piece();
      });
      ui.button("Silence this head", () => {
        const silent = off();
        const name = `${ui.state.block}:${ui.state.head}`;
        if (!silent.delete(name)) silent.add(name);
        ui.change({ silent: [...silent].join(",") });
      });
      ui.button("All heads speak", () => ui.change({ silent: "" }));

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
        if (box.value !== state.text) box.value = state.text;
        const unknown = [...new Set(Array.from(state.text).filter((letter) => !model.letters.includes(letter)))];
        faults.textContent = unknown.length ? `The model has never met ${unknown.join(" ")}, and skips it.` : "";
        const found = read(state.text);
        const p = nextProbabilities(found.logits, state);
        const plain = softmax(found.logits);
        const order = plain.map((_, i) => i).sort((a, b) => plain[b] - plain[a]).slice(0, SHOWN);
        const top = Math.max(...order.map((i) => Math.max(p[i], plain[i])));
        const step = (width - 8) / SHOWN;
        bars(width, 168, order.map((i, n) => [
          rect(4 + n * step + 3, 140 - (p[i] / top) * 116, step - 6, (p[i] / top) * 116, { fill: colour("weights") }),
          rect(4 + n * step + 3, 140 - (plain[i] / top) * 116, step - 6, (plain[i] / top) * 116, { fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3" }),
          text(4 + (n + 0.5) * step, 160, named(model.letters[i])),
        ]), line(4, 140, width - 4, 140));
        const m = Math.min(model.M - 1, Math.max(0, Math.round(state.block)));
        const h = Math.min(model.H - 1, Math.max(0, Math.round(state.head)));
        const silent = off();
        buttons.forEach((row, i) => row.forEach((button, j) => {
          button.setAttribute("aria-pressed", i === m && j === h);
          const quiet = silent.has(`${i}:${j}`);
          button.classList.toggle("tl-silent", quiet);
          button.setAttribute("aria-label", `Block ${i + 1}, head ${j + 1}${quiet ? ", silenced" : ""}`);
        }));
        const weights = found.attention[m][h];
        const most = Math.max(...weights);
        reads.replaceChildren(...kept.ids.map((id, s) => html("span", {
          style: shade(weights[s] / most),
          title: `${number(100 * weights[s], 1)}%`,
        }, named(model.letters[id]))));
        lens(["after block", "letters", "likeliest"], found.lens.map((logits, i) => {
          const q = softmax(logits);
          const best = q.map((_, j) => j).sort((a, b) => q[b] - q[a]).slice(0, 4);
          return [String(i + 1), best.map((j) => named(model.letters[j])).join("  "), `${number(100 * q[best[0]], 0)}%`];
        }));
        const first = plain.indexOf(Math.max(...plain));
        const at = weights.indexOf(most);
        return `Next it expects ${named(model.letters[first])} (${number(100 * plain[first], 0)}%). Head ${h + 1} of block ${m + 1} reads most from ${named(model.letters[kept.ids[at]])}, ${kept.ids.length - 1 - at} letters back (${number(100 * most, 0)}%).`;
      };
    },
  });
})();
