// Chapter 14: a model, GPUs and a way to share; bytes on each GPU, messages, operations and days. Published runs as a start.
(() => {
  const { define, html, text, line, rect, colour, number, amount, bytes } = window.TformerLive;
  const { parameters, stepFlops, gpuMemory, messageBytes, trainingDays, sum } = window.TformerMaths;
  const gpt = (D, H, M, V, places) => ({ D, H, G: H, F: 4 * D, M, V, places, bias: true, gated: false, rms: false, tied: true });
  const llama = (M, D, H, G, F, V) => ({ D, H, G, F, M, V, places: 0, bias: false, gated: true, rms: true, tied: false });
  const GPUS = { // bytes, and dense operations a second in 16 bits
    "V100, 32 GB": [32, 125], "A100, 80 GB": [80, 312], "H100, 80 GB": [80, 989], "H200, 141 GB": [141, 989],
  };
  // Model, tokens, row length, GPU, how many, share of its rate; GPU hours that its authors state.
  const RUNS = {
    "Llama 2 7B": { c: llama(32, 4096, 32, 32, 11008, 32000), tokens: 2e12, N: 4096, gpu: "A100, 80 GB", gpus: 8, use: 45, hours: 184320 },
    "Llama 2 13B": { c: llama(40, 5120, 40, 40, 13824, 32000), tokens: 2e12, N: 4096, gpu: "A100, 80 GB", gpus: 1024, use: 45, hours: 368640 },
    "Llama 2 34B": { c: llama(48, 8192, 64, 8, 22016, 32000), tokens: 2e12, N: 4096, gpu: "A100, 80 GB", gpus: 1024, use: 45, hours: 1038336 },
    "Llama 2 70B": { c: llama(80, 8192, 64, 8, 28672, 32000), tokens: 2e12, N: 4096, gpu: "A100, 80 GB", gpus: 1024, use: 45, hours: 1720320 },
    "Llama 3.1 8B": { c: llama(32, 4096, 32, 8, 14336, 128256), tokens: 15e12, N: 8192, gpu: "H100, 80 GB", gpus: 1024, use: 40, hours: 1.46e6 },
    "Llama 3.1 70B": { c: llama(80, 8192, 64, 8, 28672, 128256), tokens: 15e12, N: 8192, gpu: "H100, 80 GB", gpus: 1024, use: 40, hours: 7.0e6 },
    "Llama 3.1 405B": { c: llama(126, 16384, 128, 8, 53248, 128256), tokens: 15.6e12, N: 8192, gpu: "H100, 80 GB", gpus: 16384, use: 40, hours: 30.84e6 },
    "GPT-3 175B": { c: gpt(12288, 96, 96, 50257, 2048), tokens: 300e9, N: 2048, gpu: "V100, 32 GB", gpus: 1024, use: 20, flops: 3.14e23 },
    "GPT-2 small": { c: gpt(768, 12, 12, 50257, 1024), tokens: 10e9, N: 1024, gpu: "A100, 80 GB", gpus: 8, use: 40 },
  };
  const PARTS = { parameters: "key", gradients: "value", optimizer: "query", gathered: "weights", activations: "stream" };
  const NAMES = { parameters: "parameters", gradients: "gradients", optimizer: "optimiser", gathered: "gathered", activations: "activations" };
  const STAGES = [["0", "nothing (DDP)"], ["1", "optimiser (ZeRO-1)"], ["2", "and gradients (ZeRO-2)"], ["3", "and parameters (ZeRO-3, FSDP)"]];
  const started = (name) => {
    const run = RUNS[name] ?? RUNS["Llama 2 7B"];
    const [memory, rate] = GPUS[run.gpu];
    return { model: name, gpu: run.gpu, gpus: run.gpus, memory, rate, use: run.use, tokens: run.tokens / 1e9, B: 1, N: run.N, half: true, stage: "0", again: false, plain: false };
  };
  const power = (x) => { // 9.22 × 10²²
    const e = Math.floor(Math.log10(x));
    const raised = String(e).replace(/\d/g, (d) => "⁰¹²³⁴⁵⁶⁷⁸⁹"[d]);
    return `${(x / 10 ** e).toFixed(2)} × 10${raised}`;
  };
  const time = (days) => (days >= 365 ? `${number(days / 365.25, 1)} years` : days >= 1 ? `${number(days, 1)} days`
    : days >= 1 / 24 ? `${number(24 * days, 1)} hours` : `${number(1440 * days, 1)} minutes`);
  const log = { from: Math.log2, to: (x) => Math.round(2 ** x) };
  const small = (x) => (x >= 100 ? Math.round(x) : x >= 1 ? Number(x.toFixed(1)) : Number(x.toFixed(3)));

  define("calculator", {
    runs: RUNS, gpus: GPUS,
    state: { ...started("Llama 2 7B"), link: 300 },
    build(ui) {
      const show = ui.picture("A bar: the bytes on one GPU, part by part, beside a line for the memory that it has. The table has the numbers.");
      const table = ui.table("On each GPU");
      const side = html("div", { class: "tl-side" });
      ui.stage.firstElementChild.classList.add("tl-stays");
      ui.stage.append(html("div", { class: "tl-beside" }, ui.stage.lastElementChild, side), ui.panel);
      side.append(ui.choice("model", "Model", Object.keys(RUNS).map((name) => [name, name]), started));
      side.append(ui.choice("gpu", "GPU", [...Object.keys(GPUS), "another"].map((name) => [name, name]), (gpu) => {
        const [memory, rate] = GPUS[gpu] ?? [ui.state.memory, ui.state.rate];
        return { gpu, memory, rate };
      }));
      side.append(ui.choice("stage", "Shared out", STAGES));
      ui.slider("gpus", "GPUs", { min: 0, max: 15, show: (x) => x.toLocaleString("en"), ...log });
      ui.slider("B", "Rows on each GPU, B", { min: 0, max: 10, show: (x) => x.toLocaleString("en"), ...log });
      ui.slider("N", "Tokens in a row, N", { min: 5, max: 17, show: (x) => x.toLocaleString("en"), ...log });
      ui.slider("tokens", "Tokens in all", { min: -4, max: 15, step: 0.02, from: Math.log2, to: (x) => small(2 ** x), show: (x) => amount(x * 1e9) });
      ui.slider("use", "Utilisation", { min: 1, max: 100, show: (x) => `${x}%` });
      ui.slider("memory", "Memory of a GPU", { min: 8, max: 288, show: (x) => `${x} GB` });
      ui.slider("rate", "Operations a second", { min: 10, max: 2500, step: 1, show: (x) => `${x.toLocaleString("en")} × 10¹²` });
      ui.slider("link", "Link of each GPU, one way", { min: 0, max: 10, step: 0.04, from: Math.log2, to: (x) => Math.round(2 ** x), show: (x) => `${x.toLocaleString("en")} GB/s` });
      side.append(ui.toggle("half", "16 bits, with a float32 copy"),
        ui.toggle("again", "Compute each block again"),
        ui.toggle("plain", "Keep attention's weights (not fused)"));
      const changed = ui.change.bind(ui);
      ui.change = (values) => changed(("memory" in values || "rate" in values) && !("gpu" in values) ? { ...values, gpu: "another" } : values);
      return (state, width) => {
        const { gpus, B, N, half, again, plain } = state;
        const run = RUNS[state.model];
        const c = run.c;
        const parts = gpuMemory(c, B, N, { gpus, stage: Number(state.stage), half, again, plain });
        const all = sum(Object.values(parts));
        const room = state.memory * 1e9;
        const scale = (width - 4) / Math.max(all, room);
        let x = 2;
        show(width, 78,
          Object.entries(parts).map(([part, size]) => {
            const bar = rect(x, 28, size * scale, 34, { fill: colour(PARTS[part]) });
            x += size * scale;
            return bar;
          }),
          line(2 + room * scale, 22, 2 + room * scale, 70, { "stroke-width": 3 }),
          text(2, 12, `needs ${bytes(all)}`, { anchor: "start" }),
          text(width - 2, 12, `has ${bytes(room)} (line)`, { anchor: "end" }));
        const chip = (part) => html("span", {}, html("span", { "aria-hidden": "true", style: `display: inline-block; width: .8em; height: .8em; margin-right: .4em; background: ${colour(PARTS[part])}` }), NAMES[part]);
        const count = sum(Object.values(parameters(c)));
        table(["part", "bytes", "share"], [
          ...Object.entries(parts).map(([part, size]) => [chip(part), bytes(Math.round(size)), `${number((100 * size) / all, 1)}%`]),
          ["all", bytes(Math.round(all)), "100.0%"]]);
        const flops = (state.tokens * 1e9 / N) * stepFlops(c, 1, N, again);
        const days = trainingDays(flops, gpus, state.rate * 1e12, state.use / 100);
        const hours = 24 * gpus * days;
        const asRun = !again && state.N === run.N && state.tokens === run.tokens / 1e9 && state.gpu === run.gpu;
        const off = !asRun ? null : run.hours ? hours / run.hours - 1 : run.flops ? flops / run.flops - 1 : null;
        const stated = off === null ? "" : ` Its authors state ${run.hours ? `${amount(run.hours)} GPU hours` : `${power(run.flops)} operations`}, so this is ${off === 0 ? "the same" : `${number(Math.abs(100 * off), 1)}% ${off < 0 ? "less" : "more"}`}.`;
        const sent = messageBytes(c, { gpus, stage: Number(state.stage), half });
        const products = (x) => x / (state.rate * 1e12 * (state.use / 100));
        const work = stepFlops(c, B, N, again);
        const once = again ? ` Without what is computed again ${number((state.use * stepFlops(c, B, N)) / work, 1)}% of the rate is reached: the model FLOPs utilisation.` : "";
        const says = gpus === 1 ? "One GPU has nobody to send to" : `In a step each sends ${bytes(Math.round(sent))}, ${number(sent / (state.link * 1e9), 2)} s over its link`;
        return `${state.model}, ${amount(count)} parameters, on ${gpus.toLocaleString("en")} ${gpus === 1 ? "GPU" : "GPUs"}: each needs ${bytes(Math.round(all))} and has ${bytes(room)}, so it ${all <= room ? "fits" : "does not fit"}. `
          + `${says}; its products take ${number(products(work), 2)} s.${once} `
          + `${amount(state.tokens * 1e9)} tokens take ${power(flops)} operations, ${time(days)} or ${amount(Math.round(hours))} GPU hours.${stated}`;
      };
    },
  });
})();
