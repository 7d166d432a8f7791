// Chapter 3: one pattern of weights cannot give a difference; two can. Each head is a point to drag in a triangle.
(() => {
  const { define, svg, text, line, rect, path, colour, number } = window.TformerLive;
  const { errorLeft, sum } = window.TformerMaths;

  const weights = (plus, minus) => [plus / 100, minus / 100, ...Array(6).fill((100 - plus - minus) / 600)];
  const headsOf = ({ two, a, b, c, d }) => [weights(a, b), ...(two ? [weights(c, d)] : [])];
  const left = (state) => errorLeft(headsOf(state));
  const NONE = 1e-6; // as good as no error

  define("two-heads", {
    state: { two: false, a: 34, b: 33, c: 33, d: 33 },
    tasks: [
      ["The answer is the number at + less the one at −. Drag the point: how little error can one head leave?",
        (state) => !state.two && left(state) < 0.505],
      ["Half of it stays. Take a second head, and bring the error to nothing.", (state) => state.two && left(state) < NONE],
      ["How alike may the heads be? Bring the points together without an error.",
        (state) => state.two && left(state) < NONE && Math.abs(state.a - state.c) + Math.abs(state.b - state.d) <= 4],
    ],
    learned: "One head leaves half of the error. Two leave nothing if both give the other tokens the same weight and split + and − differently.",
    build(ui) {
      let corners; // of the triangle
      let tips = [];
      let held = null;
      const drag = (x, y, down) => {
        const far = (tip) => Math.hypot(tip.x - x, tip.y - y);
        if (down) {
          const near = tips.reduce((best, tip) => (far(tip) <= far(best) ? tip : best));
          held = far(near) < 28 && near;
        }
        if (!held) return;
        const { middle, top, base, half } = corners;
        const both = Math.min(100, Math.max(0, (100 * (y - top)) / (base - top)));
        const more = Math.min(both, Math.max(-both, (100 * (middle - x)) / half));
        const plus = Math.round((both + more) / 2);
        ui.change({ [held.plus]: plus, [held.minus]: Math.min(100 - plus, Math.round((both - more) / 2)) });
      };
      const show = ui.picture("A triangle with the corners plus, minus and others: each head is a point, nearer to what it reads more. Beside it the weights of each head as shares of a band, and a bar for the error that is left. The sentence below says the numbers; the sliders move the points.", drag);
      ui.stage.lastElementChild.classList.add("tl-hands");
      const percent = (x) => `${Math.round(x)}%`;
      const weight = (key, name) => ui.slider(key, name, { min: 0, max: 100, show: percent });
      ui.panel.classList.add("tl-short");
      ui.panel.style = "--tl-label: 9rem";
      weight("a", "Head 1, weight on +");
      weight("b", "Head 1, weight on −");
      ui.toggle("two", "A second head").style.flexBasis = "100%";
      const rows = [weight("c", "Head 2, weight on +"), weight("d", "Head 2, weight on −")];
      // Weights of one head sum to one: what is pulled beyond that is taken from the other token.
      const last = { a: 34, c: 33 };
      const fit = (state, plus, minus) => {
        if (state[plus] + state[minus] > 100) {
          if (state[plus] !== last[plus]) state[minus] = 100 - state[plus];
          else state[plus] = 100 - state[minus];
          for (const key of [plus, minus]) ui.controls.get(key).show();
        }
        last[plus] = state[plus];
      };
      return (state, width) => {
        for (const row of rows) row.hidden = !state.two;
        fit(state, "a", "b");
        if (state.two) fit(state, "c", "d");
        const heads = headsOf(state);
        const error = left(state);
        const wide = width >= 480;
        const [top, base, middle] = [28, wide ? 214 : 170, wide ? 128 : width / 2];
        const half = wide ? 108 : 96;
        corners = { top, base, middle, half };
        const point = ([p, m]) => [middle + (m - p) * half, top + (p + m) * (base - top)];
        const arrived = ui.arrive("weights", heads.flat());
        const drawn = heads.map(({ length }, h) => arrived.slice(h * length, (h + 1) * length));
        tips = drawn.map((head, h) => ({ x: point(head)[0], y: point(head)[1], plus: "ac"[h], minus: "bd"[h] }));
        const [from, first] = wide ? [276, 40] : [4, 218];
        const room = width - from - 4;
        const [long] = ui.arrive("error", [error]);
        const below = first + (wide ? 136 : 108);
        const band = (h) => {
          const y = first + h * (wide ? 62 : 48);
          if (!heads[h]) return [text(from, y - 6, "head 2: not there yet", { anchor: "start", size: 13 }), rect(from, y, room, 26, { fill: "none", stroke: "currentColor", "stroke-dasharray": "4 4", opacity: 0.6 })];
          const parts = (head) => [head[0], head[1], Math.max(0, sum(head.slice(2)))]; // no −0
          const shares = parts(heads[h]);
          let at = from;
          return [text(from, y - 6, `head ${h + 1}`, { anchor: "start", size: 13 }), parts(drawn[h]).map((a, s) => {
            const x = at;
            at += a * room;
            const name = a * room > 74 ? ["+", "−", "others"][s] : "+−"[s];
            return [
              rect(x, y, a * room, 26, { fill: colour(s < 2 ? "weights" : "key"), "fill-opacity": s === 1 ? 0.6 : 1, stroke: "var(--pst-color-background)" }),
              a * room > 44 && text(x + (a * room) / 2, y + 18, `${name ? `${name} ` : ""}${number(100 * shares[s], 0)}%`, { size: 13, fill: s === 1 ? "currentColor" : colour(s ? "on-key" : "on-weights") })];
          })];
        };
        show(width, wide ? 242 : 364,
          path([[middle, top], [middle - half, base], [middle + half, base], [middle, top]], { "stroke-width": 1.5, opacity: 0.7 }),
          text(middle, top - 10, "others"), text(middle - half - 14, base + 6, "+", { size: 18 }), text(middle + half + 14, base + 6, "−", { size: 18 }),
          heads[1] && error < NONE && line(middle - half, tips[1].y, middle + half, tips[1].y, { stroke: colour("value"), "stroke-width": 3 }),
          heads[1] && line(tips[0].x, tips[0].y, tips[1].x, tips[1].y, { opacity: 0.5, "stroke-dasharray": "3 3" }),
          tips.map(({ x, y }, h) => [
            svg("circle", { cx: x, cy: y, r: 12, fill: colour("query"), stroke: "var(--pst-color-background)", "stroke-width": 2 }),
            text(x, y + 5, String(h + 1), { size: 13, fill: colour("on-query") }),
            svg("circle", { cx: x, cy: y, r: 22, fill: "transparent", class: "tl-grip" })]),
          band(0), band(1),
          text(from, below, "error left", { anchor: "start", size: 13 }),
          text(from + room / 2, below, "half", { size: 13 }),
          rect(from, below + 8, room, 24, { fill: "none", stroke: "currentColor" }),
          rect(from, below + 8, long * room, 24, { fill: colour("stream") }),
          line(from + room / 2, below + 4, from + room / 2, below + 36, { "stroke-dasharray": "3 3", "stroke-width": 2 }));
        const said = (x) => number(x, x >= 1 || x < 1e-4 ? 0 : x >= 0.01 ? 2 : 4); // no zero that is none: whole per cents leave more
        const read = heads.map((head, h) => `Head ${h + 1} gives ${state["ac"[h]]}% to +, ${state["bd"[h]]}% to − and ${number(100 * Math.max(0, sum(head.slice(2))), 0)}% to the others.`);
        const who = state.two ? "Together they leave" : "It leaves";
        return `${read.join(" ")} ${who} ${said(100 * error)}% of the error in the difference, with the best linear readout of what is read. The dashed line is one half.`;
      };
    },
  });
})();
