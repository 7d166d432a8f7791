// What print.css cannot do for paper. The browser's print dialogue and tools/make_pdf.py both print what this
// leaves; when the print is over, the page is as it was.
(() => {
  const COLUMN = 44.8; // the text's width on paper in root ems: 166 mm at 10.5 pt
  const [LETTER, PADDING] = [0.482, 1.2]; // of code on paper, in root ems: 88 columns and a little fill the text's
  const SMALLEST = 0.78; // a longer line is made no smaller than this, and wraps
  const WHOLE = 18; // code of at most so many lines is not divided between pages
  const FOLDS = "details:not([open], .hide, .tformer-claims, .tl-open)";
  let undo = [];

  const set = (owner, name, value) => {
    const before = owner[name];
    owner[name] = value;
    undo.push(() => { owner[name] = before; });
  };

  const open = fold => {
    const within = tformerClosed.isFull(fold);
    tformerClosed.fill(fold);
    if (!within) undo.push(() => tformerClosed.putAway(fold));
    set(fold, "open", true);
  };

  const atTheEnd = (article, name, title, kind = "h2") => {
    const section = document.createElement("section");
    section.id = section.className = name;
    section.innerHTML = `<${kind}>${title}</${kind}>`;
    (article.querySelector(":scope > section") || article).append(section);
    undo.push(() => section.remove());
    return section;
  };

  // Of each question, by its number: the letter of the right answer and its reason.
  const listAnswers = article => {
    const questions = article.querySelectorAll(".question.asks");
    if (!questions.length) return;
    const list = document.createElement("ol");
    for (const question of questions) {
      const answers = [...question.querySelectorAll(".question-answers > li")];
      const right = answers.findIndex(answer => answer.classList.contains("right"));
      const item = document.createElement("li");
      const why = answers[right].querySelector("[class*='why-']");
      item.append(`${String.fromCharCode(65 + right)}. `, ...[...why.childNodes].map(node => node.cloneNode(true)));
      list.append(item);
    }
    atTheEnd(article, "print-answers", "Answers", "p").append(list); // no section of the book: no heading
  };

  const moveSolutions = article => {
    const solutions = article.querySelectorAll(".solution");
    if (!solutions.length) return;
    const section = atTheEnd(article, "print-solutions", "Solutions");
    for (const solution of solutions) {
      const place = document.createComment("solution");
      solution.replaceWith(place);
      section.append(solution);
      undo.push(() => place.replaceWith(solution));
    }
  };

  // How much smaller a thing must be to fit the column. The variable does nothing on the screen.
  const fit = article => {
    const style = article.getAttribute("style");
    article.style.cssText = `width: ${COLUMN}rem; min-width: 0; max-width: none; padding: 0`;
    const ratios = [];
    const measure = (box, thing) => ratios.push([thing, box.clientWidth / box.scrollWidth]);
    for (const math of article.querySelectorAll("mjx-container[display='true']")) measure(math, math);
    for (const box of article.querySelectorAll(".pst-scrollable-table-container, .tformer-scroll")) {
      for (const table of box.querySelectorAll("table")) measure(box, table);
    }
    const rem = parseFloat(getComputedStyle(document.documentElement).fontSize);
    for (const code of article.querySelectorAll("pre")) {
      const lines = code.textContent.trimEnd().split("\n");
      const longest = Math.max(...lines.map(line => line.length));
      const columns = Math.floor((code.clientWidth / rem - PADDING) / LETTER);
      if (longest > columns && columns > 0 && !code.closest(".tformer-prose")) ratios.push([code, Math.max(SMALLEST, columns / longest)]);
      const frame = code.closest(".cell_input, .output") || code.closest(".highlight") || code;
      if (lines.length <= WHOLE) frame.style.breakInside = "avoid";
    }
    if (style === null) article.removeAttribute("style");
    else article.setAttribute("style", style);
    for (const [thing, ratio] of ratios) {
      if (ratio > 0 && ratio < 1) thing.style.setProperty("--tformer-fit", (0.99 * ratio).toFixed(3));
    }
  };

  // The head of each page: the book, and the chapter as "2 Attention".
  const runningHeads = article => {
    const quoted = text => `"${text.replace(/["\\]/g, "\\$&").replace(/\s+/g, " ").trim()}"`;
    const heading = article.querySelector("h1")?.cloneNode(true);
    heading?.querySelectorAll(".headerlink").forEach(link => link.remove());
    const chapter = (heading?.textContent || "").trim().replace(/^(\d+\w?)\./, "$1");
    const book = document.querySelector("meta[property='og:site_name']")?.content || "";
    const font = "font: 9pt system-ui, sans-serif; color: #333;";
    const style = document.createElement("style");
    style.id = "print-heads"; // there while the page is ready for paper
    style.textContent = `@page {
      @top-left { content: ${quoted(book)}; ${font} }
      @top-right { content: ${quoted(chapter === book ? "" : chapter)}; ${font} }
    }`;
    document.head.append(style);
    undo.push(() => style.remove());
  };

  const prepare = () => {
    const article = document.querySelector("article.bd-article");
    if (undo.length || !article) return;
    set(document.documentElement.dataset, "theme", "light");
    for (let folds; (folds = article.querySelectorAll(FOLDS)).length;) folds.forEach(open); // and those within them
    for (const image of article.querySelectorAll("img[loading='lazy']")) image.loading = "eager";
    listAnswers(article);
    moveSolutions(article);
    fit(article);
    runningHeads(article);
  };

  const restore = () => {
    for (const step of undo.reverse()) step();
    undo = [];
  };

  window.addEventListener("beforeprint", prepare);
  window.addEventListener("afterprint", restore);
  window.matchMedia("print").addEventListener("change", event => (event.matches ? prepare() : restore()));
})();
