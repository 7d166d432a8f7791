// Chapter 8: one distribution, four rules. The logits are those of the book's own model, recorded.
(() => {
  const { define, html, text, rect, line, colour, number, spoken, shown, letters: row, list } = window.TformerLive;
  const { nextProbabilities, random } = window.TformerMaths;
  const { prompts, letters } = window.TformerLogits;

  const logitsOf = ({ prompt }) => (prompts[Number(prompt)] ?? prompts[0]).logits;
  const kept = (state) => nextProbabilities(logitsOf(state), state).filter(Boolean).length;

  define("sampler", {
    state: { prompt: "0", temperature: 1, topK: 0, topP: 1, minP: 0, seed: 1, drawn: 0 },
    tasks: [
      ["Leave exactly three letters, with top-k alone.", (state) => state.topK && kept(state) === 3],
      ["Switch top-k off, and leave the same three with another rule.", (state) => !state.topK && kept(state) === 3],
      ["Keep this setting and take another text. Guess first: are there three again?",
        (state, start) => state.prompt !== start.prompt && !state.topK && (state.topP < 1 || state.minP > 0)],
    ],
    learned: "Top-k leaves k letters, however sure the model is. Top-p and min-p leave few where it is sure and many where it is not.",
    build(ui) {
      const show = ui.picture("Bars: the probability of each of the fifteen likeliest letters, before and after the rules. The sentence below says how many are left.");
      const said = html("p", { class: "tl-drawn", role: "status" });
      ui.stage.append(said);
      let told = "";
      ui.panel.classList.add("tl-short");
      const texts = prompts.map(({ text: before }, i) => [String(i), `…${before.slice(-24).replace(/^\S*\s+/, "").replaceAll("\n", " / ")}`]);
      ui.choice("prompt", "After the text", texts).style.flexBasis = "100%";
      ui.slider("temperature", "Temperature", { min: 0, max: 2, step: 0.05, show: (x) => number(x, 2) });
      ui.slider("topK", "Top-k", { min: 0, max: 20, show: (k) => (k ? String(k) : "off") });
      ui.slider("topP", "Top-p", { min: 0.05, max: 1, step: 0.01, show: (p) => (p < 1 ? number(p, 2) : "off") });
      ui.slider("minP", "Min-p", { min: 0, max: 1, step: 0.01, show: (p) => (p ? number(p, 2) : "off") });
      ui.button("Draw 50 letters", () => ui.change({ drawn: 50, seed: (ui.state.seed % 9999) + 1 }));
      return (state, width) => {
        const logits = logitsOf(state);
        const before = nextProbabilities(logits);
        const p = nextProbabilities(logits, state);
        const order = before.map((_, i) => i).sort((a, b) => before[b] - before[a]).slice(0, 15);
        const top = Math.max(...order.map((i) => Math.max(p[i], before[i])));
        const [tall, dashed] = [["p", p], ["before", before]].map(([name, one]) => ui.arrive(name, order.map((i) => one[i] / top)));
        const step = (width - 8) / order.length;
        const [base, high] = [212, 160];
        show(width, 244, order.map((i, n) => {
          const x = 4 + n * step;
          return [
            rect(x + 2, base - tall[n] * high, step - 4, tall[n] * high, { fill: colour("weights") }),
            rect(x + 2, base - dashed[n] * high, step - 4, dashed[n] * high, { fill: "none", stroke: "currentColor", "stroke-dasharray": "3 3" }),
            text(x + step / 2, base + 20, shown(letters[i]), { "font-weight": p[i] ? 700 : 400, opacity: p[i] ? 1 : 0.75 })];
        }), line(4, base, width - 4, base),
        text(width - 4, 14, `highest: ${number(100 * top, 0)}%`, { anchor: "end", size: 13 }),
        text(width - 4, 34, "dashed: before the rules", { anchor: "end", size: 13 }));
        const chance = random(state.seed);
        const drawn = Array.from({ length: Math.min(200, Math.max(0, Math.round(state.drawn))) }, () => {
          let u = chance.even();
          const at = p.findIndex((q) => (u -= q) < 0);
          return letters[at < 0 ? p.lastIndexOf(Math.max(...p)) : at];
        });
        if (drawn.join("") !== told) { // told once
          told = drawn.join("");
          said.replaceChildren(...(told ? ["Fifty draws of the next letter: ", ...row(drawn)] : []));
        }
        const left = p.map((_, i) => i).filter((i) => p[i] > 0).sort((i, j) => p[j] - p[i]);
        const entropy = -p.reduce((s, q) => s + (q ? q * Math.log2(q) : 0), 0);
        const one = (i) => `${spoken(letters[i])} with ${number(100 * p[i], 1)}%`;
        const who = left.length === 1 ? `One letter can come: ${one(left[0])}`
          : left.length <= 6 ? `${left.length} letters can come: ${list(left.map(one))}`
            : `${left.length} of ${p.length} letters can come, first of all ${list(left.slice(0, 3).map(one))}`;
        return `${who}. Entropy ${number(entropy, 2)} bits.`;
      };
    },
  });
})();
