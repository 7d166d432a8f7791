// Chapter 12: drag a digit by some pixels; the columns of its patches, before and now, and what a map makes of them.
(() => {
  const { define, svg, text, line, rect, colour, number, list } = window.TformerLive;
  const { moved, patchColumns, product, sum } = window.TformerMaths;
  const [SIDE, P, LEFT, TOP] = [28, 7, 7, 3]; // LEFT and TOP: where the ink begins
  const INK = `...6961.......|...69982......|...6999981....|...1899996....|....1789992...|......17996...|.......18991..|......149993..|....56899991..|...599999995..
...699999996..|...6999999972.|...6997324995.|...123...39981|.34.....379991|19973.1599996.|1999988999991.|199999999994..|19999999994...|.56799994.....`.split(/[|\n]/);
  const digit = Array.from({ length: SIDE ** 2 }, (_, i) => Number(INK[Math.floor(i / SIDE) - TOP]?.[(i % SIDE) - LEFT]) || 0);
  // The map of the figure: each row adds up pixels with +1 or -1.
  const OMEGA = [["ink in all", () => 1], ["right − left", (x) => Math.sign(x - 3)], ["below − above", (x, y) => Math.sign(y - 3)],
    ["middle − rim", (x, y) => (x % 6 && y % 6 ? 1 : -1)]].map(([name, weight]) => [name, Array.from({ length: P * P }, (_, k) => weight(k % P, Math.floor(k / P)))]);
  const omega = OMEGA.map(([, row]) => row);
  const same = (a, b) => a.every((x, k) => x === b[k]);
  const before = patchColumns(digit, SIDE, P);
  const columns = ({ right, down }) => patchColumns(moved(digit, SIDE, right, down), SIDE, P);
  const stays = (state) => same(columns(state)[state.patch - 1], before[state.patch - 1]);
  const within = ({ right, down }) => (right || down) && Math.abs(right) < P;

  define("moved-patch", {
    digit, omega,
    state: { right: 0, down: 0, patch: 7 },
    tasks: [
      ["Eight columns hold ink. Guess first: how many of them stay as they are if the digit moves by one pixel? Drag it.", within],
      ["None, though the eye sees the same digit. Now move it by a whole patch, seven pixels to one side.", ({ right, down }) => Math.abs(right) === P && !down],
      ["The same columns, one place further. Back to a pixel or two: find a patch whose column stays.", (state) => within(state) && stays(state)],
    ],
    learned: "Only empty patches stay. A move by a few pixels writes new columns, a move by a patch sends each to the next place. That it is the same digit, moved digits have to teach.",
    build(ui) {
      let [held, boxes] = [null, {}];
      const clip = (x, most) => Math.max(-most, Math.min(most, Math.round(x)));
      const show = ui.picture("A digit in sixteen patches; one of them enlarged, with its 49 numbers. Below or beside them the sixteen columns before the move and now; lines join columns that are equal. Dots: the four numbers that a map makes of each column. The sentence below says the numbers; the sliders do what dragging does.", (x, y, down) => {
        const { unit, high, from, step, floor } = boxes;
        if (down) {
          const column = Math.floor((x - from) / step);
          held = x < SIDE * unit && y < high ? { x, y, ...ui.state } : null;
          if (!held && y > floor && column >= 0 && column < before.length) ui.change({ patch: column + 1 });
        } else if (held) ui.change({ right: clip(held.right + (x - held.x) / unit, P), down: clip(held.down + (y - held.y) / unit, 3) });
      });
      ui.panel.classList.add("tl-dense");
      const way = (more, less) => (n) => (n ? `${Math.abs(n)} ${n > 0 ? more : less}` : "0");
      ui.slider("right", "To the right", { min: -P, max: P, show: way("right", "left") });
      ui.slider("down", "Down", { min: -3, max: 3, show: way("down", "up") });
      ui.slider("patch", "Patch", { min: 1, max: before.length });
      return (state, width) => {
        const { right, down, patch } = state;
        const wide = width >= 480;
        const now = columns(state);
        const n = patch - 1;
        const u = now.map((x) => product(omega, x));
        const most = Math.max(...u.flat().map(Math.abs));
        const unit = wide ? 7 : 4.5;
        const cell = wide ? 24 : 18;
        const [px, py] = wide ? [14, 248] : [width - P * cell - 1, 22]; // of the enlarged patch
        const from = wide ? 226 : 0;
        const step = Math.min(26, (width - from - 1) / before.length);
        const thin = wide ? 2.5 : 1.3; // a number of a column
        const tall = P * P * thin;
        const first = wide ? 22 : 172;
        const second = first + tall + (wide ? 58 : 46);
        const dots = second + tall + 26;
        const row = wide ? 20 : 14;
        boxes = { unit, high: 22 + SIDE * unit, from, step, floor: first };
        const [dx, dy] = ui.arrive("moved", [right, down]);
        const corner = [((n % 4) * P), Math.floor(n / 4) * P];
        const middle = (c) => from + (c + 0.5) * step;
        const links = now.flatMap((x, c) => (sum(x) ? before.flatMap((old, s) => (same(x, old) ? [[s, c]] : [])) : []));
        const matrix = (all, y) => [
          all.map((x, c) => x.map((ink, k) => ink > 0 && rect(from + c * step + 2, y + k * thin, step - 4, thin, { fill: colour("key"), "fill-opacity": (0.25 + ink / 12).toFixed(2) }))),
          all.map((_, c) => rect(from + c * step + 2, y, step - 4, tall, { fill: "none", stroke: c === n ? colour("query") : "currentColor", "stroke-width": c === n ? 2.5 : 1, opacity: c === n ? 1 : 0.35 }))];
        const label = (x, y, words, anchor = "start") => text(x, y, words, { anchor, size: 13 });
        show(width, Math.max(dots + omega.length * row + 2, wide ? py + P * cell + 2 : 0),
          label(0, 14, "drag the digit"), label(px, py - 8, `patch ${patch}, now`),
          rect(0, 22, SIDE * unit, SIDE * unit, { fill: "#000" }),
          digit.map((ink, i) => ink > 0 && rect(((i % SIDE) + dx) * unit, 22 + (Math.floor(i / SIDE) + dy) * unit, unit + 0.3, unit + 0.3, { fill: "#fff", opacity: ink / 9 })),
          [1, 2, 3].map((k) => [line(k * P * unit, 22, k * P * unit, 22 + SIDE * unit, { stroke: "#56b4e9", opacity: 0.6 }), line(0, 22 + k * P * unit, SIDE * unit, 22 + k * P * unit, { stroke: "#56b4e9", opacity: 0.6 })]),
          rect(corner[0] * unit, 22 + corner[1] * unit, P * unit, P * unit, { fill: "none", stroke: "#56b4e9", "stroke-width": 3 }),
          rect((LEFT + dx) * unit, 22 + (TOP + dy) * unit, INK[0].length * unit, INK.length * unit, { fill: "transparent", class: "tl-grip" }),
          now[n].map((ink, k) => {
            const [x, y] = [px + (k % P) * cell, py + Math.floor(k / P) * cell];
            return [rect(x, y, cell, cell, { fill: colour("key"), "fill-opacity": ink ? (ink / 14).toFixed(2) : 0, stroke: "currentColor", "stroke-opacity": 0.25 }),
              text(x + cell / 2, y + cell / 2 + 5, String(ink), { size: 13, opacity: ink || before[n][k] ? 1 : 0.6, "font-weight": ink === before[n][k] ? 400 : 700 })];
          }),
          rect(px, py, P * cell, P * cell, { fill: "none", stroke: colour("query"), "stroke-width": 2.5 }),
          label(from, first - 8, "its columns before"), label(from, second - 8, "now"), label(from + 16 * step, second - 8, `${links.length} of the columns are found above`, "end"),
          matrix(before, first), links.map(([s, c]) => line(middle(s), first + tall + 2, middle(c), second - 24, { stroke: colour("value"), "stroke-width": 3 })), matrix(now, second),
          label(from, dots - 8, wide ? "Ωx, four numbers of each: ● above 0, ○ below" : "Ωx: ● above 0, ○ below"),
          u.map((numbers, c) => numbers.map((x, d) => svg("circle", { cx: middle(c), cy: dots + (d + 0.5) * row, r: (Math.sqrt(Math.abs(x) / most) * (row / 2 - 1.5)).toFixed(1),
            fill: x > 0 ? colour("weights") : "none", stroke: colour("weights"), "stroke-width": x ? 1.5 : 0 }))),
          rect(from + n * step + 1, dots, step - 2, omega.length * row, { fill: "none", stroke: colour("query"), "stroke-width": 2 }));
        const ink = before.filter(sum).length;
        const kept = now.filter((x, c) => sum(x) && same(x, before[c])).length;
        const differs = now[n].filter((x, k) => x !== before[n][k]).length;
        const ways = [right && `${Math.abs(right)} to the ${right > 0 ? "right" : "left"}`, down && `${Math.abs(down)} ${down > 0 ? "down" : "up"}`].filter(Boolean);
        const where = ways.length ? `Moved by ${list(ways)}` : "Not moved";
        const whole = Math.abs(right) === P && !down ? `; all ${links.length} stand again, one place ${right > 0 ? "on" : "back"}` : "";
        const made = OMEGA.map(([name], d) => `${name} ${number(u[n][d], 0)}`);
        return `${where}: of ${ink} columns with ink ${kept === ink ? "all" : kept || "none"} ${kept === 1 ? "stands" : "stand"} in ${kept === 1 ? "its" : "their"} place${whole}. In patch ${patch}, ${differs} of 49 numbers differ from before. Ω makes of it: ${list(made)}.`;
      };
    },
  });
})();
