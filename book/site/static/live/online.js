// Chapter 12: eight scores pass by in tiles; three numbers are all that is kept.
(() => {
  const { define, svg, text, line, rect, colour, number } = window.TformerLive;
  const { onlineSoftmax, random, softmax, dot } = window.TformerMaths;
  const S = 8;
  const whoMay = { full: () => true, causal: (s) => s <= 5, window: (s) => s > 1 && s <= 5 };
  const tileOf = ({ tile }) => Math.min(S, Math.max(1, Math.round(tile)));

  const numbers = (state) => {
    const chance = random(state.seed + 40);
    const tenths = new Set(); // different ones
    for (let z of chance.vector(S).map((x) => Math.round(20 * Math.max(-2.5, Math.min(2.5, x))))) {
      while (tenths.has(z)) z += 1;
      tenths.add(z);
    }
    const scores = [...tenths].map((z) => z / 10);
    const values = chance.vector(S).map((v) => Math.round(10 * v));
    if (state.order !== "drawn") scores.sort((a, b) => (state.order === "up" ? a - b : b - a));
    const allowed = scores.map((z, s) => (whoMay[state.who](s) ? z : -Infinity));
    const states = onlineSoftmax(allowed, values, tileOf(state));
    const seen = Math.min(states.length, Math.round(state.seen));
    const rises = states.slice(0, seen).filter((at, i) => at.top > (i ? states[i - 1].top : -Infinity)).length;
    return { scores, values, allowed, states, seen, rises, all: seen === states.length };
  };

  define("online-softmax", {
    state: { seen: 1, tile: 2, who: "full", order: "drawn", seed: 1 },
    tasks: [
      ["Read tile after tile. What happens to the lower bars when the maximum rises?", (state) => numbers(state).rises > 1],
      ["Guess: will the answer change with tiles of one key, or one tile of eight? Read them all.",
        (state) => [1, S].includes(state.tile) && numbers(state).all],
      ["With tiles of one key: in which order does the maximum rise only once?",
        (state) => state.tile === 1 && numbers(state).all && numbers(state).rises === 1],
    ],
    learned: "Maximum, sum and mixture are enough. When the maximum rises, what was kept shrinks by one factor, and the answer is exact for every tile.",
    build(ui) {
      let across = 1;
      const show = ui.picture("Eight scores as bars, tile by tile, with a line at the maximum so far; below them what each score counts, measured against that maximum; below that the values, each as large as it counts, and their mean so far. The sentence below says the numbers.", (x, y, down) => {
        const key = Math.min(S - 1, Math.max(0, Math.floor((x - 4) / ((across - 8) / S))));
        if (down || y < 226) ui.change({ seen: Math.floor(key / tileOf(ui.state)) + 1 });
      });
      ui.panel.classList.add("tl-short");
      const tiles = () => Math.ceil(S / tileOf(ui.state));
      ui.slider("seen", "Tiles read", { min: 0, max: tiles, show: (x) => `${Math.min(x, tiles())} of ${tiles()}` });
      ui.slider("tile", "Keys in a tile", { min: 1, max: 8 });
      ui.choice("who", "Query 6 may read", [["full", "all eight keys"], ["causal", "keys 1 to 6 (causal)"], ["window", "keys 3 to 6 (a window of 4)"]]);
      ui.choice("order", "The scores come", [["drawn", "as they were drawn"], ["up", "the smallest first"], ["down", "the largest first"]]);
      ui.button("Next tile", () => ui.change({ seen: ui.state.seen >= tiles() ? 1 : ui.state.seen + 1 }));
      ui.button("Other numbers", () => ui.change({ seed: (ui.state.seed % 9999) + 1 }));
      return (state, width) => {
        across = width;
        if (!whoMay[state.who]) state.who = "full";
        const tile = tileOf(state);
        const { scores, values, allowed, states, seen, rises, all } = numbers(state);
        const now = states[seen - 1];
        const whole = dot(softmax(allowed), values);
        const step = (width - 8) / S;
        const [base, unit, foot, axis] = [76, 11, 222, 262];
        const x = (s) => 4 + s * step;
        const spread = Math.max(10, ...values.map(Math.abs)) + 2;
        const place = (share) => width / 2 + share * (width / 2 - 16);
        const read = scores.map((_, s) => Math.floor(s / tile) < seen);
        const counts = ui.arrive("counts", allowed.map((z, s) => (read[s] && z > -Infinity ? Math.exp(z - now.top) : 0)));
        const total = Math.max(1e-9, counts.reduce((a, b) => a + b, 0));
        const high = ui.arrive("scores", scores);
        const [top] = ui.arrive("top", [now && now.top > -Infinity ? now.top : 0]);
        const [out, once, ...stand] = ui.arrive("axis", [now ? now.output : 0, whole, ...values].map((v) => v / spread));
        show(width, 290,
          text(4, 12, "scores", { anchor: "start", size: 13 }),
          scores.map((z, s) => [
            rect(x(s) + 3, base - Math.max(0, high[s]) * unit, step - 6, Math.abs(high[s]) * unit, {
              fill: read[s] && whoMay[state.who](s) ? colour("key") : "transparent", stroke: "currentColor", "stroke-dasharray": whoMay[state.who](s) ? null : "3 3" }),
            text(x(s) + step / 2, 146, number(z, 1), { size: 13 }),
            rect(x(s) + 3, foot - 52 * counts[s], step - 6, 52 * counts[s], { fill: colour("weights"), class: "tl-counts" }),
            s % tile === 0 && s > 0 && [[20, 130], [foot - 52, foot]].map(([from, to]) => line(x(s), from, x(s), to, { opacity: 0.5, "stroke-width": 2, "stroke-dasharray": "1 3" }))]),
          line(4, base, width - 4, base),
          now && now.top > -Infinity && [
            line(4, base - top * unit, width - 4, base - top * unit, { stroke: colour("stream"), "stroke-width": 2, "stroke-dasharray": "6 4" }),
            text(width - 4, 12, "dashed: the maximum so far", { anchor: "end", size: 13 })],
          text(4, 164, "what each counts, next to the maximum", { anchor: "start", size: 13 }),
          line(4, foot, width - 4, foot),
          line(16, axis, width - 16, axis, { opacity: 0.5 }),
          stand.map((v, s) => svg("circle", { cx: place(v), cy: axis, r: 3 + 13 * Math.sqrt(counts[s] / total), fill: colour("value"), "fill-opacity": read[s] ? 0.6 : 0.2 })),
          svg("circle", { cx: place(once), cy: axis, r: 10, fill: "none", stroke: "currentColor", "stroke-width": 1.5, "stroke-dasharray": "3 2" }),
          now && line(place(out), axis - 18, place(out), axis + 12, { "stroke-width": 4 }),
          text(4, axis - 22, "values", { anchor: "start", size: 13 }),
          text(width - 4, axis - 22, "line: output, ring: all at once", { anchor: "end", size: 13 }),
          [-spread + 2, 0, spread - 2].map((v) => text(place(v / spread), axis + 26, number(v, 0), { size: 12 })));
        if (!seen) return `No tile read yet. All at once the answer would be ${number(whole, 3)}.`;
        const old = seen > 1 ? `; what was kept before was multiplied by ${number(now.shrink, 3)}` : "";
        return `${all ? "All" : `${seen} of ${states.length}`} tiles read: output ${number(now.output, 3)}, maximum ${number(now.top, 1)}, sum ${number(now.total, 3)}, mixture ${number(now.mixed, 2)}${old}. `
          + `The maximum has risen ${rises === 1 ? "once" : rises === 2 ? "twice" : `${rises} times`}. All at once the answer is ${number(whole, 3)}.`;
      };
    },
  });
})();
