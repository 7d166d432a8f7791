// A click on a figure, or its button, shows it as large as the window, with its caption and its files.
(() => {
  const enlarge = (figure, button) => {
    const dialog = document.createElement("dialog");
    dialog.className = "tformer-enlarged";
    dialog.setAttribute("aria-label", button.getAttribute("aria-label").replace("Enlarge ", ""));

    const close = document.createElement("button");
    close.type = "button";
    close.textContent = "\u00d7";
    close.setAttribute("aria-label", "Close");
    close.addEventListener("click", () => dialog.close());

    const picture = figure.querySelector(".tformer-figure").cloneNode(true);
    const image = picture.querySelector("img");
    const ratio = image.getAttribute("width") / image.getAttribute("height");
    picture.style.setProperty("--ratio", ratio);
    picture.classList.toggle("tformer-turns", ratio > 1.2); // where the window is upright and narrow

    const caption = document.createElement("p");
    for (const part of figure.querySelector("figcaption p, figcaption").childNodes) {
      caption.append(part.cloneNode(true));
    }
    for (const part of caption.querySelectorAll(".headerlink, .tformer-files button")) part.remove();
    for (const part of caption.querySelectorAll("[id]")) part.removeAttribute("id");

    dialog.append(close, picture, caption);
    dialog.addEventListener("click", (event) => event.target === dialog && dialog.close()); // beside it
    dialog.addEventListener("close", () => {
      dialog.remove();
      button.focus({ preventScroll: true });
    });
    document.body.append(dialog);
    dialog.showModal();
  };

  tformerClosed.each((root) => {
    for (const button of root.querySelectorAll(".tformer-files button")) {
      const figure = button.closest("figure");
      button.addEventListener("click", () => enlarge(figure, button));
      figure.querySelector(".tformer-figure").addEventListener("click", () => enlarge(figure, button));
    }
  });
})();

// The code that drew a figure and the numbers behind it open below its caption, by buttons there in place of lines.
(() => {
  const SHOWS = ".bd-article div.cell:has(> .cell_output > figure:first-child > figcaption)";
  let named = 0;
  const addButton = (cell, fold, words, says) => {
    const caption = cell.querySelector(":scope > .cell_output > figure > figcaption");
    fold.id ||= `tformer-code-${++named}`;
    let files = caption.querySelector(".tformer-files");
    if (!files) {
      files = document.createElement("span");
      files.className = "tformer-files";
      files.dataset.pagefindIgnore = "";
      (caption.querySelector(".caption-text") ?? caption.querySelector("p") ?? caption).append(" ", files);
    }
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = words;
    button.setAttribute("aria-label", says(caption.querySelector(".caption-number")?.textContent.trim() ?? "this figure"));
    button.setAttribute("aria-controls", fold.id);
    const tell = () => button.setAttribute("aria-expanded", fold.open);
    button.addEventListener("click", () => (fold.open = !fold.open));
    fold.addEventListener("toggle", tell);
    tell();
    files.append(button);
  };
  tformerClosed.each((root) => {
    for (const cell of root.querySelectorAll(SHOWS)) {
      const code = cell.querySelector(":scope > details.hide.above-input");
      if (code) {
        addButton(cell, code, "Code", (figure) => `Code of ${figure}`);
        cell.classList.add("tformer-code-below");
      }
      let fold = cell.nextElementSibling;
      if (fold?.matches("details[data-try]")) fold = fold.nextElementSibling;
      const numbers = fold?.matches("details.tformer-claims") ? Number(fold.dataset.numbers) : 0;
      if (!numbers) continue;
      const words = numbers === 1 ? "1 number" : `${numbers} numbers`;
      addButton(cell, fold, words, (figure) => `${words} behind ${figure}`);
      fold.classList.add("tformer-by-button");
    }
  });
})();
