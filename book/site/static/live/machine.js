// Chapter 6: sizes in, shapes, parameters, bytes and operations out; published models as a start.
(() => {
  const { define, html, svg, text, line, rect, colour, number, amount, bytes } = window.TformerLive;
  const { parameters, forwardFlops, sum } = window.TformerMaths;
  const gpt = (D, H, M) => ({ D, H, G: H, F: 4 * D, M, V: 50257, places: 1024, bias: true, gated: false, rms: false, tied: true });
  const MODELS = {
    "This book's modern one": { D: 128, H: 4, G: 4, F: 341, M: 4, V: 80, places: 0, bias: false, gated: true, rms: true, tied: true },
    "GPT-2 small": gpt(768, 12, 12),
    "GPT-2 XL": gpt(1600, 25, 48),
    "GPT-3 175B": { ...gpt(12288, 96, 96), places: 2048 },
    "Llama 3 8B": { D: 4096, H: 32, G: 8, F: 14336, M: 32, V: 128256, places: 0, bias: false, gated: true, rms: true, tied: false },
  };
  const first = MODELS["GPT-2 small"];
  const whole = (x) => x.toLocaleString("en");
  // The parts of the drawing from top to bottom: the part that it counts to, the words in the box, its place.
  const PARTS = [
    ["embeddings", "embeddings", "embedding", 22, 30, 140], ["positions", "positions", "places", 22, 190, 110],
    ["norm before attention", "norms", "norm", 72, 60, 62], ["attention", "attention", "attention", 72, 140, 118],
    ["norm before the MLP", "norms", "norm", 114, 60, 62], ["MLP", "MLP", "MLP", 114, 140, 118],
    ["last norm", "norms", "norm", 164, 30, 62], ["head", "head", "head", 164, 140, 118],
  ];
  const COLOURS = { embeddings: "key", positions: "query", attention: "weights", MLP: "value", norms: "stream", head: "key" };
  // What goes in and comes out of each part, with N tokens as rows; and what it has to learn.
  const SHAPES = {
    embeddings: (c, N, n) => `${whole(N)} numbers of tokens in, ${whole(N)} × ${whole(c.D)} out: for each token its row of a table of ${whole(c.V)} × ${whole(c.D)}. ${whole(n.embeddings)} parameters.`,
    positions: (c, N, n) => (c.places ? `${whole(N)} × ${whole(c.D)} in and out: each place has a row of its own, which is added. The table has ${whole(c.places)} × ${whole(c.D)} = ${whole(n.positions)} parameters.`
      : "Nothing is added here, and nothing to learn: in attention, queries and keys are turned by their places."),
    norms: (c, N) => `${whole(N)} × ${whole(c.D)} in and out: each token is scaled by itself. ${c.rms ? c.D : `2 × ${whole(c.D)}`} parameters.`,
    attention: (c, N, n) => `${whole(N)} × ${whole(c.D)} in. Queries: ${c.H} heads of ${whole(N)} × ${c.D / c.H}; keys and values: ${c.G} ${c.G === 1 ? "head" : "heads"} of ${whole(N)} × ${c.D / c.H} each. Weights: ${c.H} × ${whole(N)} × ${whole(N)}. ${whole(N)} × ${whole(c.D)} out. ${whole(n.attention / c.M)} parameters in each block.`,
    MLP: (c, N, n) => `${whole(N)} × ${whole(c.D)} in, ${c.gated ? "twice " : ""}${whole(N)} × ${whole(c.F)} inside, ${whole(N)} × ${whole(c.D)} out: each token by itself. ${whole(n.MLP / c.M)} parameters in each block.`,
    head: (c, N, n) => `${whole(N)} × ${whole(c.D)} in, ${whole(N)} × ${whole(c.V)} logits out. ${c.tied ? "Its matrix is that of the embeddings again: no parameters of its own" : `${whole(n.head)} parameters`}.`,
  };

  // The machine that a state describes. What the sliders do not set stays as in the model begun with.
  const begun = ({ model, base }) => MODELS[model] ?? MODELS[base] ?? first;
  const sizes = (state) => {
    const from = begun(state);
    const D = state.heads * state.width;
    const F = state.model in MODELS ? from.F : Math.round(D * state.ratio);
    return { ...from, D, H: state.heads, G: (state.heads * from.G) / from.H, M: state.M, F };
  };
  const scoresShare = (c, N) => (100 * 4 * c.M * N * c.D) / forwardFlops(c, N);

  define("the-machine", {
    models: MODELS,
    state: { model: "GPT-2 small", base: "GPT-2 small", heads: 12, width: 64, ratio: 4, M: 12, N: 1024, part: "embeddings" },
    tasks: [
      ["Point at the parts: in which one does the number of tokens stand twice in one shape?", ({ part }) => part === "attention"],
      ["Guess first: twice as wide, how many times the parameters? Then set 24 heads.",
        (state) => begun(state) === first && Math.abs(sizes(state).D / (2 * first.D) - 1) < 0.05],
      ["Read more tokens, until scores and averages take half of the operations.", (state) => Math.abs(scoresShare(sizes(state), state.N) - 50) < 2],
    ],
    learned: "The width counts squared in the blocks and once in the embeddings; the number of tokens counts squared only in attention.",
    build(ui) {
      // Parts are chosen by a pointer over them, by a tap, by the tab key; what they do is their name for the ear too.
      const drawing = svg("svg", { role: "group", viewBox: "0 0 330 220", style: "max-width: 330px", "aria-label": "The machine, part by part, from tokens to logits: each part says its shapes" });
      const told = html("p", { class: "tl-shapes" });
      const both = html("div", { class: "tl-beside" }, drawing);
      const choose = (part) => part !== ui.state.part && ui.change({ part });
      const boxes = PARTS.map(([part, kind, words, y, x, width]) => svg("g", {
        role: "button", tabindex: 0, class: "tl-part", onpointerenter: () => choose(part), onfocus: () => choose(part), onclick: () => choose(part) },
        rect(x, y, width, 32, { rx: 5 }), rect(x + 5, y + 5, 7, 22, { style: `fill: ${colour(COLOURS[kind])}; stroke: none` }), text(x + width / 2 + 5, y + 21, words)));
      const block = text(272, 110, "", { anchor: "start", size: 13 });
      const arrow = (points) => svg("path", { d: points, fill: "none", stroke: "currentColor" });
      const [top, bottom] = [text(30, 14, "", { anchor: "start", size: 13 }), text(30, 214, "", { anchor: "start", size: 13 })];
      drawing.append(line(14, 18, 14, 206, { stroke: colour("stream"), "stroke-width": 5 }), rect(44, 63, 222, 92, { rx: 8, fill: "none", stroke: "currentColor", "stroke-dasharray": "5 4" }),
        ...[72, 114].map((y) => arrow(`M14 ${y + 8}H60M122 ${y + 16}H140M199 ${y + 32}V${y + 37}H14`)),
        ...[109, 151].map((y) => svg("circle", { cx: 14, cy: y, r: 5, fill: colour("stream") })),
        arrow("M14 38H30M170 38H190M14 180H30M92 180H140"), top, bottom, block, text(272, 126, "blocks", { anchor: "start", size: 13 }), ...boxes);
      const show = ui.picture("A square whose area is the number of parameters, in layers for the parts; dotted, the square of the model begun with. Beside it the share of scores in the operations, and the bytes of weights and cache. The sentence below says the numbers.");
      both.append(ui.stage.lastElementChild);
      ui.stage.append(both);
      ui.stage.after(told);
      ui.panel.classList.add("tl-dense");
      ui.choice("model", "Start from", [...Object.keys(MODELS), "own sizes"].map((name) => [name, name]), (name) => {
        const m = MODELS[name];
        return m ? { model: name, base: name, heads: m.H, width: m.D / m.H, ratio: Number((m.F / m.D).toFixed(4)), M: m.M, N: Math.max(1024, m.places) } : { model: name };
      });
      // As many heads share a key as in the model begun with.
      const sharable = (heads) => {
        const { H, G } = begun(ui.state);
        return (H / G) * Math.max(1, Math.round((heads * G) / H));
      };
      const changed = ui.change.bind(ui);
      ui.change = (values) => {
        const sized = ["heads", "width", "ratio", "M"].some((key) => key in values) && !("model" in values);
        changed(sized ? { model: "own sizes", ...values } : values);
      };
      const power = { from: Math.log2, to: (x) => Math.round(2 ** x) };
      ui.slider("heads", "Heads, H", { min: 0, max: 8, step: 0.005, from: Math.log2, to: (x) => sharable(2 ** x) });
      ui.slider("width", "Width of one, Dₕ", { min: 3, max: 8, step: 0.005, ...power });
      ui.slider("ratio", "MLP, F / D", { min: 1, max: 6, step: 0.05, show: (x) => number(x, 2) });
      ui.slider("M", "Blocks, M", { min: 0, max: 7, step: 0.01, ...power });
      ui.slider("N", "Tokens read, N", { min: 4, max: 17, step: 0.05, ...power });
      ui.state.heads = sharable(ui.state.heads);
      if (!PARTS.some(([part]) => part === ui.state.part)) ui.state.part = "embeddings";
      return (state, width) => {
        const from = begun(state);
        const c = sizes(state);
        const counts = parameters(c);
        const [, chosen] = PARTS.find(([part]) => part === state.part);
        PARTS.forEach(([part, kind], i) => {
          boxes[i].setAttribute("aria-pressed", String(part === state.part));
          boxes[i].setAttribute("aria-label", `${part}: ${SHAPES[kind](c, state.N, counts)}`);
        });
        told.textContent = `${state.part}: ${SHAPES[chosen](c, state.N, counts)}`.replace(/^./, (letter) => letter.toUpperCase());
        block.textContent = `× ${c.M}`;
        top.textContent = `${whole(state.N)} tokens`;
        bottom.textContent = `${whole(state.N)} × ${whole(c.V)} logits`;
        const all = sum(Object.values(counts));
        const then = sum(Object.values(parameters(from)));
        const kept = (4 * c.M * c.D * c.G * state.N) / c.H;
        const share = scoresShare(c, state.N);
        const name = Object.keys(MODELS).find((one) => MODELS[one] === from);
        // The square, its layers from the tokens down to the logits; beside or below it three bars.
        const narrow = width < 560;
        const [wide, side] = narrow ? [width, 110] : [width - 354, 150];
        const base = 26 + side;
        const edge = (count) => side * Math.sqrt(count / Math.max(all, then));
        const [now, old] = [edge(all), edge(then)];
        let y = base - now;
        const layers = Object.entries(counts).map(([part, count]) => {
          const high = (now * count) / all;
          const middle = (y += high) - high / 2 + 5;
          const said = `${part} ${number((100 * count) / all, 0)}%`;
          return [rect(0, y - high, now, high, { fill: colour(COLOURS[part]), "fill-opacity": 0.75, "data-key": part, onpointerenter: () => part !== "norms" && choose(part),
            stroke: part === chosen ? "currentColor" : "none", "stroke-width": 2 }), high > 17 && now > 7 * said.length && text(now / 2, middle, said, { size: 13, fill: colour("on-weights") })];
        });
        const [left, high, long] = narrow ? [side + 14, 40, width - side - 14] : [0, base + 22, wide];
        const bar = (at, words, share, role) => [text(left, at, words, { anchor: "start", size: 13 }),
          rect(left, at + 5, long, 10, { fill: "currentColor", "fill-opacity": 0.12 }), rect(left, at + 5, long * share, 10, { fill: colour(role), "data-key": role })];
        const most = Math.max(kept, 2 * all);
        show(wide, narrow ? base + 2 : base + 72,
          text(0, 14, `${amount(all)} parameters${all === then ? "" : `, ${number(all / then, all < 10 * then ? 1 : 0)} × before`}`, { anchor: "start", size: 14 }),
          layers, rect(1, base - old + 1, old - 2, old - 2, { fill: "none", stroke: "currentColor", "stroke-dasharray": "2 3", "data-key": "then" }),
          bar(high, `scores, averages: ${number(share, 1)}%`, share / 100, "weights"),
          narrow ? [bar(high + 46, `weights: ${bytes(2 * all)}`, (2 * all) / most, "key"), bar(high + 92, `cache: ${bytes(kept)}`, kept / most, "query")]
            : bar(high + 34, `cache: ${bytes(kept)}, the weights: ${bytes(2 * all)}`, kept / most, "query"));
        return `${state.model in MODELS ? state.model : `A machine made from ${name}`}, D = ${c.D}: ${amount(all)} parameters. With ${state.N.toLocaleString("en")} tokens ${number(share, 1)}% of the operations go into scores and averages, and the cache takes ${bytes(kept)}.`;
      };
    },
  });
})();
