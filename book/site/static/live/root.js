// Chapter 2: one random query among sixteen random keys, with the root and without, at any width: scores, weights, gradients.
(() => {
  const { define, text, line, rect, path, colour, number } = window.TformerLive;
  const { attendOne, dot, gradients, norm, random, sum } = window.TformerMaths;

  const S = 16;
  const small = (x) => (x < 5e-5 ? "below 0.0001" : number(x, 4));

  define("the-root", {
    state: { log: 6, scaled: true, seed: 6 },
    tasks: [
      ["Guess: at width 256 without the root, how many of the sixteen keys are read? Then set it.", ({ log, scaled }) => log === 8 && !scaled],
      ["Hardly any grey bar is left: the keys get no gradient. Bring the bars back at this width.", ({ log, scaled }) => log >= 8 && scaled],
      ["Find the width at which the root changes nothing.", ({ log }) => log === 0],
    ],
    learned: "Products of wide vectors are large, and a softmax of large scores reads one key and leaves the others no gradient. The root keeps scores small.",
    build(ui) {
      const show = ui.picture("From top to bottom: the scores of one random query with sixteen random keys, sorted; the shares of a band that their weights are; the gradient at each score, up or down. The sentence below says the largest weight and how large the gradients are.");
      ui.panel.classList.add("tl-short");
      ui.panel.style = "--tl-label: min(10.5rem, 34vw)";
      ui.slider("log", "Width of query and keys", { min: 0, max: 10, show: (l) => String(2 ** l) });
      ui.button("Another draw", () => ui.change({ seed: (ui.state.seed % 9999) + 1 }));
      ui.toggle("scaled", "Divide the scores by the root of the width");
      const draw = (D, seed) => {
        const chance = random(seed * 7919 + 1);
        const make = (n, width) => Array.from({ length: n }, () => chance.vector(width));
        const q = chance.vector(D);
        const [keys, values] = [make(S, D), make(S, 8)];
        const sorted = keys.map((_, s) => s).sort((a, b) => dot(q, keys[b]) - dot(q, keys[a]));
        return { q, keys: sorted.map((s) => keys[s]), values: sorted.map((s) => values[s]), g: chance.vector(8) };
      };
      return ({ log, scaled, seed }, width) => {
        const D = 2 ** Math.min(10, Math.max(0, Math.round(log)));
        const { q, keys, values, g } = draw(D, seed);
        const { weights, scores } = attendOne(q, keys, values, null, scaled);
        const { atScores, atQuery } = gradients(q, keys, values, g, scaled);
        ui.drawn = { q, keys, values, g, weights, atScores, atQuery }; // for the tests
        const other = gradients(q, keys, values, g, !scaled).atScores;
        const limit = Math.max(...[...atScores, ...other].map(Math.abs)); // one scale with the root and without
        const power = 10 ** Math.floor(Math.log10(limit));
        const mark = power * [5, 2, 1].find((times) => times * power <= limit); // a round number on the axis of gradients
        const largest = Math.max(...weights);
        const read = 1 / sum(weights.map((a) => a * a));
        const [left, step] = [34, (width - 42) / S];
        const x = (s) => left + s * step;
        const [middle, band, zero, most] = [72, 186, 322, 46];
        const high = (z) => (50 * Math.asinh(z)) / Math.asinh(100);
        const z = ui.arrive("scores", scores);
        const share = ui.arrive("weights", weights);
        const push = ui.arrive("gradients", atScores.map((d) => d / limit));
        let at = left; // where a share begins
        show(width, 378,
          text(left, 14, `scores, ${scaled ? `divided by √${D}` : "not divided"}`, { anchor: "start" }),
          [-10, 0, 10].map((t) => [
            line(left, middle - high(t), width - 8, middle - high(t), { opacity: t ? 0.35 : 0.8, "stroke-dasharray": t ? "4 4" : null }),
            text(left - 6, middle - high(t) + 5, number(t, 0), { anchor: "end", size: 12 })]),
          z.map((one, s) => rect(x(s) + 2, one > 0 ? middle - high(one) : middle, step - 4, Math.abs(high(one)), { fill: colour("key") })),
          share.map((a, s) => {
            const [from, to] = [at, at += a * step * S];
            return [
              path([[x(s) + 2, 128], [x(s) + step - 2, 128], [to, band], [from, band]], { fill: colour("weights"), "fill-opacity": 0.25, stroke: "none" }),
              rect(from, band, to - from, 34, { fill: colour("weights"), stroke: "var(--pst-color-background)" })];
          }),
          text(left, band + 52, "weights, as shares of the band", { anchor: "start" }),
          largest > 0.15 && text(left + 8, band + 23, `${number(100 * largest, 0)}%`, { anchor: "start", fill: colour("on-weights") }),
          text(left, zero - most - 10, "gradient at each score", { anchor: "start" }),
          [-mark, 0, mark].map((t) => [
            line(left, zero - (t / limit) * most, width - 8, zero - (t / limit) * most, t ? { opacity: 0.35, "stroke-dasharray": "4 4" } : { class: "tl-zero" }),
            text(left - 6, zero - (t / limit) * most + 5, `${t < 0 ? "−" : ""}${Number(Math.abs(t).toPrecision(1))}`, { anchor: "end", size: 12, class: "tl-tick" })]),
          push.map((d, s) => rect(x(s) + 2, d > 0 ? zero - d * most : zero, step - 4, Math.abs(d) * most, { fill: "currentColor", opacity: 0.75, class: "tl-gradient" })));
        const middling = atScores.map(Math.abs).sort((a, b) => a - b)[S / 2];
        return `Width ${D}, ${scaled ? "with" : "without"} the root: the largest weight is ${number(largest)}; the query reads as much as ${number(read, 1)} keys with equal weights. `
          + `The middle one of the sixteen gradients at the scores is ${small(middling)} (a random gradient of length ${number(norm(g), 1)} arrives at the output). At the query it has the length ${small(norm(atQuery))}.`;
      };
    },
  });
})();
