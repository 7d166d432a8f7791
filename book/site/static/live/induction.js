// Chapter 13: the induction circuit that is built by hand, on letters that one types, step by step.
(() => {
  const { define, html, text, line, rect, colour, number } = window.TformerLive;
  const { induction } = window.TformerMaths;
  const FIRST = "abcdxab";
  const valid = (word) => /^[a-z]{6,10}$/.test(word);
  const steps = ["written", "matches", "weights", "logits"];
  const short = (z) => {
    const tenth = Math.round(10 * z) / 10 || 0;
    return number(tenth, Number.isInteger(tenth) ? 0 : 1);
  };

  define("induction-explorer", {
    state: { word: FIRST, asks: 99, step: 0, sharp: 20, connected: true, first: true },
    build(ui) {
      const fault = html("p", { class: "tl-fault", role: "status" });
      const box = html("input", { type: "text", maxlength: 10, spellcheck: "false", autocapitalize: "none", autocomplete: "off",
        "aria-label": "Six to ten letters that the circuit reads", oninput: () => {
          const word = box.value.toLowerCase();
          fault.textContent = valid(word) ? "" : "Six to ten letters from a to z, please.";
          if (valid(word)) ui.change({ word, asks: 99 });
        } });
      const letters = html("p", { class: "tl-words", role: "group", "aria-label": "Who asks: choose a letter" });
      ui.stage.append(html("p", { class: "tl-label" }, "Six to ten letters:"), box, fault,
        html("p", { class: "tl-label" }, "Who asks:"), letters);
      const show = ui.picture("Under each letter: the letter before it, as head 0.0 writes it; its match with the letter that asks; the weight of head 1.0; and at last the logits. The sentence below says what is read and copied.");
      ui.slider("step", "Step", { min: 0, max: 3, show: (step) => `${step + 1} of 4: ${steps[step]}` });
      ui.slider("sharp", "Score of a match", { min: 1, max: 20 });
      ui.toggle("connected", "Head 1.0 compares with what head 0.0 has written");
      ui.toggle("first", "Head 0.0 is there");
      return (state, width) => {
        const word = valid(state.word) ? state.word : FIRST;
        if (document.activeElement !== box) box.value = word;
        const seen = [...new Set(word)];
        const N = word.length;
        const n = state.asks >= 0 && state.asks < N ? Math.round(state.asks) : N - 1;
        const { sharp, connected, first } = state;
        const step = Math.min(3, Math.max(0, Math.round(state.step)));
        const found = induction(Array.from(word, (c) => seen.indexOf(c)), seen.length, { sharp, connected, first });
        const focused = document.activeElement?.dataset?.place;
        letters.replaceChildren(...Array.from(word, (c, i) => html("button", { type: "button", "data-place": i,
          "aria-label": `${c}, place ${i}`, "aria-pressed": i === n, onclick: () => ui.change({ asks: i }) }, c)));
        if (focused != null) letters.querySelector(`[data-place="${focused}"]`)?.focus();
        const cell = Math.min(56, (width - 8) / N);
        const x = (s) => 4 + s * cell;
        const name = (y, words) => text(4, y, words, { anchor: "start", size: 13 });
        const row = (y, draw) => Array.from({ length: N }, (_, s) => draw(s, x(s) + cell / 2, y));
        const box0 = (s, y, rest) => rect(x(s) + 2, y, cell - 4, 28, { rx: 4, fill: "none", stroke: "currentColor", ...rest });
        const top = (p) => p.indexOf(Math.max(...p));
        const best = top(found.weights[n]);
        const parts = [name(14, "tokens; framed: the one that asks"), row(22, (s, mid, y) => [
          box0(s, y, s === n ? { stroke: colour("query"), "stroke-width": 4 } : { opacity: s < n ? 1 : 0.4 }),
          text(mid, y + 19, word[s], { opacity: s <= n ? 1 : 0.7 })])];
        parts.push(name(76, first ? "second field: the letter before, by head 0.0" : "second field: empty, head 0.0 is away"),
          row(84, (s, mid, y) => {
            const p = found.before[s];
            const most = Math.max(...p);
            return s <= n && [box0(s, y, { fill: colour("key"), "fill-opacity": 0.75 * most }), text(mid, y + 19, most > 0 ? seen[top(p)] : "–", { fill: 0.75 * most > 0.5 ? colour("on-weights") : "currentColor" })];
          }));
        if (step > 0) parts.push(name(138, connected ? `match of “${word[n]}” with the second field: score` : `match of “${word[n]}” with the token itself: score`),
          row(146, (s, mid, y) => s <= n && text(mid, y + 14, short(found.scores[n][s]), { size: 13 })));
        if (step > 1) parts.push(name(190, "weight in per cent"), row(198, (s, mid, y) => s <= n && [
          box0(s, y, { fill: colour("weights"), "fill-opacity": 0.85 * found.weights[n][s], "stroke-width": s === best ? 3 : 1 }),
          text(mid, y + 19, number(100 * found.weights[n][s], 0), { size: 13, fill: found.weights[n][s] > 0.6 ? colour("on-weights") : "currentColor" })]));
        if (step > 2) {
          const wide = Math.min(56, (width - 8) / seen.length);
          parts.push(name(252, "logits: 1 for who asks, 2 for what is read"),
            seen.map((c, v) => {
              const z = found.logits[n][v];
              const at = 4 + v * wide;
              return [rect(at + 3, 330 - 14 * z, wide - 6, 14 * z, { fill: colour("value") }),
                text(at + wide / 2, 346, c), text(at + wide / 2, 324 - 14 * z, number(z, 1), { size: 12 })];
            }), line(4, 330, 4 + wide * seen.length, 330));
        }
        show(width, 356, parts); // of one height, so that the controls below stay where they are
        const z = found.logits[n];
        const high = Math.max(...z);
        const next = seen.filter((_, v) => z[v] > high - 1e-6);
        const share = number(100 * found.weights[n][best], 0);
        if (step === 0) return `Place ${n}: head 0.0 has written ${first ? (n ? `“${seen[top(found.before[n])]}” behind “${word[n]}”` : "the letter itself, for there is none before it") : "nothing"}.`;
        if (step === 1) return `“${word[n]}” at place ${n} scores highest (${short(Math.max(...found.scores[n]))}) at ${found.scores[n].flatMap((v, s) => (v > Math.max(...found.scores[n]) - 1e-6 ? [`place ${s}`] : [])).join(", ")}.`;
        if (step === 2) return `“${word[n]}” at place ${n} reads place ${best} (“${word[best]}”) with ${share}%.`;
        return `“${word[n]}” at place ${n} reads place ${best} (“${word[best]}”) with ${share}%. The largest logit, ${number(high, 2)}: ${next.map((c) => `“${c}”`).join(", ")} (1 for the letter that asks, twice its weight for each letter that is read).`;
      };
    },
  });
})();
