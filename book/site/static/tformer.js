// A region that scrolls sideways must be reachable by keyboard, and one that does not must not be a tab stop.
(() => {
  const regions = [
    ["mjx-container[display='true']", "Equation"],
    ["div.math, div.math-wrapper", "Equation"],
    [".cell_output .output, .cell_output pre, div.highlight pre", "Code or its output"],
    [".pst-scrollable-table-container, .tformer-scroll", "Table"],
    [".sig", "Signature"],
  ];
  const update = () => {
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
