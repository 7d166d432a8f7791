// Chapter 2: drag the hour, and the bell that says how near is near; weights and answer follow.
(() => {
  const { define, svg, text, line, rect, path, colour, number } = window.TformerLive;
  const { softLookup } = window.TformerMaths;
  const keys = [6, 9, 12, 15, 18];
  const values = [8, 12, 17, 19, 15];
  const hour = (x) => `${Math.floor(x + 1e-9)}:${String(Math.round((x % 1) * 60)).padStart(2, "0")}`;
  const [EARLY, LATE] = [4, 20];
  const [NARROW, WIDE] = [-1.3, 2.4]; // of the logarithm of the bandwidth
  const weights = ({ q, h }) => softLookup(q, keys, values, h).weights;

  define("soft-dictionary", {
    state: { q: 7, h: 1.5 },
    tasks: [
      ["How warm was it at ten? Nobody looked. Drag the hour to 10:00.", ({ q }) => q === 10],
      ["Drag the ring: let one measurement give the whole answer.",
        (state) => Math.max(...weights(state)) > 0.99],
      ["Now the other way: at which bandwidth does the hour hardly matter?",
        (state) => Math.max(...weights(state)) - Math.min(...weights(state)) < 0.1],
    ],
    learned: "A lookup that always answers is an average. One number, the bandwidth, leads from the nearest key to the mean of all.",
    build(ui) {
      let at; // from pixels to hours
      let ring = [0, 0];
      let held = "q"; // what the pointer holds
      const show = ui.picture("Five temperatures of a day and the answer of the lookup at every hour; below them a bell around the hour that is asked, and the five weights. The sentence below says the numbers.", (x, y, down) => {
        if (down) held = Math.hypot(x - ring[0], y - ring[1]) < 24 ? "h" : "q";
        const t = at(x);
        if (held === "q") ui.change({ q: Math.min(LATE, Math.max(EARLY, Math.round(4 * t) / 4)) });
        else ui.change({ h: Number(Math.min(Math.exp(WIDE), Math.max(Math.exp(NARROW), Math.abs(t - ui.state.q))).toFixed(2)) });
      });
      ui.slider("q", "Query q", { min: EARLY, max: LATE, step: 0.25, show: hour });
      ui.slider("h", "Bandwidth h", { min: NARROW, max: WIDE, step: 0.02, from: Math.log, to: (x) => Number(Math.exp(x).toFixed(2)),
        show: (h) => `${number(h, 2)} h` });
      return ({ q, h }, width) => {
        const [left, right, top, base] = [38, 20, 52, width < 480 ? 228 : 252]; // the first screen of a phone has more to show
        const floor = base + 76; // on which the weights stand
        const x = (t) => left + ((t - EARLY) / (LATE - EARLY)) * (width - left - right);
        const y = (v) => base - 52 - ((v - 8) / 12) * (base - 52 - top);
        at = (px) => EARLY + ((px - left) / (width - left - right)) * (LATE - EARLY);
        const now = softLookup(q, keys, values, h);
        const said = [hour(q), `${number(now.answer, 1)}°`];
        const shares = keys.map((k, s) => `${k}:00 ${number(now.weights[s])}`).join(", ");
        const read = now.weights.map((a) => `${number(100 * a, 0)}%`);
        const fresh = h === ui.start.h; // nobody has dragged the ring
        [q, h] = ui.arrive("asked", [q, h]); // what is drawn is a lookup on the way too
        const found = softLookup(q, keys, values, h);
        const hours = Array.from({ length: 321 }, (_, i) => EARLY + i / 20);
        const bell = (t) => base - 44 * Math.exp(-((t - q) ** 2) / (2 * h * h));
        const side = q + h <= LATE ? q + h : Math.max(EARLY, q - h);
        ring = [x(side), bell(side)];
        const named = ring[0] < width - 150; // there is room for its name on the right
        const ball = [x(q), y(found.answer)];
        const far = (k, v, off) => Math.hypot(ball[0] - x(k), ball[1] - y(v) - off); // from the number beside a dot
        const beside = (k, v) => (far(k, v, -18) < Math.min(26, far(k, v, 19)) ? 24 : -13); // above it, or below
        const pill = Math.min(width - right - 62, Math.max(left + 62, x(q)));
        show(width, base + 92,
          [8, 12, 16, 20].map((v) => [text(left - 8, y(v) + 5, `${v}°`, { anchor: "end", opacity: 0.7 }), line(left, y(v), width - right, y(v), { opacity: 0.15 })]),
          path([[x(EARLY), base], ...hours.map((t) => [x(t), bell(t)]), [x(LATE), base]], { stroke: "none", fill: colour("query"), "fill-opacity": 0.16 }),
          path(hours.map((t) => [x(t), y(softLookup(t, keys, values, h).answer)]), { "stroke-dasharray": "2 4", "stroke-width": 1.5 }),
          line(left, base, width - right, base, { opacity: 0.5 }),
          keys.map((k, s) => found.weights[s] > 0.005 && line(x(k), y(values[s]), ...ball, { stroke: colour("weights"), "stroke-width": 1 + 12 * found.weights[s], "stroke-linecap": "round" })),
          line(x(q), top - 18, x(q), base, { stroke: colour("query"), "stroke-width": 2 }),
          keys.map((k, s) => [
            svg("circle", { cx: x(k), cy: y(values[s]), r: 7, fill: colour("value") }),
            text(x(k), y(values[s]) + beside(k, values[s]), `${values[s]}°`),
            rect(x(k) - 3, base - 5, 6, 10, { fill: colour("key") }),
            text(x(k), base + 22, `${k}:00`),
            rect(x(k) - 13, floor - 40 * found.weights[s], 26, 40 * found.weights[s], { fill: colour("weights") }),
            text(x(k), floor + 15, read[s], { size: 13 }),
          ]),
          line(left, floor, width - right, floor, { opacity: 0.5 }),
          svg("circle", { cx: ring[0], cy: ring[1], r: 8, fill: "var(--pst-color-background)", stroke: colour("query"), "stroke-width": 2.5, class: "tl-grip" }),
          fresh && text(ring[0] + (named ? 15 : -15), ring[1] + 5, `bandwidth ${number(h, 1)} h`, { size: 13, anchor: named ? "start" : "end" }),
          svg("circle", { cx: ball[0], cy: ball[1], r: 9, fill: colour("query"), stroke: "var(--pst-color-background)", "stroke-width": 2, class: "tl-grip" }),
          rect(pill - 60, 4, 120, 30, { rx: 15, fill: colour("query"), class: "tl-grip" }),
          text(pill, 24, said.join(" → "), { size: 15, fill: colour("on-query") }),
        );
        return `At ${said.join(" the answer is ")}. Weights: ${shares}.`;
      };
    },
  });
})();
