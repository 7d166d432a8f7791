// What the figures compute. No drawing and no page in here: tests hold each function to the library's.
(() => {
  const sum = (a) => a.reduce((s, x) => s + x, 0);
  const dot = (a, b) => sum(a.map((x, i) => x * b[i]));
  const norm = (a) => Math.sqrt(dot(a, a));
  const mix = (weights, vectors) => vectors[0].map((_, i) => sum(weights.map((w, s) => w * vectors[s][i])));

  // exp(z - max) over its sum; all zeros where no score is left. Minus infinity forbids.
  const softmax = (scores) => {
    const top = Math.max(...scores);
    if (top === -Infinity) return scores.map(() => 0);
    const e = scores.map((z) => Math.exp(z - top));
    const total = sum(e);
    return e.map((x) => x / total);
  };

  // Chapter 2: the answer is the average of the values; the score is -(q - k)^2 / 2h^2.
  const softLookup = (query, keys, values, h) => {
    const scores = keys.map((k) => -((query - k) ** 2) / (2 * h * h));
    const weights = softmax(scores);
    return { scores, weights, answer: dot(weights, values) };
  };

  // Scores of one query with all keys, the root, the mask (true: may read), weights, the average.
  const attendOne = (q, keys, values, mask, scaled = true) => {
    const products = keys.map((k) => dot(q, k));
    const scores = products.map((z) => (scaled ? z / Math.sqrt(q.length) : z));
    const masked = scores.map((z, s) => (mask && !mask[s] ? -Infinity : z));
    const weights = softmax(masked);
    return { products, scores, masked, weights, output: mix(weights, values) };
  };

  // The gradient at the scores, a (gain - mean gain), and at the query, with g arriving at the output.
  const gradients = (q, keys, values, g, scaled = true) => {
    const { weights } = attendOne(q, keys, values, null, scaled);
    const gain = values.map((v) => dot(v, g));
    const mean = dot(weights, gain);
    const atScores = weights.map((a, s) => a * (gain[s] - mean));
    const root = scaled ? Math.sqrt(q.length) : 1;
    return { atScores, atQuery: mix(atScores, keys).map((x) => x / root) };
  };

  // Chapter 5: pairs (x_2i, x_2i+1) turned by n base^(-2i/D), counter-clockwise.
  const speeds = (width, base = 10000) =>
    Array.from({ length: width / 2 }, (_, i) => base ** ((-2 * i) / width));
  const rotate = (x, n, base = 10000) =>
    speeds(x.length, base).flatMap((w, i) => {
      const [c, s] = [Math.cos(n * w), Math.sin(n * w)];
      return [c * x[2 * i] - s * x[2 * i + 1], s * x[2 * i] + c * x[2 * i + 1]];
    });

  // Chapter 8: temperature, then top-k, then top-p, then min-p, then divided by the sum.
  const nextProbabilities = (logits, { temperature = 1, topK = 0, topP = 1, minP = 0 } = {}) => {
    const top = Math.max(...logits);
    if (temperature === 0) {
      const first = logits.indexOf(top);
      return logits.map((_, i) => (i === first ? 1 : 0));
    }
    let scores = logits.map((z) => (z - top) / temperature);
    const down = scores.map((_, i) => i).sort((a, b) => scores[b] - scores[a]);
    if (topK && topK < scores.length) {
      const last = scores[down[topK - 1]];
      scores = scores.map((z) => (z < last ? -Infinity : z));
    }
    if (topP < 1) {
      const p = softmax(scores);
      const kept = new Set();
      let held = 0;
      for (const i of down) {
        if (kept.size && held >= topP) break;
        kept.add(i);
        held += p[i];
      }
      scores = scores.map((z, i) => (kept.has(i) ? z : -Infinity));
    }
    if (minP) scores = scores.map((z) => (z < Math.log(minP) ? -Infinity : z));
    return softmax(scores);
  };

  // Chapter 6: the parameters of a model, part by part; `c` has the sizes and what kind of block it is.
  const parameters = (c) => {
    const { D, F, M } = c;
    const kv = (D / c.H) * c.G; // width of all keys together
    const bias = c.bias ? 1 : 0;
    const attention = 2 * D * D + 2 * D * kv + bias * (2 * D + 2 * kv);
    const mlp = c.gated ? 3 * D * F : 2 * D * F + bias * (D + F);
    const norms = (2 * M + 1) * (c.rms ? D : 2 * D);
    return {
      embeddings: c.V * D,
      positions: c.places * D,
      attention: M * attention,
      MLP: M * mlp,
      norms,
      head: c.tied ? 0 : c.V * D,
    };
  };

  // Multiplications and additions for one token of a sequence of N: M (2 P + 4 N D) + 2 D V.
  const forwardFlops = (c, N) => {
    const P = 2 * c.D * c.D + (2 * c.D * c.D * c.G) / c.H + (c.gated ? 3 : 2) * c.D * c.F;
    return c.M * (2 * P + 4 * N * c.D) + 2 * c.D * c.V;
  };

  // Chapter 14: operations of a step on B rows of N tokens; `again` computes each block's forward pass once more.
  const stepFlops = (c, B, N, again = false) => {
    const head = 2 * B * N * c.D * c.V;
    const block = (B * forwardFlops(c, N) * N - head) / c.M;
    return 3 * (c.M * block + head) + (again ? c.M * (block - 2 * B * N * c.D * c.F) : 0);
  };

  // Bytes on each GPU, by part. `stage` is how many parts are shared out: 0 is DDP, 3 is FSDP. `plain` keeps the weights
  // of attention, its softmax in 32 bits; else a kernel that masks by itself keeps one number for each query and head.
  const gpuMemory = (c, B, N, { gpus = 1, stage = 0, half = false, again = false, plain = false } = {}) => {
    const e = half ? 2 : 4;
    const counts = parameters(c);
    const P = sum(Object.values(counts));
    const block = (counts.attention + counts.MLP) / c.M + 2 * (c.rms ? c.D : 2 * c.D);
    const outside = P - c.M * block;
    const norm = (c.rms ? 3 : 2) * c.D + (c.rms ? 1 : 2);
    const pairs = plain
      ? B * c.H * N * N * (4 + e) + 2 * N * N + 2 * B * N * c.D * (4 - e)
      : 4 * B * N * c.H;
    const one = B * N * e * (2 * norm + 4 * c.D + (c.gated ? 4 : 2) * c.F) + pairs;
    const rest = B * N * (norm * e + 4 * c.V) + 8 * B * (2 * N + 1);
    return {
      parameters: (e * P) / (stage > 2 ? gpus : 1),
      gradients: (e * P) / (stage > 1 ? gpus : 1),
      optimizer: ((half ? 12 : 8) * P) / (stage ? gpus : 1),
      gathered: stage > 2 && gpus > 1 ? e * (block + outside) : 0,
      activations: (again ? c.M * B * N * c.D * e + one : c.M * one) + rest,
    };
  };

  // What each GPU sends in a step, by a ring: an all-reduce of gradients; with shared parameters two gatherings and one scattering.
  const messageBytes = (c, { gpus = 1, stage = 0, half = false } = {}) =>
    ((stage > 2 ? 3 : 2) * (gpus - 1) * (half ? 2 : 4) * sum(Object.values(parameters(c)))) / gpus;

  // Seconds a day times GPUs, rate and the share of it that is reached.
  const trainingDays = (flops, gpus, rate, share) => flops / (gpus * rate * share) / 86400;

  // What one token leaves in the cache of M blocks, in numbers: keys and values, or a latent vector.
  const cacheNumbers = ({ M, G = 0, Dh = 0, latent = 0, rope = 0 }) => M * (latent ? latent + rope : 2 * G * Dh);

  // Chapter 12: tiles of scores and values pass by; three numbers stay. One state after each tile.
  const onlineSoftmax = (scores, values, tile) => {
    let [top, total, mixed] = [-Infinity, 0, 0];
    const states = [];
    for (let at = 0; at < scores.length; at += tile) {
      const z = scores.slice(at, at + tile);
      const newTop = Math.max(top, ...z);
      const shrink = newTop === -Infinity ? 1 : Math.exp(top - newTop);
      const e = z.map((x) => (newTop === -Infinity ? 0 : Math.exp(x - newTop)));
      total = shrink * total + sum(e);
      mixed = shrink * mixed + dot(e, values.slice(at, at + tile));
      top = newTop;
      states.push({ top, total, mixed, shrink, output: total ? mixed / total : 0 });
    }
    return states;
  };

  // Chapter 3: each head's weights sum to one; all heads mapped, what the best answer to "+" minus "-" leaves.
  // Rows are markers +, -, other; contents are independent with variance one. The least share of error that
  // any linear readout of these weighted sums leaves, the target being the first content less the second.
  const errorLeft = (heads) => {
    const target = [1, -1, ...Array(heads[0].length - 2).fill(0)];
    const basis = [];
    for (const a of heads) {
      let r = a.slice();
      for (const b of basis) {
        const along = dot(r, b);
        r = r.map((x, i) => x - along * b[i]);
      }
      const size = norm(r);
      if (size > 1e-9) basis.push(r.map((x) => x / size));
    }
    return 1 - sum(basis.map((b) => dot(target, b) ** 2)) / dot(target, target);
  };

  // Chapter 13: the two layers of attention that are built by hand and continue what has repeated. The tokens are
  // numbers below V. Head 0.0 looks at the place before (`first`: it is there) and writes its token into a second
  // field of the stream; head 1.0 compares its token with the second fields (`connected`), or with the tokens
  // themselves, and copies the token that stands where it looks. A match scores `sharp`, place 0 as much less.
  const induction = (tokens, V, { sharp = 200, connected = true, first = true } = {}) => {
    const unit = (i) => Array.from({ length: V }, (_, j) => (i === j ? 1 : 0));
    const own = tokens.map(unit);
    const past = (n) => own.slice(0, n + 1); // what place n may read
    const spread = (n, weights) => own.map((_, s) => (s <= n ? weights[s] : 0));
    const previous = tokens.map((_, n) => softmax(past(n).map((_, s) => (n && s === n - 1 ? sharp : 0))));
    const before = tokens.map((_, n) => (first ? mix(previous[n], past(n)) : unit(-1)));
    const keys = connected ? before : own;
    const scores = tokens.map((_, n) => past(n).map((_, s) => sharp * (dot(own[n], keys[s]) - (s === 0 ? 1 : 0))));
    const weights = scores.map(softmax);
    const logits = tokens.map((_, n) => mix(weights[n], past(n)).map((x, v) => own[n][v] + 2 * x));
    return {
      before, scores, logits,
      previous: previous.map((row, n) => spread(n, row)),
      weights: weights.map((row, n) => spread(n, row)),
    };
  };

  // Chapter 12: an image of side x side numbers, moved; its patches as columns, in reading order; a matrix times a vector.
  const moved = (image, side, right, down) => image.map((_, i) => {
    const [x, y] = [(i % side) - right, Math.floor(i / side) - down];
    return x >= 0 && x < side && y >= 0 && y < side ? image[y * side + x] : 0;
  });
  const patchColumns = (image, side, p) => Array.from({ length: (side / p) ** 2 }, (_, n) => {
    const corner = Math.floor((n * p) / side) * p * side + ((n * p) % side);
    return Array.from({ length: p * p }, (_, k) => image[corner + Math.floor(k / p) * side + (k % p)]);
  });
  const product = (matrix, x) => matrix.map((row) => dot(row, x));

  // Numbers that look random and are the same everywhere: mulberry32, and normal ones after Box and Muller.
  const random = (seed) => {
    let a = seed >>> 0;
    const even = () => {
      a = (a + 0x6d2b79f5) >>> 0;
      let t = Math.imul(a ^ (a >>> 15), a | 1);
      t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
      return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
    };
    const normal = () => Math.sqrt(-2 * Math.log(1 - even())) * Math.cos(2 * Math.PI * even());
    return { even, normal, vector: (n) => Array.from({ length: n }, normal) };
  };

  window.TformerMaths = {
    sum, dot, norm, mix, softmax, softLookup, attendOne, gradients, speeds, rotate, nextProbabilities,
    parameters, forwardFlops, stepFlops, gpuMemory, messageBytes, trainingDays, cacheNumbers, onlineSoftmax, errorLeft, induction, moved, patchColumns, product, random,
  };
})();
