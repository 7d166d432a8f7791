// Chapter 14: a model, GPUs and a way to share; bytes on each GPU, messages, operations and days. Published runs as a start.
(() => {
  const { define, html, svg, text, line, rect, colour, number, amount, bytes } = window.TformerLive;
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
  const STAGES = [["0", "DDP: nothing"], ["1", "ZeRO-1: optimiser"], ["2", "ZeRO-2: and gradients"], ["3", "ZeRO-3: all (FSDP)"]];
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

  // What a state costs: bytes on each GPU, seconds of messages and of products in a step, days of the training.
  const costs = (state) => {
    const { gpus, B, N, half, again, plain } = state;
    const run = RUNS[state.model];
    const stage = Number(state.stage);
    const parts = gpuMemory(run.c, B, N, { gpus, stage, half, again, plain });
    const rate = state.rate * 1e12 * (state.use / 100);
    const flops = (state.tokens * 1e9 / N) * stepFlops(run.c, 1, N, again);
    const work = stepFlops(run.c, B, N, again);
    const sent = messageBytes(run.c, { gpus, stage, half });
    return { run, parts, all: sum(Object.values(parts)), room: state.memory * 1e9, flops, work, sent, sending: sent / (state.link * 1e9), products: work / rate,
      days: trainingDays(flops, gpus, state.rate * 1e12, state.use / 100) };
  };
  const LONGEST = 15; // the power of two of the greatest number of GPUs
  const DAYS = [[1 / 24, "hour"], [1, "day"], [30.4, "month"], [365.25, "year"], [36525, "century"]];
  const [SOON, LATE] = [-4.5, 12]; // natural logarithms of days

  define("calculator", {
    runs: RUNS, gpus: GPUS,
    state: { ...started("Llama 2 7B"), link: 300 },
    tasks: [
      ["It does not fit. Share out one part after the other between the eight GPUs until it does.",
        (state) => { const { all, room } = costs(state); return state.stage !== "0" && all <= room; }],
      ["How many GPUs train it in a month? Guess, then drag the dot.", (state) => Math.abs(costs(state).days - 30) < 6],
      ["Slow the link down until a step waits for its messages.", (state) => { const { sending, products } = costs(state); return sending > products; }],
    ],
    learned: "Sharing divides the bytes, more GPUs divide the days, and what each of them sends stays: over a slow link messages set the pace.",
    build(ui) {
      let reached; // from a place on the line of days to the number of GPUs
      let held = false; // the dot, by the pointer
      const legend = html("p", { class: "tl-legend" });
      const show = ui.picture("On top the bytes on one GPU, part by part, beside a line for the memory that it has. Below, how long products and messages of a step take. Then a dot on a line of days. The sentence below says the numbers.",
        (x, y, down) => {
          if (down) held = y > 120;
          if (held) ui.change({ gpus: reached(x) });
        });
      ui.stage.prepend(legend);
      ui.panel.classList.add("tl-dense");
      ui.choice("model", "Model", Object.keys(RUNS).map((name) => [name, name]), started);
      ui.choice("gpu", "GPU", [...Object.keys(GPUS), "another"].map((name) => [name, name]), (gpu) => {
        const [memory, rate] = GPUS[gpu] ?? [ui.state.memory, ui.state.rate];
        return { gpu, memory, rate };
      });
      ui.choice("stage", "Shared out", STAGES);
      ui.slider("gpus", "GPUs", { min: 0, max: LONGEST, show: (x) => x.toLocaleString("en"), ...log });
      ui.slider("B", "Rows each, B", { min: 0, max: 10, show: (x) => x.toLocaleString("en"), ...log });
      ui.slider("link", "Link, one way", { min: 0, max: 10, step: 0.04, from: Math.log2, to: (x) => Math.round(2 ** x), show: (x) => `${x.toLocaleString("en")} GB/s` });
      ui.toggle("again", "Compute each block again");
      const more = html("details", { class: "tl-fold" }, html("summary", {}, "More settings"), html("div", { class: "tl-dense" },
        ui.slider("N", "Tokens a row, N", { min: 5, max: 17, show: (x) => x.toLocaleString("en"), ...log }),
        ui.slider("tokens", "Tokens in all", { min: -4, max: 15, step: 0.02, from: Math.log2, to: (x) => small(2 ** x), show: (x) => amount(x * 1e9) }),
        ui.slider("use", "Utilisation", { min: 1, max: 100, show: (x) => `${x}%` }),
        ui.slider("memory", "Memory of one", { min: 8, max: 288, show: (x) => `${x} GB` }),
        ui.slider("rate", "Operations a second", { min: 10, max: 2500, step: 1, show: (x) => `${x.toLocaleString("en")} × 10¹²` }),
        ui.toggle("half", "16 bits, with a float32 copy"),
        ui.toggle("plain", "Keep attention's weights (not fused)")));
      ui.panel.append(more);
      const changed = ui.change.bind(ui);
      ui.change = (values) => changed(("memory" in values || "rate" in values) && !("gpu" in values) ? { ...values, gpu: "another" } : values);
      return (state, width) => {
        const { gpus, B, N, again } = state;
        const { run, parts, all, room, flops, work, sent, sending, products, days } = costs(state);
        legend.replaceChildren(...Object.entries(parts).map(([part, size]) => size > 0 && html("span", {}, html("i", { "aria-hidden": "true", style: `background: ${colour(PARTS[part])}` }), `${NAMES[part]} ${bytes(Math.round(size))}`)).filter(Boolean));
        const scale = width / Math.max(all, room);
        let x = 0;
        const at = (day) => Math.max(8, Math.min(width - 8, ((Math.log(day) - SOON) / (LATE - SOON)) * width));
        reached = (px) => Math.min(2 ** LONGEST, Math.max(1, Math.round((gpus * days) / Math.exp(SOON + (px / width) * (LATE - SOON)))));
        const long = (seconds) => (width - 130) * (seconds / Math.max(sending, products));
        const row = (y, name, seconds, role) => [text(0, y + 13, name, { anchor: "start", size: 13 }), rect(76, y, long(seconds), 16, { fill: colour(role), "data-key": name }),
          text(82 + long(seconds), y + 13, `${number(seconds, 2)} s`, { anchor: "start", size: 13 })];
        const narrow = width < 560;
        const stated = run.hours && run.hours / 24 / gpus;
        show(width, 200,
          Object.entries(parts).map(([part, size]) => {
            const bar = rect(x, 22, size * scale, 32, { fill: colour(PARTS[part]), "data-key": part });
            x += size * scale;
            return bar;
          }),
          rect(Math.min(width, room * scale) - 3, 17, 3, 42, { fill: "currentColor", "data-key": "room" }),
          text(0, 12, `needs ${bytes(all)}`, { anchor: "start" }), text(width, 12, `has ${bytes(room)} (line)`, { anchor: "end" }),
          text(0, 76, "A step", { anchor: "start", size: 13, "font-weight": 600 }),
          row(82, "products", products, "value"), row(101, "messages", sending, "weights"),
          text(0, 140, `The training: ${time(days)}`, { anchor: "start", size: 13, "font-weight": 600 }),
          line(0, 167, width, 167, { opacity: 0.5 }),
          DAYS.map(([day, name]) => [line(at(day), 161, at(day), 173, { opacity: 0.7 }), text(at(day), 192, `${narrow ? "" : day === 1 / 24 ? "an " : "a "}${name}`, { size: 13 })]),
          stated && rect(at(stated) - 1.5, 151, 3, 32, { fill: "currentColor", "data-key": "stated" }),
          stated && text(width, 140, narrow ? "line: as stated" : "line: as its authors state", { anchor: "end", size: 13 }),
          svg("circle", { cx: at(days), cy: 167, r: 9, fill: colour("query"), stroke: "var(--pst-color-background)", "stroke-width": 2, class: "tl-grip", "data-key": "days" }));
        const count = sum(Object.values(parameters(run.c)));
        const hours = 24 * gpus * days;
        const asRun = !again && state.N === run.N && state.tokens === run.tokens / 1e9 && state.gpu === run.gpu;
        const off = !asRun ? null : run.hours ? hours / run.hours - 1 : run.flops ? flops / run.flops - 1 : null;
        const told = off === null ? "" : ` Its authors state ${run.hours ? `${amount(run.hours)} GPU hours` : `${power(run.flops)} operations`}, so this is ${off === 0 ? "the same" : `${number(Math.abs(100 * off), 1)}% ${off < 0 ? "less" : "more"}`}.`;
        const once = again ? ` Without what is computed again ${number((state.use * stepFlops(run.c, B, N)) / work, 1)}% of the rate is reached: the model FLOPs utilisation.` : "";
        const says = gpus === 1 ? "One GPU has nobody to send to" : `In a step each sends ${bytes(Math.round(sent))}, ${number(sending, 2)} s over its link`;
        return `${state.model}, ${amount(count)} parameters, on ${gpus.toLocaleString("en")} ${gpus === 1 ? "GPU" : "GPUs"}: each needs ${bytes(Math.round(all))} and has ${bytes(room)}, so it ${all <= room ? "fits" : "does not fit"}. `
          + `${says}; its products take ${number(products, 2)} s.${once} `
          + `${amount(state.tokens * 1e9)} tokens take ${power(flops)} operations, ${time(days)} or ${amount(Math.round(hours))} GPU hours.${told}`;
      };
    },
  });
})();
