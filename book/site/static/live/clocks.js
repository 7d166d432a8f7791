// Chapter 5: a query at place n and a key at place s, turned by their places; the score knows only n - s.
(() => {
  const { define, svg, text, line, path, colour, number, list } = window.TformerLive;
  const { rotate, speeds, dot } = window.TformerMaths;
  const D = 8;
  const BASE = 10000;
  const query = [1, 0, 0.9, 0.3, 0.7, 0.6, 1, 0.2];
  const key = [0.9, 0.4, 1, 0, 0.8, 0.5, 0.9, -0.3];

  define("rotary-clocks", {
    state: { n: 5, s: 2 },
    tasks: [
      ["Move both on by the same number of places. Which numbers stay?",
        ({ n, s }, start) => n !== start.n && n - s === start.n - start.s],
      ["Query at 3, key at 4: which hand tells them apart best?", ({ n, s }) => n === 3 && s === 4],
      ["Key at 300: which hands have not gone round?", ({ n, s }) => n === 3 && s === 300],
    ],
    learned: "The score knows only the offset. Fast hands tell neighbours apart, slow hands tell far places apart.",
    build(ui) {
      let tips = []; // of all hands: where they are, what they turn
      let held = null;
      const drag = (x, y, down) => {
        if (down) {
          const far = (tip) => Math.hypot(tip.x - x, tip.y - y);
          const near = tips.reduce((best, tip) => (far(tip) < far(best) ? tip : best));
          held = far(near) < 24 && { ...near, place: ui.state[near.key], angle: Math.atan2(near.cy - y, x - near.cx) };
        } else if (held) {
          const angle = Math.atan2(held.cy - y, x - held.cx);
          const turned = angle - held.angle - 2 * Math.PI * Math.round((angle - held.angle) / (2 * Math.PI)); // the short way
          held.place = Math.min(300, Math.max(0, held.place + turned / held.speed));
          held.angle = angle;
          ui.change({ [held.key]: Math.round(held.place) });
        }
      };
      const show = ui.picture("Four dials, one for each pair of features, from fast to slow. A hand for the query, turned by its place, and one for the key, turned by its own. The table says each angle and the sentence below the score. Hands can be dragged; the sliders do the same.", drag);
      ui.stage.lastElementChild.classList.add("tl-hands");
      const rows = ui.table("Hand by hand: angles in radians");
      const angle = (a) => {
        const turns = Math.floor(a / (2 * Math.PI));
        return `${number(a - turns * 2 * Math.PI, 3)}${turns ? ` + ${turns} ${turns === 1 ? "turn" : "turns"}` : ""}`;
      };
      const on = (places) => {
        const { n, s } = ui.state;
        const by = Math.min(places, 300 - Math.max(n, s)); // both or neither: the offset stays
        ui.change({ n: n + by, s: s + by });
      };
      ui.slider("n", "Place of the query, n", { min: 0, max: 300 });
      ui.slider("s", "Place of the key, s", { min: 0, max: 300 });
      ui.button("Both one place on", () => on(1));
      ui.button("Both ten places on", () => on(10));
      return ({ n, s }, width) => {
        const across = width < 480 ? 2 : 4;
        const cell = width / across;
        const r = across === 4 ? Math.min(62, cell / 2 - 16) : 45;
        const high = 2 * r + 32 + (across === 4 ? 30 : 0); // on a phone the table has the products
        const turned = (places) => [rotate(query, places[0], BASE), rotate(key, places[1], BASE)];
        const [q, k] = turned([n, s]);
        const hands = turned(ui.arrive("places", [n, s]));
        const w = speeds(D, BASE);
        const shares = w.map((_, i) => dot(q.slice(2 * i, 2 * i + 2), k.slice(2 * i, 2 * i + 2)));
        tips = [];
        const hand = (cx, cy, [a, b], role, speed, dash) => {
          const [x, y] = [cx + r * a * 0.92, cy - r * b * 0.92];
          tips.push({ x, y, cx, cy, speed, key: role === "query" ? "n" : "s" });
          return [
            line(cx, cy, x, y, { stroke: colour(role), "stroke-width": 5, "stroke-linecap": "round", "stroke-dasharray": dash }),
            svg("circle", { cx: x, cy: y, r: 5, fill: colour(role) }),
            svg("circle", { cx: x, cy: y, r: 20, fill: "transparent", class: "tl-grip" })];
        };
        show(width, high * (D / 2 / across),
          w.map((speed, i) => {
            const cx = cell * ((i % across) + 0.5);
            const cy = high * Math.floor(i / across) + r + 8;
            return [
              svg("circle", { cx, cy, r, fill: "none", stroke: "currentColor", opacity: 0.5 }),
              path([[cx + r, cy], [cx + r - 7, cy]], { opacity: 0.6 }),
              hand(cx, cy, hands[0].slice(2 * i, 2 * i + 2), "query", speed), hand(cx, cy, hands[1].slice(2 * i, 2 * i + 2), "key", speed, "7 8"),
              text(cx, cy + r + 20, `${number(speed, 3).replace(/0+$/, "").replace(/\.$/, "")} rad a place`, { size: 13 }),
              across === 4 && text(cx, cy + r + 40, `qᵀk: ${number(shares[i])}`, { size: 13 })];
          }));
        rows(["a place", "query turned", "key turned", "qᵀk"], w.map((speed, i) => [
          String(Number(speed.toFixed(3))), angle(n * speed), angle(s * speed), number(shares[i])]));
        return `Query at place ${number(n, 0)}, key at place ${number(s, 0)}: offset n − s = ${number(n - s, 0)}. The four products, from the fast hand to the slow, are ${list(shares.map((z) => number(z, 3)))}. Their sum, the score, is ${number(dot(q, k), 3)}. (Full hand: the query; dashed: the key.)`;
      };
    },
  });
})();
