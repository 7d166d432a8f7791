// Chapter 7: hide a word; what a small BERT puts there with both sides of the hole, and with its left alone. Recorded.
(() => {
  const { define, html, text, rect, each, colour, number, quoted } = window.TformerLive;
  const SENTENCES = window.TformerFillings; // words, and for each of them what is said with both sides and with the left
  const SIDES = [["left", "only what stands before"], ["both", "both sides"]];
  const shown = ({ item }) => SENTENCES[Number(item)] ?? SENTENCES[0];
  const clip = ({ words }, place) => Math.min(words.length, Math.max(1, Math.round(place))) - 1;
  const p = (state, side) => shown(state)[side][clip(shown(state), state.place)].true;
  const percent = (x) => (x < 0.01 ? "less than 1%" : `${number(100 * x, 0)}%`);

  define("hidden-word", {
    state: { item: "0", place: 1 },
    tasks: [
      ["Guess first: which word can the model not name from its left, though it is sure from both sides? Hide it.",
        (state) => p(state, "left") < 0.05 && p(state, "both") > 0.8],
      ["Now a word for which its left is enough: more than half of the probability.", (state) => p(state, "left") > 0.5],
      ["Take another sentence, and find a word that cannot be named even from both sides.",
        (state) => state.item !== "0" && p(state, "both") < 0.05],
    ],
    learned: "31 of these 41 words are likelier from both sides: what stands behind a hole decides with what stands before it. Some no context gives away.",
    build(ui) {
      const row = html("p", { class: "tl-words", role: "group", "aria-label": "The sentence: choose the word to hide" });
      ui.stage.append(row, html("p", { class: "tl-key" }, "Dashed words stand behind the hole: for the bars at the left they are cut off. The model is this chapter’s small BERT, after half a minute of training."));
      const show = ui.picture("For the hidden word the four likeliest tokens as bars, and the true one: at the left from what stands before it alone, at the right from both sides. The sentence below says the numbers.");
      ui.panel.classList.add("tl-short");
      ui.choice("item", "Sentence", SENTENCES.map(({ words }, i) => [String(i), `${words.slice(0, 6).join(" ")} …`]), (item) => ({ item, place: 1 })).style.flexBasis = "100%";
      ui.slider("place", "Hidden word", { min: 1, max: () => shown(ui.state).words.length });
      return (state, width) => {
        const sentence = shown(state);
        const at = clip(sentence, state.place);
        const word = sentence.words[at];
        each(row, sentence.words, (n) => html("button", { type: "button", onclick: () => ui.change({ place: n + 1 }) }),
          (w, n) => [{ "aria-pressed": n === at, style: n > at ? "border-style: dashed" : "", "aria-label": n === at ? `${w}, hidden` : w }, n === at ? "▢" : w]);
        const full = (width - 16) / 2;
        const lists = SIDES.map(([side]) => {
          const { best, true: share } = sentence[side][at];
          return best.some(([w]) => w === word) ? best : [...best.slice(0, 3), [word, share]];
        });
        const long = ui.arrive("answers", lists.flat().map(([, x]) => x));
        show(width, 136, lists.map((rows, i) => [
          text(i * (full + 16), 20, SIDES[i][1], { anchor: "start", size: 13 }),
          rows.map(([w, x], n) => [
            rect(i * (full + 16), 28 + 27 * n, full, 23, { fill: "none", stroke: w === word ? colour("value") : "currentColor", "stroke-width": w === word ? 2.5 : 1, opacity: w === word ? 1 : 0.3 }),
            rect(i * (full + 16), 28 + 27 * n, full * long[4 * i + n], 23, { fill: `color-mix(in srgb, ${colour("value")} 45%, transparent)` }),
            text(i * (full + 16) + 7, 45 + 27 * n, w, { anchor: "start", "font-weight": w === word ? 700 : 400 }),
            text(i * (full + 16) + full - 6, 45 + 27 * n, x < 0.01 ? "< 1%" : percent(x), { anchor: "end", size: 13 })])]));
        const [left, both] = SIDES.map(([side]) => sentence[side][at]);
        const says = ({ best: [[w, x]], true: share }) => `${percent(share)}${w === word ? ", more than any other" : `, and most to ${quoted(w)} (${percent(x)})`}`;
        return `Hidden: ${quoted(word)}. From what stands before it, the model gives it ${says(left)}; with both sides ${says(both)}.`;
      };
    },
  });
})();
