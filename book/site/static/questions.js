// Questions of a few seconds: an answer is a button. The one that is chosen shows its reason, and so does the right one.
(() => {
  for (const box of document.querySelectorAll(".question")) {
    const fold = box.querySelector("details");
    const told = document.createElement("p");
    told.className = "question-told";
    told.setAttribute("role", "status");
    const items = [...box.querySelectorAll(".question-answers > li")];
    items.forEach((item, n) => {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...[...item.children].flatMap((child) => [...child.childNodes]));
      const why = fold.querySelector(`.why-${n}`);
      why.firstElementChild.remove(); // the answer, which stands above it
      item.replaceChildren(button, why);
      button.addEventListener("click", () => {
        const right = item.classList.contains("right");
        item.classList.add("chosen");
        box.classList.add("answered");
        button.setAttribute("aria-pressed", "true");
        told.textContent = `${right ? "Right." : "Not this one."} ${why.textContent.trim()}`;
      });
    });
    fold.replaceWith(told);
    box.classList.add("asks");
  }
})();
