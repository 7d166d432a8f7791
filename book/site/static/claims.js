// A link to a claim opens what it is folded in: the claim's own fold and, where there is one, a solution's.
(() => {
  const show = () => {
    const name = decodeURIComponent(location.hash.slice(1));
    const row = name.startsWith("claim-") && document.getElementById(name);
    if (!row) return;
    for (let fold = row.parentElement; fold; fold = fold.parentElement) {
      if (fold.tagName === "DETAILS") fold.open = true;
      if (fold.classList.contains("toggle-hidden")) fold.querySelector(".toggle-button")?.click();
    }
    row.scrollIntoView();
  };
  window.addEventListener("load", show); // after the folds of solutions are made
  window.addEventListener("hashchange", show);
})();

// The table of all claims: rows that have every word asked for, in the chapter chosen.
document.addEventListener("DOMContentLoaded", () => {
  const form = document.querySelector(".tformer-filter");
  const table = document.querySelector(".tformer-results");
  if (!form || !table) return;
  const [words, chapter, count] = ["input", "select", "output"].map((name) => form.querySelector(name));
  const plain = (text) => text.normalize("NFKD").toLowerCase();
  const groups = [...table.tBodies].map((body) => {
    const [title, ...rows] = body.rows;
    const heading = title.textContent;
    return {
      body,
      rows: rows.map((row) => ({ row, text: plain(`${row.textContent} ${row.title} ${heading}`) })),
    };
  });
  const total = groups.reduce((sum, group) => sum + group.rows.length, 0);
  const update = () => {
    const asked = plain(words.value).split(/\s+/).filter(Boolean);
    let shown = 0;
    for (const { body, rows } of groups) {
      const chosen = !chapter.value || body.dataset.chapter === chapter.value;
      let here = 0;
      for (const { row, text } of rows) {
        row.hidden = !(chosen && asked.every((word) => text.includes(word)));
        here += !row.hidden;
      }
      body.hidden = !here;
      shown += here;
    }
    count.textContent = shown === total ? `${total} claims` : `${shown} of ${total} claims`;
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update(); // a browser that comes back may have kept what was typed
});
