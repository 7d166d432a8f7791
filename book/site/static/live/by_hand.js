// Chapter 2: four tokens as arrows to drag; scores, root, mask, softmax and average, one step after the other.
(() => {
  const { define, html, svg, text, line, rect, colour, number } = window.TformerLive;
  const { attendOne, dot } = window.TformerMaths;
  const words = ["the", "dog", "was", "hungry"];
  const steps = ["products", "root", "mask", "softmax", "average"];
  const which = ["1st", "2nd"];
  const FIRST = "1,0,0,2,1,1,2,-1";
  const numbers = ({ x }) => {
    const given = String(x).split(",").map(Number);
    return given.length === 8 && given.every((v) => Number.isFinite(v) && Math.abs(v) <= 9) ? given : FIRST.split(",").map(Number);
  };
  const computed = (state, n) => {
    const x = numbers(state);
    const tokens = words.map((_, s) => x.slice(2 * s, 2 * s + 2));
    return { tokens, ...attendOne(tokens[n], tokens, tokens, words.map((_, s) => !state.causal || s <= n), state.root) };
  };

  define("attention-by-hand", {
    state: { step: 0, asks: "3", causal: false, root: true, x: FIRST },
    tasks: [
      ["Go through the five steps: what does each of them do to the bars?", ({ step }) => step === 4],
      ["Drag “dog” until “hungry” reads it with more than 90%.", (state) => computed(state, 3).weights[1] > 0.9],
      ["Switch the mask on and let “the” ask: what can its output be?", ({ causal, asks, step }) => causal && asks === "0" && step === 4],
    ],
    learned: "Products, root, mask, softmax, average: that is attention for one query. What the mask forbids gets no weight, however well it fits.",
    build(ui) {
      const put = (place, value) => {
        const x = numbers(ui.state);
        x[place] = value;
        return x.join(",");
      };
      const boxes = words.flatMap((word, n) => [0, 1].map((i) => html("input", {
        type: "number", min: -9, max: 9, step: 0.5, "aria-label": `${word}, number ${i + 1}`,
        oninput: (event) => {
          const value = Number(event.target.value);
          if (event.target.value !== "" && Number.isFinite(value) && Math.abs(value) <= 9) ui.change({ x: put(2 * n + i, value) });
        },
        onchange: (event) => { event.target.value = numbers(ui.state)[2 * n + i]; }, // what was no number is not left standing
      })));
      // The plane shows as much as its tokens need, and stays so while one of them is dragged.
      let plane = null;
      let held = -1;
      const drag = (px, py, down) => {
        const { across, high, unit, cx, cy } = plane;
        if (down) {
          const x = numbers(ui.state);
          const far = (n) => Math.hypot(cx + unit * x[2 * n] - px, cy - unit * x[2 * n + 1] - py);
          held = [0, 1, 2, 3].reduce((best, n) => (far(n) < far(best) ? n : best));
          if (far(held) > 28) held = -1;
        } else if (held >= 0) {
          const whole = (v) => Math.min(9, Math.max(-9, Math.round(2 * v) / 2));
          const within = (v, most) => Math.min(most - 8, Math.max(8, v));
          const x = numbers(ui.state);
          [x[2 * held], x[2 * held + 1]] = [whole((within(px, across) - cx) / unit), whole((cy - within(py, high)) / unit)];
          ui.change({ x: x.join(",") });
        }
      };
      const left = html("div");
      const right = html("div", { class: "tl-rest" });
      const draw = ui.picture("Four tokens as arrows in a plane, with the token that asks in another colour; a thicker arrow has more weight. Arrows can be dragged by their tips; the boxes do the same.", drag);
      ui.stage.lastElementChild.classList.add("tl-hands");
      left.append(ui.stage.lastElementChild);
      left.addEventListener("lostpointercapture", () => {
        held = -1;
        ui.redraw();
      });
      const bars = ui.picture("For each step a bar for each token: products, scores, masked scores, weights and what is added up. The sentence below says the numbers.");
      right.append(html("table", { class: "tl-table tl-fixed" },
        html("caption", { class: "tl-hidden" }, "Four tokens: the same two numbers are query, key and value"),
        html("thead", {}, html("tr", {}, html("td", {}), words.map((word) => html("th", { scope: "col" }, word)))),
        html("tbody", {}, [0, 1].map((i) => html("tr", {}, html("th", { scope: "row" }, which[i]), words.map((_, n) => html("td", {}, boxes[2 * n + i])))))), ui.stage.lastElementChild);
      ui.stage.append(html("div", { class: "tl-halves" }, left, right));
      ui.panel.classList.add("tl-short");
      ui.panel.style = "--tl-label: 3rem";
      ui.choice("asks", "Who asks", words.map((word, n) => [String(n), word]));
      ui.slider("step", "Step", { min: 0, max: 4, show: (step) => `${step + 1} of 5: ${steps[step]}` });
      ui.toggle("root", "Divide by the root of the width");
      ui.toggle("causal", "Causal mask: nobody reads what comes later");
      return (state, width) => {
        const { step, asks, root } = state;
        const n = Number(asks);
        const x = numbers(state);
        boxes.forEach((box, i) => { if (document.activeElement !== box) box.value = x[i]; });
        const { tokens, products, scores, masked, weights, output } = computed(state, n);
        const narrow = width < 480;
        const [across, high] = narrow ? [width, 142] : [224, 262];
        const room = narrow ? width : width - across - 20;
        left.style.flexBasis = `${across}px`;
        if (held < 0 || plane.across !== across) {
          const [[west, east], [south, north]] = [0, 1].map((i) => tokens.map((k) => k[i]).reduce(([a, b], v) => [Math.min(a, v - 1.5), Math.max(b, v + 1.5)], [-1.5, 1.5]));
          const unit = Math.min(across / (east - west), high / (north - south));
          plane = { across, high, unit, cx: across / 2 - (unit * (west + east)) / 2, cy: high / 2 + (unit * (south + north)) / 2 };
        }
        const [unit, cx, cy, ...arrived] = ui.arrive("plane", [plane.unit, plane.cx, plane.cy, ...tokens.flat(), ...output]);
        const drawn = [0, 2, 4, 6, 8].map((i) => arrived.slice(i, i + 2));
        const out = drawn.pop();
        const at = ([a, b]) => [cx + unit * a, cy - unit * b];
        const share = ui.arrive("weights", step >= 3 ? weights : words.map(() => 0));
        const q = drawn[n];
        const hidden = (s) => step >= 2 && masked[s] === -Infinity;
        draw(across, high,
          line(0, cy, across, cy, { opacity: 0.3 }), line(cx, 0, cx, high, { opacity: 0.3 }),
          step < 2 && dot(q, q) > 0 && drawn.map((k) => { // a product is how far a key goes along the query
            const [[fx, fy], [kx, ky]] = [at(q.map((v) => (v * dot(q, k)) / dot(q, q))), at(k)];
            return [line(kx, ky, fx, fy, { "stroke-dasharray": "3 3", opacity: 0.6 }), svg("circle", { cx: fx, cy: fy, r: 3, fill: "currentColor" })];
          }),
          drawn.map((k, s) => {
            const [kx, ky] = at(k);
            return svg("g", { opacity: hidden(s) ? 0.3 : 1 },
              line(cx, cy, kx, ky, { stroke: colour(s === n ? "query" : "key"), "stroke-width": 2 + 12 * share[s], "stroke-linecap": "round" }),
              svg("circle", { cx: kx, cy: ky, r: 5, fill: colour(s === n ? "query" : "key") }));
          }),
          step === 4 && [
            svg("circle", { cx: at(out)[0], cy: at(out)[1], r: 8, fill: colour("value"), stroke: "var(--pst-color-background)", "stroke-width": 2 }),
            svg("circle", { cx: 8, cy: high - 9, r: 6, fill: colour("value") }), text(20, high - 4, "output", { anchor: "start", size: 13 })],
          drawn.map((k, s) => {
            const [kx, ky] = at(k);
            const side = kx > across - 60 ? "end" : kx < 60 ? "start" : k[0] < 0 ? "end" : "start";
            return [
              text(kx + (side === "start" ? 8 : -8), ky + (k[1] < 0 ? 16 : -7), words[s], {
                anchor: side, size: 13, "font-weight": s === n ? 700 : 400, "paint-order": "stroke", stroke: "var(--pst-color-background)", "stroke-width": 4 }),
              svg("circle", { cx: kx, cy: ky, r: 20, fill: "transparent", class: "tl-grip" })];
          }));

        const [label, tall] = [86, narrow ? 38 : 45];
        const cell = (room - label) / 4;
        const top = Math.max(1, ...products.map(Math.abs));
        const rows = [["products kᵀq", products, top], [root ? "divided by √2" : "not divided", scores, top], ["masked", masked, top], ["weights", weights, 1]];
        const parts = which.map((name, i) => [`weight × ${name}`, weights.map((a, s) => a * tokens[s][i])]);
        const grow = ui.arrive("bars", rows.flatMap(([, z, full], r) => z.map((v) => (r > step || v === -Infinity ? 0 : v / full))));
        bars(room, 4 * tall + 38,
          rows.map(([name, z], r) => [
            text(0, r * tall + 25, name, { anchor: "start", size: 13, opacity: r > step ? 0.7 : 1, "font-weight": r === step ? 700 : 400 }),
            z.map((v, s) => {
              const [mid, base] = [label + (s + 0.5) * cell, r * tall + (r === 3 ? 27 : 14) - (narrow ? 2 : 0)];
              const size = grow[4 * r + s] * (r === 3 ? 25 : 13);
              return [
                line(mid - cell / 2 + 3, base, mid + cell / 2 - 3, base, { opacity: 0.3 }),
                rect(mid - 9, size > 0 ? base - size : base, 18, Math.abs(size), { fill: colour(r === 3 ? "weights" : "key") }),
                r <= step && text(mid, r * tall + (r === 3 ? 41 : 38) - (narrow ? 3 : 0), number(v), { size: 12, opacity: r === 2 && v === -Infinity ? 0.7 : 1 })];
            })]),
          parts.map(([name, z], i) => [
            text(0, 4 * tall + 16 + 17 * i, name, { anchor: "start", size: 13, opacity: step < 4 ? 0.7 : 1 }),
            step === 4 && z.map((v, s) => text(label + (s + 0.5) * cell, 4 * tall + 16 + 17 * i, number(v), { size: 12 }))]));
        const [a, b] = output;
        if (step === 4) return `The output of “${words[n]}” is (${number(a)}, ${number(b)}): the last two rows, each added up. The weights: ${words.map((word, s) => `${word} ${number(weights[s])}`).join(", ")}.`;
        const [name, z] = rows[step];
        return `“${words[n]}” with each key, ${name}: ${words.map((word, s) => `${word} ${number(z[s])}`).join(", ")}.`;
      };
    },
  });
})();
