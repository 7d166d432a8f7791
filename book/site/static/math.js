// The glyphs of a formula are drawn by the style sheet, so nothing would be copied: its TeX is.
document.addEventListener("copy", (event) => {
  const selection = getSelection();
  if (!selection.rangeCount || selection.isCollapsed) return;
  const copied = selection.getRangeAt(0).cloneContents();
  const formulas = copied.querySelectorAll("mjx-container");
  if (!formulas.length) return;
  for (const formula of formulas) {
    const mark = formula.getAttribute("display") ? "$$" : "$";
    formula.replaceWith(mark + formula.dataset.tex + mark);
  }
  // Only what is laid out has line breaks between its blocks.
  const box = document.body.appendChild(document.createElement("div"));
  box.style.cssText = "position: fixed; inset-inline-start: -200vw; white-space: normal";
  box.append(copied);
  event.clipboardData.setData("text/plain", box.innerText);
  event.clipboardData.setData("text/html", box.innerHTML);
  box.remove();
  event.preventDefault();
});
