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
  // The parts of the drawing from top to bottom: the row of the table, the words in the box, its place.
  const PARTS = [
    ["embeddings", "embeddings", "embedding", 40, 30, 140], ["positions", "positions", "places", 40, 190, 110],
    ["norm before attention", "norms", "norm", 104, 60, 62], ["attention", "attention", "attention", 104, 140, 118],
    ["norm before the MLP", "norms", "norm", 164, 60, 62], ["MLP", "MLP", "MLP", 164, 140, 118],
    ["last norm", "norms", "norm", 228, 30, 62], ["head", "head", "head", 228, 140, 118],
  ];
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

  define("the-machine", {
    models: MODELS,
    state: { model: "GPT-2 small", base: "GPT-2 small", heads: 12, width: 64, ratio: 4, M: 12, N: 1024, part: "attention" },
    build(ui) {
      // Parts are chosen by a pointer over them, by a tap, by the tab key; what they do is their name for the ear too.
      const drawing = svg("svg", { role: "group", "aria-label": "The machine, part by part, from tokens to logits: each part says its shapes" });
      const told = html("p", { class: "tl-shapes" });
      ui.stage.append(drawing, told);
      const choose = (part) => part !== ui.state.part && ui.change({ part });
      const boxes = PARTS.map(([part, , words, y, x, width]) => svg("g", {
        role: "button", tabindex: 0, class: "tl-part", onpointerenter: () => choose(part), onfocus: () => choose(part), onclick: () => choose(part) },
        rect(x, y, width, 36, { rx: 5 }), text(x + width / 2, y + 23, words)));
      const block = text(272, 150, "", { anchor: "start", size: 13 });
      const stream = (y1, y2) => line(14, y1, 14, y2, { stroke: colour("stream"), "stroke-width": 5 });
      const arrow = (points) => svg("path", { d: points, fill: "none", stroke: "currentColor" });
      const [top, bottom] = [text(30, 22, "", { anchor: "start", size: 13 }), text(30, 292, "", { anchor: "start", size: 13 })];
      drawing.append(stream(28, 278), rect(44, 92, 222, 120, { rx: 8, fill: "none", stroke: "currentColor", "stroke-dasharray": "5 4" }),
        ...[104, 164].map((y) => arrow(`M14 ${y + 10}H60M122 ${y + 18}H140M199 ${y + 36}V${y + 44}H14`)),
        ...[148, 208].map((y) => svg("circle", { cx: 14, cy: y, r: 6, fill: colour("stream") })),
        arrow("M14 58H30M170 58H190M14 246H30M92 246H140"), top, bottom, block, text(272, 166, "blocks", { anchor: "start", size: 13 }), ...boxes);
      const costs = ui.table("What it costs");
      const show = ui.table("The parameters, part by part");
      const own = (change) => ({ model: "own sizes", ...change });
      ui.choice("model", "Start from", [...Object.keys(MODELS), "own sizes"].map((name) => [name, name]), (name) => {
        const m = MODELS[name];
        return m ? { model: name, base: name, heads: m.H, width: m.D / m.H, ratio: Number((m.F / m.D).toFixed(4)), M: m.M, N: Math.max(1024, m.places) } : { model: name };
      });
      // What the sliders do not set stays as in the model begun with; so does the number of heads that share a key.
      const begun = () => MODELS[ui.state.model] ?? MODELS[ui.state.base] ?? first;
      const sharable = (heads) => {
        const sharing = begun().H / begun().G;
        return sharing * Math.max(1, Math.round(heads / sharing));
      };
      const changed = ui.change.bind(ui);
      ui.change = (values) => {
        const sized = ["heads", "width", "ratio", "M"].some((key) => key in values) && !("model" in values);
        changed(sized ? own(values) : values);
      };
      const power = { from: Math.log2, to: (x) => Math.round(2 ** x) };
      ui.slider("heads", "Heads, H", { min: 0, max: 8, step: 0.005, from: Math.log2, to: (x) => sharable(2 ** x) });
      ui.slider("width", "Width of a head, Dₕ", { min: 3, max: 8, step: 0.005, ...power });
      ui.slider("ratio", "MLP, F / D", { min: 1, max: 6, step: 0.05, show: (x) => number(x, 2) });
      ui.slider("M", "Blocks, M", { min: 0, max: 7, step: 0.01, ...power });
      ui.slider("N", "Tokens read, N", { min: 4, max: 17, step: 0.05, ...power });
      ui.state.heads = sharable(ui.state.heads);
      if (!PARTS.some(([part]) => part === ui.state.part)) ui.state.part = "attention";
      return (state, width) => {
        const from = begun();
        const D = state.heads * state.width;
        const exact = state.model in MODELS;
        const c = { ...from, D, H: state.heads, G: (state.heads * from.G) / from.H, M: state.M, F: exact ? from.F : Math.round(D * state.ratio) };
        const counts = parameters(c);
        const [, row] = PARTS.find(([part]) => part === state.part);
        drawing.setAttribute("viewBox", "0 0 330 300");
        drawing.style.maxWidth = `${Math.min(width, 400)}px`;
        PARTS.forEach(([part, kind], i) => {
          boxes[i].setAttribute("aria-pressed", String(part === state.part));
          boxes[i].setAttribute("aria-label", `${part}: ${SHAPES[kind](c, state.N, counts)}`);
        });
        told.textContent = `${state.part}: ${SHAPES[row](c, state.N, counts)}`.replace(/^./, (letter) => letter.toUpperCase());
        block.textContent = `× ${c.M}`;
        top.textContent = `${whole(state.N)} tokens`;
        bottom.textContent = `${whole(state.N)} × ${whole(c.V)} logits`;
        const all = sum(Object.values(counts));
        const kv = (D / c.H) * c.G;
        const extra = c.bias ? ", biases" : "";
        const shapes = {
          embeddings: `${c.V.toLocaleString("en")} × ${D}`,
          positions: c.places ? `${c.places} × ${D}` : "none: queries and keys are turned",
          attention: `each block: 2 × (${D} × ${D}), 2 × (${kv} × ${D})${extra}${c.G < c.H ? `; ${c.G} ${c.G === 1 ? "head" : "heads"} of keys` : ""}`,
          MLP: `each block: ${c.gated ? 3 : 2} × (${c.F} × ${D})${extra}`,
          norms: `${2 * c.M + 1} × ${c.rms ? D : `2 × ${D}`}`,
          head: c.tied ? "the embeddings again" : `${c.V.toLocaleString("en")} × ${D}`,
        };
        show(["part", "weights", "parameters", "share"], Object.entries(counts).map(([part, n]) => [
          part, shapes[part], n.toLocaleString("en"), `${number((100 * n) / all, 1)}%`]), (i) => (Object.keys(counts)[i] === row ? "tl-new" : ""));
        const forward = forwardFlops(c, state.N);
        const kept = 2 * c.M * kv * state.N;
        const share = number((100 * 4 * c.M * state.N * D) / forward, 1);
        costs(["quantity", "how much"], [
          ["parameters", `${amount(all)} (${all.toLocaleString("en")})`],
          ["weights in 16 bits", bytes(2 * all)],
          ["training with AdamW: weights, gradients, two averages in 32 bits", bytes(16 * all)],
          ["operations for one token, forward", amount(forward)],
          ["of them for scores and averages", `${share}%`],
          [`cache for ${state.N.toLocaleString("en")} tokens in 16 bits`, bytes(2 * kept)],
        ]);
        return `${exact ? state.model : `A machine made from ${Object.keys(MODELS).find((name) => MODELS[name] === from)}`}, D = ${D}: ${amount(all)} parameters. With ${state.N.toLocaleString("en")} tokens ${share}% of the operations go into scores and averages, and the cache takes ${bytes(2 * kept)}.`;
      };
    },
  });
})();
