// Chapter 3: one pattern of weights cannot give a difference; two can. Turn them by hand.
(() => {
  const { define, text, line, rect, colour, number } = window.TformerLive;
  const { errorLeft, sum } = window.TformerMaths;
  const marks = ["+", "−", "others"];

  define("two-heads", {
    state: { two: false, a: 34, b: 33, c: 33, d: 33 },
    build(ui) {
      const show = ui.picture("Bars: the weights of each head on the token marked plus, on the token marked minus and on six others together. The sentence below says what error is left.");
      const percent = (x) => `${Math.round(x)}%`;
      ui.slider("a", "Head 1, weight on +", { min: 0, max: 100, show: percent });
      ui.slider("b", "Head 1, weight on −", { min: 0, max: 100, show: percent });
      ui.toggle("two", "A second head");
      const rows = [
        ui.slider("c", "Head 2, weight on +", { min: 0, max: 100, show: percent }),
        ui.slider("d", "Head 2, weight on −", { min: 0, max: 100, show: percent }),
      ];
      // Weights of one head sum to one: what is pulled beyond that is taken from the other token.
      const last = { a: 34, c: 33 };
      const fit = (state, plus, minus) => {
        if (state[plus] + state[minus] > 100) {
          if (state[plus] !== last[plus]) state[minus] = 100 - state[plus];
          else state[plus] = 100 - state[minus];
          for (const key of [plus, minus]) ui.controls.get(key).show();
        }
        last[plus] = state[plus];
        const [p, m] = [state[plus] / 100, state[minus] / 100];
        return [p, m, ...Array(6).fill((1 - p - m) / 6)];
      };
      return (state, width) => {
        for (const row of rows) row.hidden = !state.two;
        const heads = [fit(state, "a", "b"), ...(state.two ? [fit(state, "c", "d")] : [])];
        const left = errorLeft(heads);
        const [top, base, half] = [34, 170, (width - 24) / 2];
        show(width, 250,
          heads.map((head, h) => {
            const at = 4 + h * (half + 16);
            const shown = [head[0], head[1], Math.max(0, sum(head.slice(2)))]; // no −0.00
            const step = half / 3;
            return [text(at, 16, `head ${h + 1}`, { anchor: "start" }), line(at, base, at + half, base),
              shown.map((a, s) => [
                rect(at + s * step + 6, base - a * (base - top - 14), step - 12, a * (base - top - 14), { fill: colour(s < 2 ? "weights" : "key") }),
                text(at + (s + 0.5) * step, base - a * (base - top - 14) - 5, number(a)),
                text(at + (s + 0.5) * step, base + 18, marks[s])])];
          }),
          text(4, 214, "error left", { anchor: "start" }),
          rect(4, 222, width - 8, 18, { fill: "none", stroke: "currentColor" }),
          rect(4, 222, left * (width - 8), 18, { fill: colour("stream") }),
          line(4 + (width - 8) / 2, 216, 4 + (width - 8) / 2, 246, { "stroke-dasharray": "3 3", "stroke-width": 2 }));
        const said = (x) => number(x, x >= 1 || x < 1e-4 ? 0 : x >= 0.01 ? 2 : 4); // no zero that is none: whole per cents leave more
        const read = heads.map((head, h) => `Head ${h + 1} gives ${state[h ? "c" : "a"]}% to +, ${state[h ? "d" : "b"]}% to − and ${number(100 * Math.max(0, sum(head.slice(2))), 0)}% to the others.`);
        const who = state.two ? "Together they leave" : "It leaves";
        return `${read.join(" ")} ${who} ${said(100 * left)}% of the error in the difference, with the best linear readout of what is read. The dashed line is one half.`;
      };
    },
  });
})();
