// Chapter 2: drag the query and the bandwidth; weights and answer follow.
(() => {
  const { define, svg, text, line, rect, path, colour, number } = window.TformerLive;
  const { softLookup } = window.TformerMaths;
  const keys = [6, 9, 12, 15, 18];
  const values = [8, 12, 17, 19, 15];
  const hour = (x) => `${Math.floor(x + 1e-9)}:${String(Math.round((x % 1) * 60)).padStart(2, "0")}`;

  define("soft-dictionary", {
    state: { q: 7, h: 1.5 },
    build(ui) {
      let scale; // from hours to pixels
      const show = ui.picture("Five temperatures of a day and the answer of the lookup at every hour; above them the five weights as bars. The sentence below says the numbers.", (x) => {
        ui.change({ q: Math.min(20, Math.max(4, Math.round(4 * scale(x)) / 4)) });
      });
      ui.slider("q", "Query q", { min: 4, max: 20, step: 0.25, show: hour });
      ui.slider("h", "Bandwidth h", { min: -1.3, max: 2.4, step: 0.02, from: Math.log, to: (x) => Number(Math.exp(x).toFixed(2)),
        show: (h) => `${number(h, 2)} h` });
      return ({ q, h }, width) => {
        const [left, right, top, low, base] = [34, 16, 26, 96, 290];
        const x = (t) => left + ((t - 4) / 16) * (width - left - right);
        const y = (v) => base - ((v - 6) / 15) * (base - low - 30);
        scale = (px) => 4 + ((px - left) / (width - left - right)) * 16;
        const found = softLookup(q, keys, values, h);
        const curve = Array.from({ length: 641 }, (_, i) => 4 + i / 40).map((t) => [x(t), y(softLookup(t, keys, values, h).answer)]);
        show(width, 346,
          text(left - 4, 14, "weights", { anchor: "start" }),
          keys.map((k, s) => [
            rect(x(k) - 14, low - found.weights[s] * (low - top - 16), 28, found.weights[s] * (low - top - 16), { fill: colour("weights") }),
            line(x(k) - 14, low, x(k) + 14, low),
            text(x(k), low - found.weights[s] * (low - top - 16) - 5, number(found.weights[s])),
          ]),
          line(left, base, width - right, base),
          [8, 12, 16, 20].map((v) => [text(left - 6, y(v) + 5, `${v}°`, { anchor: "end" }), line(left, y(v), width - right, y(v), { opacity: 0.15 })]),
          path(curve, { stroke: colour("stream") }),
          keys.map((k, s) => [
            svg("circle", { cx: x(k), cy: y(values[s]), r: 6, fill: colour("value") }),
            text(x(k), base + 20, `${k}:00`),
          ]),
          line(x(q), low + 6, x(q), base, { stroke: colour("query"), "stroke-width": 3 }),
          svg("circle", { cx: x(q), cy: y(found.answer), r: 8, fill: colour("query") }),
          text(Math.min(width - 60, Math.max(70, x(q))), 338, `q = ${hour(q)}: ${number(found.answer, 1)}°`, { "font-weight": 600 }),
        );
        const weights = keys.map((k, s) => `${k}:00 ${number(found.weights[s])}`).join(", ");
        return `At ${hour(q)} the answer is ${number(found.answer, 1)}°. Weights: ${weights}.`;
      };
    },
  });
})();
