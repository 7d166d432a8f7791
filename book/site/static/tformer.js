// A region that scrolls sideways must be reachable by keyboard, and one that does not must not be a tab stop.
(() => {
  const regions = [
    ["mjx-container[display='true']", "Equation"],
    ["div.math, div.math-wrapper, span.math", "Equation"],
    [".cell_output .output, .cell_output pre, div.highlight pre", "Code or its output"],
    [".pst-scrollable-table-container, .tformer-scroll", "Table"],
    [".sig", "Signature"],
  ];
  // A formula that is a little too long for its line is drawn smaller: not much smaller than the text.
  const SMALLEST = 0.87;
  const fit = () => {
    const formulas = [...document.querySelectorAll("mjx-container")];
    for (const formula of formulas) if (formula.style.getPropertyValue("--tf-fit")) formula.style.removeProperty("--tf-fit");
    const long = formulas.flatMap((formula) => {
      const box = formula.hasAttribute("display") ? formula : formula.parentElement;
      const [room, width] = [box, formula.firstElementChild].map((one) => one.getBoundingClientRect().width);
      const ratio = room / width; // NaN in a closed fold
      return ratio >= SMALLEST && ratio < 0.999 ? [[formula, ratio]] : [];
    });
    for (const [formula, ratio] of long) formula.style.setProperty("--tf-fit", (0.995 * ratio).toFixed(3));
  };
  const update = () => {
    fit();
    const changed = []; // all is measured before anything is changed: the page is laid out once
    for (const [selector, label] of regions) {
      for (const region of document.querySelectorAll(selector)) {
        const wide = region.scrollWidth > region.clientWidth;
        const scrolls = wide && /auto|scroll/.test(getComputedStyle(region).overflowX);
        if (scrolls !== region.hasAttribute("data-scrolls")) changed.push([region, label, scrolls]);
      }
    }
    for (const [region, label, scrolls] of changed) {
      if (scrolls) {
        region.dataset.scrolls = "";
        region.tabIndex = 0;
        region.setAttribute("role", "group");
        region.setAttribute("aria-label", `${label}, scrolls sideways`);
      } else {
        delete region.dataset.scrolls;
        for (const name of ["tabindex", "role", "aria-label"]) region.removeAttribute(name);
      }
    }
  };
  window.addEventListener("load", () => {
    update();
    document.fonts.ready.then(update);
  });
  let frame;
  window.addEventListener("resize", () => {
    cancelAnimationFrame(frame);
    frame = requestAnimationFrame(update);
  });
  document.addEventListener("toggle", update, true);
})();

// The page that is open is seen among the chapters.
window.addEventListener("load", () => {
  const chapters = document.querySelector(".bd-sidebar-primary");
  const here = chapters?.querySelector("li.current > a");
  if (!here?.checkVisibility()) return;
  const [box, place] = [chapters.getBoundingClientRect(), here.getBoundingClientRect()];
  if (place.top < box.top || place.bottom > box.bottom) chapters.scrollTop += place.top - box.top - box.height / 2;
});

// The chapters come as a dialogue on every screen. One theme would hide them on a wide one, where our style sheet has
// done so; a copy of the button knows nothing of that, and the other theme, whose script comes later, finds the copy.
(() => {
  const button = document.querySelector(".primary-toggle");
  button?.replaceWith(button.cloneNode(true));
})();
