// Chapter 2: four tokens to edit; scores, root, mask, softmax and average, one step after the other.
(() => {
  const { define, html, number } = window.TformerLive;
  const { attendOne } = window.TformerMaths;
  const words = ["the", "dog", "was", "hungry"];
  const steps = ["products", "root", "mask", "softmax", "average"];
  const which = ["1st", "2nd"];

  define("attention-by-hand", {
    state: { step: 0, asks: "3", causal: false, root: true, x: "1,0,0,2,1,1,2,-1" },
    build(ui) {
      const numbers = () => {
        const given = String(ui.state.x).split(",").map(Number);
        return given.length === 8 && given.every((v) => Number.isFinite(v) && Math.abs(v) <= 9) ? given : [1, 0, 0, 2, 1, 1, 2, -1];
      };
      const boxes = words.flatMap((word, n) => [0, 1].map((i) => html("input", {
        type: "number", min: -9, max: 9, step: 0.5, "aria-label": `${word}, number ${i + 1}`,
        oninput: (event) => {
          const value = Number(event.target.value);
          if (event.target.value === "" || !Number.isFinite(value) || Math.abs(value) > 9) return;
          const x = numbers();
          x[2 * n + i] = value;
          ui.change({ x: x.join(",") });
        },
        onchange: (event) => { event.target.value = numbers()[2 * n + i]; }, // what was no number is not left standing
      })));
      ui.stage.append(html("div", { class: "tl-scroll" }, html("table", { class: "tl-table" },
        html("caption", {}, "Four tokens: the same two numbers are query, key and value"),
        html("thead", {}, html("tr", {}, html("td", {}), words.map((word) => html("th", { scope: "col", class: "tl-over" }, word)))),
        html("tbody", {}, [0, 1].map((i) => html("tr", {}, html("th", { scope: "row" }, which[i]), words.map((_, n) => html("td", {}, boxes[2 * n + i]))))))));
      const show = ui.table("What the token that asks does with each key");
      ui.choice("asks", "Who asks", words.map((word, n) => [String(n), word]));
      ui.slider("step", "Step", { min: 0, max: 4, show: (step) => `${step + 1} of 5: ${steps[step]}` });
      ui.toggle("root", "Divide by the root of the width");
      ui.toggle("causal", "Causal mask: nobody reads what comes later");
      return ({ step, asks, causal, root }) => {
        const x = numbers();
        boxes.forEach((box, i) => { if (document.activeElement !== box) box.value = x[i]; });
        const tokens = words.map((_, n) => x.slice(2 * n, 2 * n + 2));
        const n = Number(asks);
        const mask = words.map((_, s) => !causal || s <= n);
        const found = attendOne(tokens[n], tokens, tokens, mask, root);
        const rows = [["products kᵀq", found.products], [root ? "divided by √2" : "not divided", found.scores],
          ["masked", found.masked], ["weights", found.weights]].slice(0, step + 1);
        const parts = step < 4 ? [] : which.map((name, i) => [`weight × ${name}`, found.weights.map((a, s) => a * tokens[s][i])]);
        const later = [root ? "divided by √2" : "not divided", "masked", "weights", ...which.map((name) => `weight × ${name}`)].slice(step < 4 ? step : 5);
        show([`${words[n]} reads`, ...words], [
          ...[...rows, ...parts].map(([name, z]) => [name, ...z.map((v) => number(v))]),
          ...later.map((name) => [name, "–", "–", "–", "–"])], // the controls below stay where they are
        (i) => (i >= step && (i === step || step === 4) ? "tl-new" : ""));
        const said = rows[rows.length - 1];
        const [a, b] = found.output;
        if (step === 4) return `The output of “${words[n]}” is (${number(a)}, ${number(b)}): the last two rows, each added up. The weights: ${words.map((word, s) => `${word} ${number(found.weights[s])}`).join(", ")}.`;
        return `“${words[n]}” with each key, ${said[0]}: ${words.map((word, s) => `${word} ${number(said[1][s])}`).join(", ")}.`;
      };
    },
  });
})();
