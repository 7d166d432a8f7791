// Chapter 13: recorded patches of translators of number words; choose a pair, a place and a layer.
(() => {
  const { define, html, shade, number } = window.TformerLive;
  const PATCHES = window.TformerPatches;
  const MODELS = { all: "reads all places", end: "reads the end only" };
  const layers = (L) => Array.from({ length: L }, (_, l) => (l ? `block ${l}` : "start"));

  define("patching-board", {
    state: { item: "0", side: "encoder", way: "denoise", layer: 0, place: 99, weights: false },
    build(ui) {
      const table = html("table", { class: "tl-table tl-grid" });
      ui.stage.append(html("div", { class: "tl-scroll" }, table));
      const runs = ui.table("The answer without a patch, and with it");
      ui.choice("item", "Model and pair", PATCHES.map((one, i) => [String(i),
        `${MODELS[one.reads]}: ${one.clean.slice(5, 7).join("-")} / ${one.corrupted.slice(5, 7).join("-")}`]),
      (item) => ({ item, place: 99, layer: 0 }));
      ui.choice("side", "Where to patch", [["encoder", "the encoder: English"], ["decoder", "the decoder: German"]], (side) => ({ side, place: 99, layer: 0 }));
      ui.choice("way", "Direction", [["denoise", "denoise: clean into corrupted"], ["noise", "noise: corrupted into clean"]]);
      ui.toggle("weights", "Show what the decoder reads (cross-attention, mean of heads)");
      return (state) => {
        const one = PATCHES[Number(state.item)] ?? PATCHES[0];
        const encoder = state.side !== "decoder";
        const way = state.way === "noise" ? "noise" : "denoise";
        const grid = one[encoder ? "encoder" : "decoder"][way];
        const [L, N] = [grid.length, grid[0].length];
        const words = encoder ? one.clean : one.written;
        const changed = encoder ? one.clean.findIndex((word, s) => word !== one.corrupted[s]) : N - 1;
        const layer = Math.min(L - 1, Math.max(0, Math.round(state.layer)));
        const place = state.place >= 0 && state.place < N ? Math.round(state.place) : changed;
        const [from, to] = way === "denoise" ? ["corrupted", "clean"] : ["clean", "corrupted"];
        const [base, goal] = [one.plain[from][0], one.plain[to][0]];
        const effect = (l, s) => (grid[l][s][0] - base) / (goal - base);
        const plain = (x) => number(Math.abs(x) < 0.005 ? 0 : x);
        const word = (s) => (encoder && s === changed ? `${words[s]} / ${one.corrupted[s]}` : words[s]);
        const focused = document.activeElement?.dataset?.cell;
        const read = encoder && state.weights;
        table.replaceChildren(
          html("caption", {}, `Effect of a patch at each place, behind each block (${way === "denoise" ? "share restored" : "share destroyed"})`),
          html("thead", {}, html("tr", {}, [encoder ? "read" : "written so far", ...layers(L), ...(read ? ["weight"] : [])].map((name) => html("th", { scope: "col" }, name)))),
          html("tbody", {}, words.map((_, s) => html("tr", {}, html("th", { scope: "row" }, word(s)),
            layers(L).map((name, l) => html("td", {}, html("button", {
              type: "button", "data-cell": `${l}:${s}`, "aria-pressed": l === layer && s === place,
              "aria-label": `${word(s)}, ${name}: effect ${plain(effect(l, s))}`,
              style: shade(Math.min(1, Math.max(0, effect(l, s)))), onclick: () => ui.change({ layer: l, place: s }) }, plain(effect(l, s))))),
            read && html("td", {}, plain(one.weights[s]))))));
        if (focused) table.querySelector(`[data-cell="${focused}"]`)?.focus();
        const patched = grid[layer][place];
        runs(["run", "logit difference", ...one.answers.map((answer) => `p(${answer})`)],
          [["clean", one.plain.clean], ["corrupted", one.plain.corrupted], ["patched", patched]].map(([name, three]) => [name, ...three.map((x) => plain(x))]),
          (i) => (i === 2 ? "tl-new" : ""));
        const at = `“${words[place]}” ${layer ? `behind block ${layer}` : "at the start"}`;
        const did = way === "denoise" ? `The clean vector of ${at} restores` : `The corrupted vector of ${at} destroys`;
        const most = one.weights.indexOf(Math.max(...one.weights));
        return `${did} ${number(100 * effect(layer, place), 0)}% of the logit difference between “${one.answers[0]}” and “${one.answers[1]}”: with it “${one.answers[0]}” has ${number(100 * patched[1], 0)}% and “${one.answers[1]}” ${number(100 * patched[2], 0)}%.${
          read ? ` The decoder reads most from “${one.clean[most]}” (${number(100 * one.weights[most], 0)}%).` : ""}`;
      };
    },
  });
})();
