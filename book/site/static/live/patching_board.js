// Chapter 13: recorded patches of translators of number words; choose a pair, a place and a layer.
(() => {
  const { define, html, text, rect, colour, number } = window.TformerLive;
  const PATCHES = window.TformerPatches;
  const MODELS = { all: "reads all places", end: "reads the end only" };
  const layers = (L) => Array.from({ length: L }, (_, l) => (l ? `block ${l}` : "start"));

  // The board of a state: its words, the chosen place and layer, and what a patch anywhere brings about.
  const board = (state) => {
    const one = PATCHES[Number(state.item)] ?? PATCHES[0];
    const encoder = state.side !== "decoder";
    const way = state.way === "noise" ? "noise" : "denoise";
    const grid = one[encoder ? "encoder" : "decoder"][way];
    const [L, N] = [grid.length, grid[0].length];
    const changed = encoder ? one.clean.findIndex((word, s) => word !== one.corrupted[s]) : N - 1;
    const layer = Math.min(L - 1, Math.max(0, Math.round(state.layer)));
    const place = state.place >= 0 && state.place < N ? Math.round(state.place) : changed;
    const [base, goal] = (way === "denoise" ? ["corrupted", "clean"] : ["clean", "corrupted"]).map((run) => one.plain[run][0]);
    const effect = (l, s) => (grid[l][s][0] - base) / (goal - base);
    return { one, encoder, way, grid, L, changed, layer, place, effect, chosen: effect(layer, place) };
  };

  define("patching-board", {
    state: { item: "0", side: "encoder", way: "denoise", layer: 0, place: 0, weights: false },
    tasks: [
      ["One word was changed, and the answer is wrong. Press the dot that brings the right answer back.",
        (state) => { const { chosen, way } = board(state); return way === "denoise" && chosen > 0.9; }],
      ["Choose a model that reads the end only. Which dot at another word brings back most of the answer?",
        (state) => { const { one, encoder, changed, place, chosen } = board(state); return one.reads === "end" && encoder && place !== changed && chosen > 0.5; }],
      ["Show what the decoder reads. Then press the dot that decides at the start: is it the word that is read?",
        (state) => { const { encoder, layer, place, changed } = board(state); return state.weights && encoder && layer === 0 && place === changed; }],
    ],
    learned: "What decides may have moved before it is read. Attention shows the place that is read, not the word that decides.",
    build(ui) {
      const table = html("table", { class: "tl-table tl-grid" });
      const both = html("div", { class: "tl-beside" }, html("div", { class: "tl-scroll" }, table));
      const show = ui.picture("The answers of the clean run, of the corrupted run and of the run with the patch, as bars. The sentence below says the numbers.");
      both.append(ui.stage.lastElementChild);
      ui.stage.append(both);
      ui.panel.classList.add("tl-dense");
      ui.choice("item", "Model and pair", PATCHES.map((one, i) => [String(i),
        `${MODELS[one.reads]}: ${one.clean.slice(5, 7).join("-")} / ${one.corrupted.slice(5, 7).join("-")}`]),
      (item) => ({ item, place: 0, layer: 0 })).classList.add("tl-wide");
      ui.choice("side", "Where to patch", [["encoder", "encoder: English"], ["decoder", "decoder: German"]], (side) => ({ side, place: 0, layer: 0 }));
      ui.choice("way", "Direction", [["denoise", "denoise: clean in"], ["noise", "noise: corrupted in"]]);
      ui.toggle("weights", "Show what the decoder reads");
      const plain = (x) => number(Math.abs(x) < 0.005 ? 0 : x);
      const dot = (size) => html("span", { class: "tl-size", style: `transform: scale(${Math.sqrt(Math.min(1, Math.max(0, size)))})` });
      let kept; // the board that stands there: dots grow and shrink while it stays
      const lay = ({ one, encoder, L, changed }, read) => {
        const words = encoder ? one.clean : one.written;
        const word = (s) => (encoder && s === changed ? [`${words[s]} `, html("s", { class: "tl-differs" }, one.corrupted[s])] : words[s]);
        table.replaceChildren(
          html("caption", {}, "A larger dot: a patch there does more"),
          html("thead", {}, html("tr", {}, [encoder ? "read" : "written", ...layers(L), ...(read ? ["is read"] : [])].map((name) => html("th", { scope: "col" }, name)))),
          html("tbody", {}, words.map((_, s) => html("tr", {}, html("th", { scope: "row" }, word(s)),
            layers(L).map((_, l) => html("td", {}, html("button", { type: "button", "data-cell": `${l}:${s}`, onclick: () => ui.change({ layer: l, place: s }) },
              dot(0), html("span", { class: "tl-number" })))),
            read && html("td", { class: "tl-read", "aria-label": plain(one.weights[s]), title: plain(one.weights[s]) }, dot(one.weights[s]))))));
      };
      return (state, width) => {
        const now = board(state);
        const { one, encoder, way, grid, L, changed, layer, place, effect } = now;
        const read = encoder && state.weights;
        const words = encoder ? one.clean : one.written;
        const key = [state.item, encoder, read].join();
        if (kept !== key) lay(now, read);
        kept = key;
        for (const button of table.querySelectorAll("button")) {
          const [l, s] = button.dataset.cell.split(":").map(Number);
          const share = effect(l, s);
          const name = encoder && s === changed ? `${words[s]} / ${one.corrupted[s]}` : words[s];
          button.setAttribute("aria-pressed", String(l === layer && s === place));
          button.setAttribute("aria-label", `${name}, ${layers(L)[l]}: effect ${plain(share)}`);
          button.firstChild.style.transform = dot(share).style.transform;
          button.lastChild.textContent = plain(share);
        }
        const patched = grid[layer][place];
        const narrow = width < 560;
        const wide = narrow ? width : width - table.offsetWidth - 28;
        const [row, thick] = narrow ? [22, 18] : [84, 40]; // beside the board a name stands over its bar
        const left = narrow ? 78 : 0;
        const long = wide - left;
        show(wide, 24 + 3 * row,
          one.answers.map((answer, i) => text(i ? wide : left, 14, answer, { anchor: i ? "end" : "start", "font-weight": 600, fill: "currentColor" })),
          [["clean", one.plain.clean], ["corrupted", one.plain.corrupted], ["patched", patched]].map(([name, [, right, wrong]], i) => {
            const y = 22 + i * row + (narrow ? 0 : 20);
            return [text(0, narrow ? y + 14 : y - 4, narrow ? name : `${name} run`, { anchor: "start", size: 13 }),
              rect(left, y, long, thick, { fill: "currentColor", "fill-opacity": 0.1 }),
              rect(left, y, long * right, thick, { fill: colour("value"), "data-key": `right ${name}` }),
              rect(left + long * (1 - wrong), y, long * wrong, thick, { fill: colour("key"), "data-key": `wrong ${name}` }),
              i === 2 && rect(left + 1, y, long - 2, thick, { fill: "none", stroke: colour("query"), "stroke-width": 2 })];
          }));
        const at = `“${words[place]}” ${layer ? `behind block ${layer}` : "at the start"}`;
        const did = way === "denoise" ? `The clean vector of ${at} restores` : `The corrupted vector of ${at} destroys`;
        const most = one.weights.indexOf(Math.max(...one.weights));
        return `${did} ${number(100 * effect(layer, place), 0)}% of the logit difference between “${one.answers[0]}” and “${one.answers[1]}”: with it “${one.answers[0]}” has ${number(100 * patched[1], 0)}% and “${one.answers[1]}” ${number(100 * patched[2], 0)}%.${
          read ? ` The decoder reads most from “${one.clean[most]}” (${number(100 * one.weights[most], 0)}%).` : ""}`;
      };
    },
  });
})();
