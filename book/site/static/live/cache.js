// What a decoder computes again without a cache, and how large the cache becomes.
(() => {
  const { define, text, rect, colour, number, bytes } = window.TformerLive;
  const { cacheNumbers } = window.TformerMaths;
  const words = "the course of true love never did run smooth".split(" ");
  const MODELS = { // blocks, heads of queries, heads of keys, width of a head; or latents
    "GPT-3 175B": { M: 96, H: 96, G: 96, Dh: 128 },
    "Llama 3 8B": { M: 32, H: 32, G: 8, Dh: 128 },
    "Llama 3 70B": { M: 80, H: 64, G: 8, Dh: 128 },
    "Gemma 2B": { M: 18, H: 8, G: 1, Dh: 256 },
    "DeepSeek-V3": { M: 61, H: 128, Dh: 128, latent: 512, rope: 64 },
  };
  const times = (n) => (n === 1 ? "once" : n === 2 ? "twice" : `${number(n, 0)} times`);
  const kind = ({ H, G, latent, rope }) => (latent ? `MLA, ${latent} + ${rope}` : G === H ? "MHA" : G === 1 ? "MQA" : `GQA, ${G} heads`);

  define("the-cache", {
    models: MODELS,
    state: { written: 1, cache: false, N: 8192 },
    build(ui) {
      const show = ui.picture("A row for each pass of the decoder. Filled cells: tokens whose keys and values are computed in this pass. Empty cells: read from the cache. The sentence below counts them.");
      const sizes = ui.table("Bytes of the cache for one text, 16 bits a number");
      ui.slider("written", "Words written", { min: 1, max: words.length });
      ui.toggle("cache", "Keep keys and values");
      const write = ui.button("Write the next word", () => ui.change({ written: (ui.state.written % words.length) + 1 }));
      ui.slider("N", "Length of the text in the table", { min: 7, max: 20, step: 0.1, from: Math.log2, to: (x) => Math.round(2 ** x), show: (x) => `${x.toLocaleString("en")} tokens` });
      return ({ written, cache, N }, width) => {
        const T = Math.min(words.length, Math.max(1, Math.round(written)));
        const narrow = width < 560;
        const step = (width - 4) / words.length;
        const high = 24;
        write.textContent = T === words.length ? "Begin again" : "Write the next word";
        let computed = 0;
        const cells = [];
        for (let t = 0; t < T; t += 1) {
          for (let n = 0; n <= t; n += 1) {
            const now = !cache || n === t;
            computed += now;
            cells.push(rect(2 + n * step + 1, 34 + t * high + 2, step - 2, high - 4, {
              fill: now ? colour("key") : "none", stroke: "currentColor", "stroke-dasharray": now ? null : "3 3", rx: 3 }));
          }
        }
        const below = 34 + words.length * high;
        const notes = ["one row a pass; filled: computed,", "dashed: read from the cache"];
        show(width, below + (narrow ? 44 : 24), cells,
          (narrow ? notes : [notes.join(" ")]).map((note, i) => text(2, below + 18 + 20 * i, note, { anchor: "start", size: 13 })),
          words.map((word, n) => text(2 + (n + 0.5) * step, 20, narrow ? word.slice(0, 3) : word, { size: 13, opacity: n < T ? 1 : 0.6 })));
        sizes(["model", "kind", "a token", `${N.toLocaleString("en")} tokens`, "with MHA"], Object.entries(MODELS).map(([name, m]) => {
          const kept = 2 * cacheNumbers(m);
          const full = 2 * cacheNumbers({ M: m.M, G: m.H, Dh: m.Dh });
          return [name, kind(m), bytes(kept), bytes(kept * N), bytes(full * N)];
        }));
        const other = cache ? (T * (T + 1)) / 2 : T;
        return `After ${T} ${T === 1 ? "pass" : "passes"}: keys and values computed ${times(computed)}; ${cache ? "without" : "with"} a cache it would be ${times(other)}. For ${N.toLocaleString("en")} tokens the cache of Llama 3 8B takes ${bytes(2 * cacheNumbers(MODELS["Llama 3 8B"]) * N)}.`;
      };
    },
  });
})();
