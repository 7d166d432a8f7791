// What a decoder computes again without a cache, and how large the cache becomes.
(() => {
  const { define, html, text, line, rect, colour, number, bytes } = window.TformerLive;
  const { cacheNumbers } = window.TformerMaths;
  const words = "the course of true love never did run smooth".split(" ");
  const MODELS = { // blocks, heads of queries, heads of keys, width of a head; or latents; billions of weights
    "GPT-3 175B": { M: 96, H: 96, G: 96, Dh: 128, weights: 174.6 },
    "Llama 3 8B": { M: 32, H: 32, G: 8, Dh: 128, weights: 8.03 },
    "Llama 3 70B": { M: 80, H: 64, G: 8, Dh: 128, weights: 70.6 },
    "Gemma 2B": { M: 18, H: 8, G: 1, Dh: 256, weights: 2.51 },
    "DeepSeek-V3": { M: 61, H: 128, Dh: 128, latent: 512, rope: 64, weights: 671 },
  };
  const times = (n) => (n === 1 ? "once" : n === 2 ? "twice" : `${number(n, 0)} times`);
  const kind = ({ H, G, latent, rope }) => (latent ? `MLA, ${latent} + ${rope}` : G === H ? "MHA" : G === 1 ? "MQA" : `GQA, ${G} heads`);

  // What a text of N tokens keeps, in bytes: as the model is made, and with keys and values for every head.
  const kept = (m, N) => 2 * cacheNumbers(m) * N;
  const full = ({ M, H, Dh }, N) => kept({ M, G: H, Dh }, N);
  const LLAMA = MODELS["Llama 3 8B"];
  const [LEAST, MOST] = [6, 13.5]; // powers of ten of the axis: 1 MB to 30 TB
  const [SHORT, LONG] = [7, 20]; // powers of two of the length

  define("the-cache", {
    models: MODELS,
    state: { written: 1, cache: false, N: 8192 },
    tasks: [
      ["Write nine words. Each pass computes all keys again: how many will that be? Guess first.", ({ written, cache }) => written === words.length && !cache],
      ["Now keep keys and values. How many are left?", ({ written, cache }) => written === words.length && cache],
      ["Drag the bars: for how long a text is the cache of Llama 3 8B as large as its weights?", ({ N }) => Math.abs(Math.log2(kept(LLAMA, N) / (2e9 * LLAMA.weights))) < 0.2],
    ],
    learned: "A cache buys time with memory: every key is computed once, and stays. Shared heads and latents make small what stays.",
    build(ui) {
      let passes, grown; // from a place to the number of words, and from one to the length of the text
      const show = ui.picture("A row for each pass of the decoder. Filled cells: tokens whose keys and values are computed in this pass. Empty cells: read from the cache. Bars beside them count them. The sentence below says the numbers.",
        (_, y) => ui.change({ written: passes(y) }));
      ui.stage.append(html("p", { class: "tl-label tl-part-two" }, html("strong", {}, "How large it becomes"), " for one text"));
      const sizes = ui.picture("For five models a bar: the bytes of the cache for one text; a thin bar for keys and values of every head, and a mark where the weights are.",
        (x, y) => ui.change({ N: grown(x, y) }));
      ui.panel.classList.add("tl-dense");
      ui.slider("written", "Words written", { min: 1, max: words.length });
      ui.slider("N", "Length of text", { min: SHORT, max: LONG, step: 0.1, from: Math.log2, to: (x) => Math.round(2 ** x), show: (x) => x.toLocaleString("en") });
      const write = ui.button("Write the next word", () => ui.change({ written: (ui.state.written % words.length) + 1 }));
      write.parentElement.classList.add("tl-wide");
      const keep = ui.toggle("cache", "Keep keys and values");
      write.parentElement.append(keep.firstChild); // beside the button, not in a row of its own
      keep.remove();
      return ({ written, cache, N }, width) => {
        const T = Math.min(words.length, Math.max(1, Math.round(written)));
        const narrow = width < 560;
        const [left, high] = [56, narrow ? 17 : 19];
        const step = Math.min(46, (width - left) / words.length);
        passes = (y) => Math.min(words.length, Math.max(1, Math.ceil(y / high)));
        write.textContent = T === words.length ? "Begin again" : "Write the next word";
        const [all, once] = [(T * (T + 1)) / 2, T];
        const rows = words.map((word, t) => [
          text(left - 6, t * high + 14, word, { anchor: "end", size: 13, opacity: t < T ? 1 : 0.75 }),
          words.slice(0, t + 1).map((_, n) => {
            const now = t < T && (!cache || n === t);
            return rect(left + n * step + 1, t * high + 2, step - 2, high - 3, { rx: 3, fill: colour("key"), "fill-opacity": now ? 1 : 0, stroke: "currentColor",
              "stroke-dasharray": now ? null : "3 3", opacity: t < T ? 1 : 0.25, "data-key": `${t} ${n}` });
          })]);
        // The counts stand in the free corner above the stairs.
        const corner = width - (narrow ? 118 : 250);
        const count = (y, words, n, role, strong) => [text(width, y, words, { anchor: "end", size: 13, "font-weight": strong ? 700 : 400 }),
          rect(width - (n / 45) * (width - corner), y + 5, (n / 45) * (width - corner), 8, { fill: colour(role), "fill-opacity": strong ? 1 : 0.4, "data-key": words.split(":")[0] })];
        show(width, high * words.length + 2, rows, count(13, `keys without a cache: ${all}`, all, "key", !cache), count(45, `with it: ${once}`, once, "query", cache));
        const end = (size) => ((Math.log10(size) - LEAST) / (MOST - LEAST)) * width;
        const models = Object.entries(MODELS);
        grown = (x, y) => {
          const m = models[Math.min(models.length - 1, Math.max(0, Math.floor((y - 20) / 34)))][1];
          const wanted = Math.log2(10 ** (LEAST + (x / width) * (MOST - LEAST)) / kept(m, 1));
          return Math.round(2 ** (Math.round(10 * Math.min(LONG, Math.max(SHORT, wanted))) / 10));
        };
        sizes(width, 44 + 34 * models.length,
          text(0, 40 + 34 * models.length, "mark: the weights; thin: each head its own keys", { anchor: "start", size: 13 }),
          [[1e6, "1 MB"], [1e9, "1 GB"], [1e12, "1 TB"]].map(([size, name]) => [text(end(size) + 3, 14, name, { anchor: "start", size: 12, opacity: 0.8 }), line(end(size), 2, end(size), 20 + 34 * models.length, { opacity: 0.2 })]),
          models.map(([name, m], i) => {
            const y = 24 + 34 * i;
            const weights = end(2e9 * m.weights);
            return [text(0, y + 12, `${name}, ${kind(m)}`, { anchor: "start", size: 13 }), text(width, y + 12, `${bytes(kept(m, N))}`, { anchor: "end", size: 13 }),
              rect(0, y + 19, end(full(m, N)), 4, { fill: colour("weights"), "fill-opacity": 0.55, "data-key": `full ${name}` }),
              rect(0, y + 16, end(kept(m, N)), 10, { fill: colour("query"), "data-key": name, class: "tl-grip" }),
              line(weights, y + 13, weights, y + 29, { "stroke-width": 3 })];
          }));
        const other = cache ? all : once;
        return `After ${T} ${T === 1 ? "pass" : "passes"}: keys and values computed ${times(cache ? once : all)}; ${cache ? "without" : "with"} a cache it would be ${times(other)}. For ${N.toLocaleString("en")} tokens the cache of Llama 3 8B takes ${bytes(kept(LLAMA, N))}.`;
      };
    },
  });
})();
