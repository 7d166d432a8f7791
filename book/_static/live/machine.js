// Chapter 6: sizes in, shapes, parameters, bytes and operations out; published models as a start.
(() => {
  const { define, number, amount, bytes } = window.TformerLive;
  const { parameters, forwardFlops, sum } = window.TformerMaths;
  const gpt = (D, H, M) => ({ D, H, G: H, F: 4 * D, M, V: 50257, places: 1024, bias: true, gated: false, rms: false, tied: true });
  const MODELS = {
    "This book's (8b)": { D: 128, H: 4, G: 4, F: 341, M: 4, V: 80, places: 0, bias: false, gated: true, rms: true, tied: true },
    "GPT-2 small": gpt(768, 12, 12),
    "GPT-2 XL": gpt(1600, 25, 48),
    "GPT-3 175B": { ...gpt(12288, 96, 96), places: 2048 },
    "Llama 3 8B": { D: 4096, H: 32, G: 8, F: 14336, M: 32, V: 128256, places: 0, bias: false, gated: true, rms: true, tied: false },
  };
  const first = MODELS["GPT-2 small"];

  define("the-machine", {
    models: MODELS,
    state: { model: "GPT-2 small", base: "GPT-2 small", heads: 12, width: 64, ratio: 4, M: 12, N: 1024 },
    build(ui) {
      const costs = ui.table("What it costs");
      const show = ui.table("The parameters, part by part");
      const own = (change) => ({ model: "own sizes", ...change });
      ui.choice("model", "Start from", [...Object.keys(MODELS), "own sizes"].map((name) => [name, name]), (name) => {
        const m = MODELS[name];
        return m ? { model: name, base: name, heads: m.H, width: m.D / m.H, ratio: Number((m.F / m.D).toFixed(4)), M: m.M, N: Math.max(1024, m.places) } : { model: name };
      });
      // What the sliders do not set stays as in the model begun with; so does the number of heads that share a key.
      const begun = () => MODELS[ui.state.model] ?? MODELS[ui.state.base] ?? first;
      const whole = (heads) => {
        const sharing = begun().H / begun().G;
        return sharing * Math.max(1, Math.round(heads / sharing));
      };
      const changed = ui.change.bind(ui);
      ui.change = (values) => {
        const sized = ["heads", "width", "ratio", "M"].some((key) => key in values) && !("model" in values);
        changed(sized ? own(values) : values);
      };
      const power = { from: Math.log2, to: (x) => Math.round(2 ** x) };
      ui.slider("heads", "Heads, H", { min: 0, max: 8, step: 0.005, from: Math.log2, to: (x) => whole(2 ** x) });
      ui.slider("width", "Width of a head, Dₕ", { min: 3, max: 8, step: 0.005, ...power });
      ui.slider("ratio", "MLP, F / D", { min: 1, max: 6, step: 0.05, show: (x) => number(x, 2) });
      ui.slider("M", "Blocks, M", { min: 0, max: 7, step: 0.01, ...power });
      ui.slider("N", "Tokens read, N", { min: 4, max: 17, step: 0.05, ...power });
      ui.state.heads = whole(ui.state.heads);
      return (state) => {
        const from = begun();
        const D = state.heads * state.width;
        const exact = state.model in MODELS;
        const c = { ...from, D, H: state.heads, G: (state.heads * from.G) / from.H, M: state.M, F: exact ? from.F : Math.round(D * state.ratio) };
        const counts = parameters(c);
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
          part, shapes[part], n.toLocaleString("en"), `${number((100 * n) / all, 1)}%`]));
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
