// Questions of a few seconds: an answer is a button, and any of them opens the reasons.
(() => {
  for (const box of document.querySelectorAll(".question")) {
    const fold = box.querySelector("details");
    const told = document.createElement("p");
    told.className = "question-told";
    told.setAttribute("role", "status");
    for (const item of box.querySelectorAll(".question-answers > li")) {
      const button = document.createElement("button");
      button.type = "button";
      button.append(...[...item.children].flatMap((child) => [...child.childNodes]));
      item.replaceChildren(button);
      button.addEventListener("click", () => {
        const right = item.classList.contains("right");
        item.classList.add("chosen");
        button.setAttribute("aria-pressed", "true");
        told.textContent = right ? "Right." : "Not this one.";
        box.classList.add("answered");
        fold.open = true;
      });
    }
    box.classList.add("asks");
    fold.before(told);
  }
})();
