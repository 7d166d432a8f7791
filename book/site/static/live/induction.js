// Chapter 13: the induction circuit that is built by hand, on letters that one types, step by step.
(() => {
  const { define, html, svg, text, line, rect, colour, number } = window.TformerLive;
  const { induction } = window.TformerMaths;
  const FIRST = "abcdxab";
  const valid = (word) => /^[a-z]{6,10}$/.test(word);
  const steps = ["written", "matches", "weights", "logits"];
  const short = (z) => {
    const tenth = Math.round(10 * z) / 10 || 0;
    return number(tenth, Number.isInteger(tenth) ? 0 : 1);
  };

  const lettersOf = (state) => (valid(state.word) ? state.word : FIRST);
  const asking = (state) => { const N = lettersOf(state).length; return state.asks >= 0 && state.asks < N ? Math.round(state.asks) : N - 1; };
  const circuit = (state) => {
    const word = lettersOf(state);
    const seen = [...new Set(word)];
    return { word, seen, ...induction(Array.from(word, (c) => seen.indexOf(c)), seen.length, state) };
  };
  const top = (p) => p.indexOf(Math.max(...p));
  const winner = (state) => { const { seen, logits } = circuit(state); return seen[top(logits[asking(state)])]; };

  define("induction-explorer", {
    state: { word: FIRST, asks: 99, step: 0, sharp: 20, connected: true, first: true },
    tasks: [
      ["Which letter comes next? Guess, then go through the four steps.", ({ step }) => step === 3],
      ["Let head 1.0 compare with the letters themselves, not with the notes: untick the first box.", ({ connected, first }) => !connected && first],
      ["Tick it again. Then lower the score of a match until another letter wins.",
        (state) => state.connected && state.first && winner(state) !== winner({ ...state, sharp: 20 })],
    ],
    learned: "To copy what followed takes two heads: one writes notes, the other looks for its letter in them. Neither does it alone.",
    build(ui) {
      const fault = html("span", { class: "tl-fault", role: "status" });
      const box = html("input", { type: "text", maxlength: 10, size: 10, spellcheck: "false", autocapitalize: "none", autocomplete: "off",
        "aria-label": "Six to ten letters that the circuit reads", oninput: () => {
          const word = box.value.toLowerCase();
          fault.textContent = valid(word) ? "" : "Six to ten letters from a to z, please.";
          if (valid(word)) ui.change({ word, asks: 99 });
        } });
      const letters = html("p", { class: "tl-words tl-cells", role: "group", "aria-label": "Who asks: choose a letter" });
      ui.stage.append(letters);
      const show = ui.picture("Under each letter its note: the letter before it, as head 0.0 writes it; the score of its match with the letter that asks; arcs as thick as the weights of head 1.0; and at last the logits. The sentence below says what is read and copied.");
      ui.panel.classList.add("tl-dense");
      ui.slider("step", "Step", { min: 0, max: 3, show: (step) => `${step + 1} of 4: ${steps[step]}` }).classList.add("tl-wide");
      ui.slider("sharp", "Score of a match", { min: 1, max: 20 }).classList.add("tl-wide");
      ui.toggle("connected", "Head 1.0 compares with what head 0.0 has written").classList.add("tl-wide");
      ui.toggle("first", "Head 0.0 is there");
      ui.panel.append(html("div", { class: "tl-row" }, html("span", {}, "Letters"), box), fault);
      return (state, width) => {
        const { word, seen, ...found } = circuit(state);
        if (document.activeElement !== box) box.value = word;
        const N = word.length;
        const n = asking(state);
        const { connected, first } = state;
        const step = Math.min(3, Math.max(0, Math.round(state.step)));
        const cell = Math.min(60, (width - 8) / N);
        const focused = document.activeElement?.dataset?.place;
        letters.replaceChildren(...Array.from(word, (c, i) => html("button", { type: "button", "data-place": i, style: `width: ${cell - 4}px`,
          "aria-label": `${c}, place ${i}`, "aria-pressed": i === n, onclick: () => ui.change({ asks: i }) }, c)));
        letters.style.width = `${N * cell}px`;
        if (focused != null) letters.querySelector(`[data-place="${focused}"]`)?.focus();
        const start = (width - N * cell) / 2;
        const x = (s) => start + (s + 0.5) * cell;
        const name = (y, words) => text(width / 2, y, words, { size: 13 });
        const row = (draw) => Array.from({ length: N }, (_, s) => draw(s, x(s)));
        const best = top(found.weights[n]);
        // Arrows: what head 0.0 carries; below them the notes.
        const parts = [first && row((s, mid) => found.previous[s].map((a, from) => a > 0.02 && line(x(from), 2, mid, 30, {
          stroke: colour("key"), "stroke-width": 0.5 + 2.5 * a, opacity: s > n ? 0.25 : 1 }))),
          row((s, mid) => {
            const p = found.before[s];
            const most = Math.max(...p);
            return [rect(mid - cell / 2 + 2, 30, cell - 4, 26, { rx: 4, fill: most ? `color-mix(in srgb, ${colour("key")} ${Math.round(75 * most)}%, var(--pst-color-background))` : "none", stroke: "currentColor", opacity: s > n ? 0.25 : 1, "data-key": `note ${s}` }),
              s <= n && text(mid, 48, most > 0 ? seen[top(p)] : "–", { fill: most > 0.6 ? colour("on-key") : "currentColor" })];
          }),
          name(74, first ? "notes: the letter before, written by head 0.0" : "no notes: head 0.0 is away")];
        // Scores and arcs of the head that compares, from who asks.
        const [arcs, bars] = [104, 264];
        if (step > 0) parts.push(row((s, mid) => s <= n && text(mid, 93, short(found.scores[n][s]), { size: 13, "font-weight": s === best ? 700 : 400 })));
        if (step > 1) parts.push(row((s, mid) => {
          const a = found.weights[n][s];
          const deep = Math.min(60, 20 + 0.28 * (x(n) - mid));
          const foot = s === n ? [mid + 9, mid - 9] : [x(n), mid];
          return a > 0.005 && svg("path", { d: `M${foot[0]} ${arcs}C${foot[0]} ${arcs + 1.3 * deep} ${foot[1]} ${arcs + 1.3 * deep} ${foot[1]} ${arcs}`, fill: "none",
            stroke: colour("weights"), "stroke-width": 0.5 + 11 * a, "stroke-linecap": "round", "data-key": `arc ${s}` });
        }));
        parts.push(name(188, step < 1 ? `then head 1.0 compares “${word[n]}” with ${connected ? "the notes" : "the letters"}`
          : step < 2 ? `scores of “${word[n]}” with ${connected ? "the notes" : "the letters"}` : `weights: “${word[n]}” reads “${word[best]}” with ${number(100 * found.weights[n][best], 0)}%`));
        const wide = Math.min(60, (width - 8) / seen.length);
        const from = (width - wide * seen.length) / 2;
        parts.push(seen.map((c, v) => {
          const mid = from + (v + 0.5) * wide;
          const z = step > 2 ? found.logits[n][v] : 0;
          const own = c === word[n] ? Math.min(1, z) : 0;
          const thick = Math.min(34, wide - 8);
          return [rect(mid - thick / 2, bars - 18 * own, thick, 18 * own, { fill: colour("query"), "data-key": `own ${c}` }),
            rect(mid - thick / 2, bars - 18 * z, thick, 18 * (z - own), { fill: colour("value"), "data-key": `read ${c}` }),
            text(mid, bars - 18 * z - 4, step > 2 ? number(z, 1) : "?", { size: 12 }), text(mid, bars + 16, c)];
        }), line(from, bars, from + wide * seen.length, bars), name(bars + 36, "logits: 1 for who asks, 2 for what is read"));
        show(width, bars + 42, parts); // of one height, so that the controls below stay where they are
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
