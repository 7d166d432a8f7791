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

  const parse = (text) => {
    const template = document.createElement("template");
    template.innerHTML = text;
    return template.content;
  };

  // The nodes of a text; folds among them that are closed hold their own, the innermost first.
  const read = (text) => {
    const content = parse(text);
    const folds = content.querySelectorAll("details:not([open], [data-try], [data-answers])");
    for (const fold of [...folds].reverse()) takeOut(fold);
    return content;
  };

  const fill = (fold) => {
    if (!held.has(fold)) return;
    const content = held.get(fold), nodes = typeof content === "string" ? read(content) : content;
    held.delete(fold);
    const old = known.has(nodes);
    fold.querySelector(":scope > .tformer-words")?.remove();
    fold.append(nodes);
    if (!old && fold.isConnected) for (const work of works) work(fold);
    soon(); // for the folds in it
  };

  const putAway = (fold) => {
    known.add(takeOut(fold));
    soon();
  };

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

  // --- The browser's own search. A phone's begins without a key, and so does a menu's: it finds the words of what is
  // closed, each block's as one text that is never laid out (`hidden="until-found"`), and asks for the block itself.
  const BLOCKS = "p, li, pre, tr, dt, dd, figcaption, caption, summary, h2, h3, h4";
  const blocks = (root) => [...root.querySelectorAll(BLOCKS)].filter((one) => !one.querySelector(BLOCKS));
  const words = (block) => { // nobody searches for what a formula says to a screen reader
    const copy = block.cloneNode(true);
    for (const formula of copy.querySelectorAll("mjx-container")) formula.replaceWith(" ");
    return copy.textContent;
  };
  const reveals = new WeakMap();
  const findable = (place, root, reveal) => {
    if (!("onbeforematch" in place)) return;
    const list = place.appendChild(document.createElement("div"));
    list.className = "tformer-words";
    reveals.set(list, reveal);
    for (const block of blocks(root)) {
      const line = list.appendChild(document.createElement("div"));
      line.setAttribute("hidden", "until-found");
      line.textContent = words(block);
    }
  };
  document.addEventListener("beforematch", ({ target }) => {
    const list = target.closest(".tformer-words");
    if (list) reveals.get(list)(target.textContent);
  });

  // In a fold that was found it leads to the block with these words, which may be in a fold within.
  const reveal = (fold, found) => {
    reach(fold);
    for (let inner; (inner = [...held.keys()].find((one) => fold.contains(one)));) fill(inner);
    const block = blocks(fold).find((one) => words(one) === found) ?? fold;
    for (let one = block; one; one = one.parentElement?.closest("details")) if (one.nodeName === "DETAILS") one.open = true;
    block.scrollIntoView({ block: "center" });
  };
  const idle = window.requestIdleCallback ?? setTimeout;
  let waits = false;
  const put = () => {
    const fold = [...held.keys()].find((one) => one.isConnected && !one.querySelector(":scope > .tformer-words"));
    waits = Boolean(fold) && "onbeforematch" in fold;
    if (!waits) return;
    const content = held.get(fold);
    findable(fold, typeof content === "string" ? parse(content) : content, (found) => reveal(fold, found));
    idle(put); // one at a time: nobody is to wait for it
  };
  const soon = () => {
    if (!waits) idle(put);
    waits = true;
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
  addEventListener("load", soon);

  // A search that begins with a key finds what is closed itself, with its formulas.
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

  const isFull = (fold) => !held.has(fold);

  return { each, fill, fillAll, find, findable, isFull, open, putAway };
})();
