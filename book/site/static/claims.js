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
