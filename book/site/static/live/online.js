// Chapter 12: eight scores pass by in tiles; three numbers are all that is kept.
(() => {
  const { define, text, line, rect, colour, number } = window.TformerLive;
  const { onlineSoftmax, random, softmax, dot } = window.TformerMaths;
  const S = 8;
  const whoMay = { full: () => true, causal: (s) => s <= 5, window: (s) => s > 1 && s <= 5 };

  define("online-softmax", {
    state: { seen: 0, tile: 2, who: "full", order: "drawn", seed: 1 },
    build(ui) {
      const show = ui.picture("Eight scores as bars; those that have passed by are filled, forbidden ones are empty. The table and the sentence below say the numbers.");
      const rows = ui.table("What is kept after each tile");
      const tiles = () => Math.ceil(S / Math.min(S, Math.max(1, Math.round(ui.state.tile))));
      ui.slider("seen", "Tiles read", { min: 0, max: tiles, show: (x) => `${Math.min(x, tiles())} of ${tiles()}` });
      ui.slider("tile", "Keys in a tile", { min: 1, max: 8 });
      ui.choice("who", "The query, at place 6, may read", [["full", "all eight keys"], ["causal", "keys 1 to 6 (causal)"], ["window", "keys 3 to 6 (a window of 4)"]]);
      ui.choice("order", "The scores come", [["drawn", "as they were drawn"], ["up", "the smallest first"], ["down", "the largest first"]]);
      ui.button("Next tile", () => ui.change({ seen: ui.state.seen >= tiles() ? 1 : ui.state.seen + 1 }));
      ui.button("Other numbers", () => ui.change({ seed: (ui.state.seed % 9999) + 1 }));
      return (state, width) => {
        const { seed, who, order } = state;
        const tile = Math.min(8, Math.max(1, Math.round(state.tile)));
        const chance = random(seed + 40);
        const tenths = new Set(); // different ones
        for (let z of chance.vector(S).map((x) => Math.round(20 * Math.max(-2.5, Math.min(2.5, x))))) {
          while (tenths.has(z)) z += 1;
          tenths.add(z);
        }
        const scores = [...tenths].map((z) => z / 10);
        const values = chance.vector(S).map((v) => Math.round(10 * v));
        if (order !== "drawn") scores.sort((a, b) => (order === "up" ? a - b : b - a));
        const allowed = scores.map((z, s) => (whoMay[who](s) ? z : -Infinity));
        const states = onlineSoftmax(allowed, values, tile);
        const seen = Math.min(states.length, Math.round(state.seen));
        const [base, unit, step] = [92, 13, (width - 8) / S];
        show(width, 220, scores.map((z, s) => {
          const read = Math.floor(s / tile) < seen;
          const x = 4 + s * step;
          return [
            rect(x + 3, z > 0 ? base - z * unit : base, step - 6, Math.abs(z) * unit, {
              fill: read && whoMay[who](s) ? colour("weights") : "none", stroke: "currentColor", "stroke-dasharray": whoMay[who](s) ? null : "3 3" }),
            text(x + step / 2, 178, number(z, 1), { size: 13 }),
            text(x + step / 2, 200, number(values[s], 0), { size: 13 }),
            s % tile === 0 && s > 0 && line(x, 24, x, 206, { opacity: 0.5, "stroke-width": 2 })];
        }), line(4, base, width - 4, base),
        text(4, 12, "scores z as bars and numbers, values v below", { anchor: "start", size: 13 }));
        rows(["tile", "kept ×", "max", "sum", "mixture", "output"], states.map((at, i) => (i < seen
          ? [String(i + 1), i ? number(at.shrink, 3) : "–", number(at.top, 1), number(at.total, 3), number(at.mixed, 2), number(at.output, 3)]
          : [String(i + 1), ...Array(5).fill("–")]))); // rows for all tiles: the controls below stay where they are
        const whole = dot(softmax(allowed), values);
        if (!seen) return `No tile read yet. All at once the answer would be ${number(whole, 3)}.`;
        const rises = states.slice(0, seen).filter((at, i) => at.top > (i ? states[i - 1].top : -Infinity)).length;
        const at = states[seen - 1];
        const old = seen > 1 ? `; what was kept before was multiplied by ${number(at.shrink, 3)}` : "";
        return `${seen < states.length ? `${seen} of ${states.length}` : "All"} tiles read: output ${number(at.output, 3)}, maximum ${number(at.top, 1)}, sum ${number(at.total, 3)}, mixture ${number(at.mixed, 2)}${old}. `
          + `The maximum has risen ${rises === 1 ? "once" : rises === 2 ? "twice" : `${rises} times`}. All at once the answer is ${number(whole, 3)}.`;
      };
    },
  });
})();
