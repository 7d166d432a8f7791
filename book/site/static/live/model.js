// A GPT of this book in plain JavaScript, one letter at a time, with a cache: what tformer_lib.models.gpt computes.
(() => {
  const decode = (text) => Uint8Array.from(atob(text), (c) => c.charCodeAt(0));

  class Model {
    constructor(content) {
      Object.assign(this, content);
      this.Dh = this.D / this.H;
      const raw = decode(content.data);
      const view = new DataView(raw.buffer);
      const weights = {};
      let at = 0;
      for (const [name, shape] of content.parameters) {
        const floats = new Float32Array(shape[0]);
        for (let i = 0; i < shape[0]; i += 1, at += 4) floats[i] = view.getFloat32(at, true);
        if (shape.length === 1) {
          weights[name] = floats;
          continue;
        }
        const [rows, columns] = shape;
        const matrix = new Float32Array(rows * columns);
        for (let r = 0, j = 0; r < rows; r += 1)
          for (let c = 0; c < columns; c += 1, j += 1, at += 1) matrix[j] = view.getInt8(at) * floats[r];
        weights[name] = { matrix, rows, columns };
      }
      this.embed = weights["embed.weight"];
      this.last = weights["transformer.final_norm.weight"];
      this.blocks = Array.from({ length: this.M }, (_, m) => {
        const of = (name) => weights[`transformer.blocks.${m}.${name}.weight`];
        const a = (name) => of(`self_attention.${name}`);
        return {
          norm1: of("self_attention_norm"), q: a("W_q"), k: a("W_k"), v: a("W_v"), o: a("W_o"), normQ: a("norm_q"),
          normK: a("norm_k"), norm2: of("mlp_norm"), input: of("mlp.W_in"), gate: of("mlp.W_gate"), output: of("mlp.W_out"),
        };
      });
      delete this.data;
    }

    static times({ matrix, rows, columns }, x) {
      const y = new Float32Array(rows);
      for (let r = 0, j = 0; r < rows; r += 1) {
        let s = 0;
        for (let c = 0; c < columns; c += 1, j += 1) s += matrix[j] * x[c];
        y[r] = s;
      }
      return y;
    }

    static rms(x, gain, eps, from = 0, length = x.length) {
      let s = 0;
      for (let i = from; i < from + length; i += 1) s += x[i] * x[i];
      const root = 1 / Math.sqrt(s / length + eps);
      const y = new Float32Array(length);
      for (let i = 0; i < length; i += 1) y[i] = x[from + i] * root * gain[i];
      return y;
    }

    // Each head of a query or key: normed, then its pairs turned by the place.
    turned(x, gain, n) {
      const { Dh, H, base } = this;
      const y = new Float32Array(x.length);
      for (let h = 0; h < H; h += 1) {
        const head = Model.rms(x, gain, 1e-6, h * Dh, Dh);
        for (let i = 0; i < Dh; i += 2) {
          const angle = n * base ** (-i / Dh);
          const [c, s] = [Math.cos(angle), Math.sin(angle)];
          y[h * Dh + i] = c * head[i] - s * head[i + 1];
          y[h * Dh + i + 1] = s * head[i] + c * head[i + 1];
        }
      }
      return y;
    }

    logits(x) {
      return Array.from(Model.times(this.embed, Model.rms(x, this.last, 1e-5)));
    }

    newCache() {
      return this.blocks.map(() => ({ k: [], v: [] }));
    }

    // Reads the letter number `token` behind what the cache holds. `off` is a Set of "block:head" to silence.
    // Returns its logits, those after each block (the logit lens), and each head's weights over all letters.
    step(token, cache, off = new Set()) {
      const { D, Dh, H } = this;
      const n = cache[0].k.length;
      let x = this.embed.matrix.slice(token * D, (token + 1) * D);
      const lens = [];
      const attention = [];
      this.blocks.forEach((block, m) => {
        const y = Model.rms(x, block.norm1, 1e-5);
        const q = this.turned(Model.times(block.q, y), block.normQ, n);
        cache[m].k.push(this.turned(Model.times(block.k, y), block.normK, n));
        cache[m].v.push(Model.times(block.v, y));
        const { k, v } = cache[m];
        const mixed = new Float32Array(D);
        attention.push(Array.from({ length: H }, (_, h) => {
          const scores = k.map((key) => {
            let s = 0;
            for (let i = h * Dh; i < (h + 1) * Dh; i += 1) s += q[i] * key[i];
            return s / Math.sqrt(Dh);
          });
          const top = Math.max(...scores);
          const e = scores.map((z) => Math.exp(z - top));
          const total = e.reduce((a, b) => a + b, 0);
          const weights = e.map((a) => a / total);
          if (!off.has(`${m}:${h}`))
            weights.forEach((a, s) => { for (let i = h * Dh; i < (h + 1) * Dh; i += 1) mixed[i] += a * v[s][i]; });
          return weights;
        }));
        const added = Model.times(block.o, mixed);
        x = x.map((value, i) => value + added[i]);
        const z = Model.rms(x, block.norm2, 1e-5);
        const gate = Model.times(block.gate, z);
        const hidden = Model.times(block.input, z).map((value, i) => (value * gate[i]) / (1 + Math.exp(-gate[i])));
        const more = Model.times(block.output, hidden);
        x = x.map((value, i) => value + more[i]);
        lens.push(this.logits(x));
      });
      return { logits: lens[lens.length - 1], lens, attention };
    }

    // The letters' numbers; a letter that the model does not know is null.
    encode(text) {
      return Array.from(text, (letter) => {
        const i = this.letters.indexOf(letter);
        return i < 0 ? null : i;
      });
    }
  }

  window.TformerGPT = Model;
})();
