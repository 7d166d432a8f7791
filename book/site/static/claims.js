// The page of all claims: a chapter's fold shows the rows that have every word asked for. The rows come into the
// document when something is asked, and folds open by themselves when few rows are left.
document.addEventListener("DOMContentLoaded", () => {
  const MANY = 100;
  const form = document.querySelector(".tformer-filter");
  const folds = [...document.querySelectorAll("details.tformer-found")];
  if (!form || !folds.length) return;
  const words = form.querySelector("input"), count = form.querySelector("output");
  const plain = (text) => text.normalize("NFKD").toLowerCase();
  const total = folds.reduce((sum, fold) => sum + Number(fold.dataset.claims), 0);
  const number = (value) => value.toLocaleString("en-GB");
  const opened = new Set(); // by a question, not by hand

  let chapters;
  const read = () => folds.map((fold) => {
    tformerClosed.fill(fold);
    const heading = fold.querySelector("h2").textContent;
    const groups = [...fold.querySelectorAll("tbody")].map((body) => {
      const rows = [...body.rows].filter((row) => !row.matches(".tformer-group"));
      return { body, rows: rows.map((row) => ({ row, text: plain(`${row.textContent} ${row.title} ${heading}`) })) };
    });
    return { fold, groups };
  });

  const update = () => {
    const asked = plain(words.value).split(/\s+/).filter(Boolean);
    if (asked.length) chapters ??= read();
    let shown = chapters ? 0 : total;
    for (const { fold, groups } of chapters || []) {
      let found = 0;
      for (const { body, rows } of groups) {
        let here = 0;
        for (const { row, text } of rows) {
          row.hidden = !asked.every((word) => text.includes(word));
          here += !row.hidden;
        }
        body.hidden = !here;
        found += here;
      }
      fold.hidden = !found;
      shown += found;
    }
    const few = asked.length && shown <= MANY;
    for (const fold of folds) {
      if (few && !fold.hidden && !fold.open) {
        fold.open = true;
        opened.add(fold);
      } else if ((!few || fold.hidden) && opened.delete(fold)) fold.open = false;
    }
    count.textContent = shown === total ? `${number(total)} claims` : `${number(shown)} of ${number(total)} claims`;
  };
  form.addEventListener("input", update);
  form.addEventListener("submit", (event) => event.preventDefault());
  form.hidden = false;
  update(); // a browser that comes back may have kept what was typed
});
