// Chapter 4: what of the gradient arrives at the first block, against depth, in six kinds of stack. Recorded.
(() => {
  const { define, html, svg, text, line, path, colour, number } = window.TformerLive;
  const POWERS = window.TformerGradients; // of ten, for 1 to 64 blocks: [gradients, own shares]
  const DEEP = 64;
  const SUBLAYER = { "skip none": "x + f(x)", "skip pre": "x + f(norm(x))", "skip post": "norm(x + f(x))", "alone none": "f(x)", "alone pre": "f(norm(x))", "alone post": "norm(f(x))" };
  const NORMS = [["none", "no norm"], ["pre", "before f"], ["post", "after"]];
  const ROUNDING = -14.5; // of a share: there is nothing left
  const kind = ({ skip, norm }) => `${skip} ${norm}`;
  const at = (state, row = 0) => POWERS[kind(state)][row][state.depth - 1];
  const power = (e) => `10${[...String(Math.round(e))].map((c) => (c === "-" ? "⁻" : "⁰¹²³⁴⁵⁶⁷⁸⁹"[c])).join("")}`;
  const times = (e) => (Math.abs(e) < 2 ? String(Number((10 ** e).toPrecision(2))) : power(e));
  const share = (e) => (e < ROUNDING ? "nothing" : e > -3 ? `${number(100 * 10 ** e, e > -1 ? 0 : 1)}%` : power(e));
  const first = POWERS["alone none"][0].findIndex((e) => e < -6) + 1;

  define("gradient-back", {
    state: { skip: "alone", norm: "none", depth: 4 },
    tasks: [
      ["Neither skip nor norm. Guess first: from how many blocks on does less than a millionth arrive? Drag the line there.",
        (state) => kind(state) === "alone none" && Math.abs(state.depth - first) <= 1,
        (state) => kind(state) === "alone none" && state.depth > first + 1 && `Of ${state.depth} blocks only ${times(at(state))}. Where does it fall below a millionth, 10⁻⁶?`],
      ["Switch the skip on. Guess first: does the gradient arrive as it was? Take 64 blocks.", (state) => kind(state) === "skip none" && state.depth === DEEP],
      ["It explodes. With which norm does it keep its size, and the tokens something of their own?",
        (state) => kind(state) === "skip pre" && state.depth === DEEP,
        (state) => state.norm !== "none" && state.depth === DEEP && `The size is right, but look below: ${at(state, 1) < ROUNDING ? "all tokens are alike" : `only ${share(at(state, 1))} of the tokens is their own`}.`],
    ],
    learned: "Without a skip the gradient dies away, with a skip alone it explodes; a norm keeps its size wherever it stands. Before training, only a skip with the norm before f keeps the tokens apart as well.",
    build(ui) {
      let depth; // from a place to a number of blocks
      ui.stage.append(html("div", { class: "tl-beside" }, ui.buttons("skip", "Skip connection", [["alone", "no skip"], ["skip", "skip"]]), ui.buttons("norm", "Norm", NORMS)));
      const show = ui.picture("Two charts against the number of blocks, 1 to 64, on logarithmic axes: above, the gradient at the first block over that at the end; below, the share of the tokens that is their own at the end. The chosen stack in colour, five others thin. The sentence below says the numbers; drag the line to change the depth.", (x) => ui.change({ depth: Math.max(1, Math.min(DEEP, Math.round(depth(x)))) }));
      ui.panel.classList.add("tl-short");
      ui.slider("depth", "Blocks", { min: 1, max: DEEP });
      return (state, width) => {
        const [left, right] = [48, width - 14];
        const wide = width >= 480;
        const x = (n) => left + ((n - 1) / (DEEP - 1)) * (right - left);
        depth = (px) => 1 + ((px - left) / (right - left)) * (DEEP - 1);
        const panels = [[48, wide ? 200 : 170, 20, -30, [10, 0, -10, -20]], [wide ? 290 : 258, wide ? 96 : 80, 0, -15, [0, -5, -10, -15]]];
        const place = ([top, high, most, least]) => (e) => top + ((most - e) / (most - least)) * high;
        const now = ui.arrive("curves", [state.depth, ...POWERS[kind(state)].flat()]);
        const chosen = [now.slice(1, 1 + DEEP), now.slice(1 + DEEP)];
        const roles = ["query", "value"];
        const titles = ["gradient at the first block (at the end: 1)", "share of the tokens that is their own at the end"];
        const between = now[0] - 1;
        const value = (row) => chosen[row][Math.floor(between)] + (between % 1) * ((chosen[row][Math.ceil(between)] ?? 0) - chosen[row][Math.floor(between)]);
        const bottom = panels[1][0] + panels[1][1];
        const beside = x(now[0]) > width - 90;
        show(width, bottom + 24,
          text(left, 14, `each sublayer: ${SUBLAYER[kind(state)]}`, { anchor: "start", size: 15, "font-weight": 600 }),
          panels.map((panel, row) => {
            const y = place(panel);
            return [
              text(left, panel[0] - 8, titles[row], { anchor: "start", size: 13 }),
              panel[4].map((e) => [line(left, y(e), right, y(e), { opacity: e ? 0.2 : 0.6 }), text(left - 6, y(e) + 5, e ? power(e) : "1", { anchor: "end", size: 13 })]),
              Object.values(POWERS).map((curves) => path(curves[row].map((e, i) => [x(i + 1), y(e)]), { "stroke-width": 1, opacity: 0.4 })),
              path(chosen[row].map((e, i) => [x(i + 1), y(e)]), { stroke: colour(roles[row]), "stroke-width": 4 })];
          }),
          [1, 16, 32, 48, 64].map((n) => text(x(n), bottom + 20, n === 1 ? "1 block" : n, { size: 13, anchor: n === 1 ? "start" : "middle" })),
          line(x(now[0]), panels[0][0], x(now[0]), bottom, { stroke: "currentColor", "stroke-dasharray": "4 4" }),
          panels.map((panel, row) => {
            const cy = place(panel)(value(row));
            const high = cy < panel[0] + 22 ? cy + 24 : cy - 12;
            return [svg("circle", { cx: x(now[0]), cy, r: 8, fill: colour(roles[row]), stroke: "var(--pst-color-background)", "stroke-width": 2 }),
              text(x(now[0]) + (beside ? -10 : 10), high, (row ? share : times)(at(state, row)), { anchor: beside ? "end" : "start", size: 15, "font-weight": 700, stroke: "var(--pst-color-background)", "stroke-width": 4, "paint-order": "stroke" })];
          }),
          svg("rect", { x: x(now[0]) - 16, y: panels[0][0], width: 32, height: bottom - panels[0][0], fill: "transparent", class: "tl-grip" }));
        const own = at(state, 1);
        return `${state.skip === "skip" ? "With" : "Without"} a skip, ${{ none: "no norm", pre: "norm before f", post: "norm after" }[state.norm]}, ${state.depth} ${state.depth === 1 ? "block" : "blocks"}: the gradient that arrives at the first block is ${times(at(state))} times as long as that at the end. ${own < ROUNDING ? "Nothing" : share(own)} of the tokens is their own there.`;
      };
    },
  });
})();
