// Finds the figures to touch on a page and loads what they need: when one is opened, or comes into view open.
(() => {
  const base = document.currentScript.src.replace(/load\.js.*$/, "");
  const MOVES = ["wheel", "touchstart", "pointerdown", "keydown"];
  const wanted = new Map(); // a script is loaded once; plain scripts, since modules do not load from file://
  const script = (file) => {
    if (!wanted.has(file)) {
      wanted.set(file, new Promise((done, failed) => {
        const tag = document.createElement("script");
        tag.src = base + file;
        tag.onload = done;
        tag.onerror = () => failed(new Error(`${file} did not load`));
        document.head.append(tag);
      }));
    }
    return wanted.get(file);
  };
  const start = async (details) => {
    if (details.dataset.started) return;
    details.dataset.started = "yes";
    const place = details.querySelector("tformer-live");
    try {
      await script("maths.js");
      await script("core.js");
      for (const file of place.dataset.scripts.split(" ")) await script(file);
      place.setAttribute("ready", "");
    } catch (error) {
      place.textContent = `This figure could not be loaded: ${error.message}.`;
    }
  };
  // A link such as #try=soft-dictionary&q=7 opens the figure in that state.
  const fromLink = () => {
    const name = new URLSearchParams(location.hash.slice(1)).get("try");
    const details = name && tformerClosed.find("data-try", name);
    if (!details) return;
    for (let fold = details; fold; fold = fold.parentElement.closest("details")) fold.open = true; // those around it too
    if (!details.dataset.started) start(details);
    else details.querySelector("tformer-live").make?.(); // the page is there already: in the state of the link
    details.querySelector("summary").focus({ preventScroll: true });
    // It stays in view while figures above it load and grow, until the reader moves.
    const watcher = new ResizeObserver(() => details.scrollIntoView({ block: "start" }));
    const stop = () => {
      watcher.disconnect();
      for (const kind of MOVES) removeEventListener(kind, stop);
    };
    for (const kind of MOVES) addEventListener(kind, stop, { passive: true });
    setTimeout(stop, 4000);
    details.scrollIntoView({ block: "start" });
    watcher.observe(document.body);
  };
  const watcher = new IntersectionObserver((seen) => {
    for (const { isIntersecting, target } of seen) if (isIntersecting && target.open) start(target);
  }, { rootMargin: "200px" });
  tformerClosed.each((root) => {
    for (const details of root.querySelectorAll("details[data-try]")) {
      details.hidden = false; // without scripts there is only the drawing
      details.addEventListener("toggle", () => details.open && start(details));
      watcher.observe(details);
    }
    // Exercises link to a figure's drawing; with scripts, to the figure in the state of the exercise.
    for (const link of root.querySelectorAll("a[data-opens]")) link.hash = link.dataset.opens;
  });
  window.addEventListener("hashchange", fromLink);
  window.addEventListener("click", (event) => { // pressed again, where the link is in the address bar already
    if (event.target.closest?.("a[data-opens]")?.href === location.href) fromLink();
  });
  fromLink();
})();
