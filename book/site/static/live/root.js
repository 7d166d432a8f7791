// Chapter 2: one random query among sixteen random keys, with the root and without, at any width: weights and gradients.
(() => {
  const { define, text, line, rect, colour, number } = window.TformerLive;
  const { attendOne, gradients, norm, random, sum } = window.TformerMaths;

  const small = (x) => (x < 5e-5 ? "below 0.0001" : number(x, 4));

  define("the-root", {
    state: { log: 6, scaled: true, seed: 6 },
    build(ui) {
      const S = 16;
      const show = ui.picture("Bars above: the weights that one random query gives to sixteen random keys. Bars below: the gradient at the score of each key, up or down. The sentence below says the largest weight and how large the gradients are.");
      ui.slider("log", "Width of query and keys", { min: 0, max: 10, show: (l) => String(2 ** l) });
      ui.toggle("scaled", "Divide the scores by the root of the width");
      ui.button("Another draw", () => ui.change({ seed: (ui.state.seed % 9999) + 1 }));
      const draw = (D, seed) => {
        const chance = random(seed * 7919 + 1);
        const make = (n, width) => Array.from({ length: n }, () => chance.vector(width));
        return { q: chance.vector(D), keys: make(S, D), values: make(S, 8), g: chance.vector(8) };
      };
      return ({ log, scaled, seed }, width) => {
        const D = 2 ** Math.min(10, Math.max(0, Math.round(log)));
        const { q, keys, values, g } = draw(D, seed);
        const { weights } = attendOne(q, keys, values, null, scaled);
        const { atScores, atQuery } = gradients(q, keys, values, g, scaled);
        ui.drawn = { q, keys, values, g, weights, atScores, atQuery }; // for the tests
        const other = gradients(q, keys, values, g, !scaled).atScores;
        const limit = Math.max(...[...atScores, ...other].map(Math.abs)); // one scale with the root and without
        const [left, top, base, zero, most] = [8, 30, 190, 312, 64];
        const step = (width - 2 * left) / S;
        show(width, 408,
          text(left, 16, `weights, D = ${D}, ${scaled ? "with" : "without"} the root`, { anchor: "start" }),
          weights.map((a, s) => [
            rect(left + s * step + 2, base - a * (base - top), step - 4, a * (base - top), { fill: colour("weights") }),
          ]),
          line(left, base, width - left, base),
          line(left, base - (base - top) / S, width - left, base - (base - top) / S, { "stroke-dasharray": "4 4", opacity: 0.6 }),
          text(width / 2, base + 22, "16 keys (dashed: equal weights)", {}),
          text(left, zero - most - 12, "gradient at the scores", { anchor: "start" }),
          atScores.map((d, s) => {
            const tall = (Math.abs(d) / limit) * most;
            return rect(left + s * step + 2, d > 0 ? zero - tall : zero, step - 4, tall, { fill: "currentColor", opacity: 0.75, class: "tl-gradient" });
          }),
          line(left, zero, width - left, zero),
          [-most, most].map((y) => line(left, zero - y, width - left, zero - y, { "stroke-dasharray": "4 4", opacity: 0.6 })),
          text(width / 2, zero + most + 22, `the same keys (dashed: ${number(limit, 3)} up and down)`, {}));
        const largest = Math.max(...weights);
        const read = 1 / sum(weights.map((a) => a * a));
        const push = atScores.map(Math.abs).sort((a, b) => a - b)[S / 2];
        return `Width ${D}, ${scaled ? "with" : "without"} the root: the largest weight is ${number(largest)}; the query reads as much as ${number(read, 1)} keys with equal weights. `
          + `The middle one of the sixteen gradients at the scores is ${small(push)} (a random gradient of length ${number(norm(g), 1)} arrives at the output). At the query it has the length ${small(norm(atQuery))}.`;
      };
    },
  });
})();
