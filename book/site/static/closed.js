// What is closed is not in the document. The build (tformer_closed.py) puts what a closed fold holds into a
// <noscript>: to a browser without scripts that is a part of the page like any other, and to one with scripts it is
// a single text, which is read when the fold is opened. Scripts that do something with a page's content do it by
// `tformerClosed.each`: with what is there now, and with what comes in later.
window.tformerClosed = (() => {
  const held = new Map(); // from a fold to what it holds: as text, or, within a fold that was opened, as nodes
  const known = new WeakSet(); // nodes that have been worked on: they were put away by `putAway`
  const works = [];

  for (const text of document.querySelectorAll("details > noscript.tformer-closed")) {
    held.set(text.parentElement, text.textContent);
    text.remove();
  }

  const takeOut = (fold) => {
    const nodes = document.createDocumentFragment();
    nodes.append(...[...fold.childNodes].filter((node) => node.nodeName !== "SUMMARY"));
    held.set(fold, nodes);
    return nodes;
  };

  // The nodes of a text; folds among them that are closed hold their own, the innermost first.
  const read = (text) => {
    const template = document.createElement("template");
    template.innerHTML = text;
    const folds = template.content.querySelectorAll("details:not([open], [data-try], [data-answers])");
    for (const fold of [...folds].reverse()) takeOut(fold);
    return template.content;
  };

  const fill = (fold) => {
    if (!held.has(fold)) return;
    const content = held.get(fold), nodes = typeof content === "string" ? read(content) : content;
    held.delete(fold);
    const old = known.has(nodes);
    fold.append(nodes);
    if (!old && fold.isConnected) for (const work of works) work(fold);
  };

  const putAway = (fold) => known.add(takeOut(fold));

  // A fold and those around it, from the outside in.
  const reach = (fold) => {
    const root = fold.getRootNode();
    const outer = root !== document && [...held.keys()].find((one) => held.get(one) === root);
    if (outer) reach(outer);
    fill(fold);
  };

  // The element with an attribute, wherever it is; the folds around it are filled, and stay closed.
  const find = (name, value) => {
    const written = ` ${name}="${value.replace(/&/g, "&amp;").replace(/"/g, "&quot;")}"`;
    const selector = `[${name}="${CSS.escape(value)}"]`;
    for (;;) {
      const found = document.querySelector(selector);
      const holds = (content) =>
        typeof content === "string" ? content.includes(written) : content.querySelector(selector);
      const fold = found ? null : [...held.keys()].find((one) => holds(held.get(one)));
      if (!fold) return found;
      reach(fold);
    }
  };

  // What an address leads to, with the folds around it open.
  const open = (hash) => {
    let name = hash.slice(1);
    try { name = decodeURIComponent(name); } catch { /* a lone % is a part of it */ }
    const target = name && find("id", name);
    for (let fold = target; fold; fold = fold.parentElement?.closest("details")) if (fold.nodeName === "DETAILS") fold.open = true;
    return target || null;
  };

  const fillAll = () => {
    while (held.size) for (const fold of [...held.keys()]) reach(fold);
  };

  const each = (work) => {
    works.push(work);
    work(document);
  };

  // However a fold is opened, what it holds is there before it is painted: a "toggle" would come later.
  new MutationObserver((changes) => {
    for (const { target } of changes) if (target.open) fill(target);
  }).observe(document.documentElement, { subtree: true, attributeFilter: ["open"] });

  // A link within the page: what it leads to is there when the browser goes to it.
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.("a[href*='#']");
    if (link?.hash && link.pathname === location.pathname && link.host === location.host) open(link.hash);
  }, true);
  // From another page, by hand, or by a script: the browser has looked for it in vain, and is sent once more.
  const arrive = (goes) => {
    const seen = document.querySelector(":target")?.getClientRects().length > 0;
    const target = location.hash.length > 1 && open(location.hash);
    if (!target || (seen && !goes)) return; // going back, the browser knows how far one had read
    if (!target.matches(":target")) location.replace(location.hash);
    target.scrollIntoView();
  };
  addEventListener("hashchange", () => arrive(false));
  if (location.hash.length > 1) {
    open(location.hash);
    const goes = performance.getEntriesByType("navigation")[0]?.type === "navigate";
    addEventListener("load", () => arrive(goes)); // what is above it has its size
  }

  // The browser's own search finds what is in the document, and opens the fold that it is in.
  addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    if (key === "f3" || ((event.ctrlKey || event.metaKey) && (key === "f" || key === "g"))) fillAll();
  });

  // Words that Sphinx marks on the page that its search leads to: it forgets them when it has marked them.
  let asked = new URLSearchParams(location.search).get("highlight") || "";
  try { asked = localStorage.getItem("sphinx_highlight_terms") || asked; } catch { /* forbidden: then nothing asks */ }
  asked = asked.toLowerCase().split(/\s+/).filter(Boolean);
  each((root) => {
    if (root === document || typeof _highlightText === "undefined") return;
    for (const word of asked) _highlightText(root, word, "highlighted");
  });

  // Buttons that copy code, as sphinx-copybutton made them for the code that was there; it hears their clicks.
  let copied = 0;
  each((root) => {
    if (root === document || typeof addCopyButtonToCodeCells === "undefined") return;
    for (const code of root.querySelectorAll("div.highlight pre:not([id])")) {
      code.id = `codecell-closed-${copied++}`;
      code.insertAdjacentHTML("afterend",
        `<button class="copybtn o-tooltip--left" data-tooltip="${messages[locale].copy}" data-clipboard-target="#${code.id}">${iconCopy}</button>`);
    }
  });

  return { each, fill, fillAll, find, open, putAway };
})();
