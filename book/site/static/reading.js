// What makes a page easy to read: contents that say where one is, previews.

// --- Where one is: the entry of the section in view is marked in the contents, and named in the bar. ---
(() => {
  // The theme marks by what comes into view, and sticks after a long jump: without this id it leaves it to us.
  const toc = document.getElementById("pst-page-toc-nav");
  if (toc) toc.id = "tformer-page-toc";
  const links = [...document.querySelectorAll("#tformer-page-toc a[href^='#']")];
  const sections = [...document.querySelectorAll(".bd-article section[id]")].filter((section) =>
    links.some((link) => link.hash === `#${section.id}`),
  );
  const bar = document.querySelector(".tformer-here");
  const title = document.querySelector(".bd-article h1")?.firstChild ? pageTitle() : "";
  if (bar) bar.textContent = title;
  if (!sections.length) return;

  function pageTitle() {
    const copy = document.querySelector(".bd-article h1").cloneNode(true);
    copy.querySelectorAll(".headerlink").forEach((link) => link.remove());
    return copy.textContent.trim();
  }

  let pinned = null; // the section that one has just jumped to, until one scrolls
  const mark = () => {
    const top = (section) => section.getBoundingClientRect().top;
    const begun = sections.filter((section) => top(section) < Math.max(120, innerHeight * 0.2));
    const section = pinned && top(pinned) > -5 && top(pinned) < innerHeight ? pinned : begun.at(-1);
    for (const link of links) {
      const target = section && document.getElementById(decodeURIComponent(link.hash.slice(1)));
      const open = Boolean(section && target === section);
      link.classList.toggle("active", open);
      if (open) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      if (open && bar) bar.textContent = link.textContent.trim();
    }
    if (bar && !section) bar.textContent = title;
    for (const entry of document.querySelectorAll("#tformer-page-toc .toc-entry"))
      entry.classList.toggle("active", Boolean(entry.querySelector("a.active")));
  };
  let waiting = false;
  const soon = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => {
      waiting = false;
      mark();
    });
  };
  const pin = () => {
    const target = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    pinned = sections.find((section) => section === target) || null;
    soon();
  };
  addEventListener("hashchange", pin);
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (!link) return;
    const list = link.closest("dialog"); // opened from the bar: it closes, gives its place back, and then one jumps
    if (list) {
      event.preventDefault();
      const jump = () => {
        location.hash = link.hash;
        document.getElementById(decodeURIComponent(link.hash.slice(1)))?.scrollIntoView();
        pin();
      };
      list.addEventListener("close", () => requestAnimationFrame(jump), { once: true });
      list.close();
    }
    setTimeout(pin);
  });
  for (const moved of ["wheel", "touchmove", "keydown"]) addEventListener(moved, (event) => {
    if (moved !== "keydown" || /^(Arrow|Page|Home|End| )/.test(event.key)) pinned = null;
  }, { passive: true });
  addEventListener("scroll", soon, { passive: true });
  addEventListener("resize", soon);
  new ResizeObserver(soon).observe(document.querySelector(".bd-article")); // formulas and folds move what follows
  pin();
})();

// --- What once stood on a chapter's page and stands on its laboratory's or its exercises' now. ---
(() => {
  const chapter = document.querySelector(".tformer-tabs a[aria-current='page']:first-child");
  const follow = () => {
    const hash = decodeURIComponent(location.hash.slice(1));
    const figure = new URLSearchParams(location.hash.slice(1)).get("try");
    if (!hash || tformerClosed.find("id", hash) || (figure && tformerClosed.find("data-try", figure))) return;
    window.tformerElsewhere = ({ anchors, figures }) => {
      const page = figure ? figures[figure] : anchors[hash];
      if (page) location.replace(new URL(`${page}.html${location.hash}`, location.href));
    };
    const script = document.createElement("script"); // not fetch, which file:// forbids
    script.src = new URL("elsewhere.js", location.href);
    document.head.append(script);
  };
  if (!chapter) return;
  addEventListener("hashchange", follow);
  follow();
})();

// --- Previews: what a link to a term, an equation, a figure or a work leads to, shown beside the link. ---
(() => {
  const KINDS = /^#(term-|equation-|cite-)|^#[\w-]*fig/;
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const pages = new Map(); // of each page: a promise of its previews
  const arrived = new Map();
  window.tformerPreviews = (url, found) => arrived.set(new URL(url, root).pathname, found);

  const load = (path) => {
    if (!pages.has(path)) {
      const name = path.slice(root.pathname.length).replace(/\.html$/, "").replaceAll("/", "-");
      pages.set(path, new Promise((resolve) => {
        const script = document.createElement("script"); // not fetch, which file:// forbids
        script.src = new URL(`_static/previews/${name}.js`, root).href;
        script.onload = () => resolve(arrived.get(path) || {});
        script.onerror = () => resolve({});
        document.head.append(script);
      }));
    }
    return pages.get(path);
  };

  const box = document.createElement("div");
  box.className = "tformer-preview";
  box.id = "tformer-preview";
  box.setAttribute("role", "tooltip");
  box.hidden = true;
  document.body.append(box);
  let shown = null, timer, touched = false;

  const hide = () => {
    clearTimeout(timer);
    shown?.removeAttribute("aria-describedby");
    shown = null;
    box.hidden = true;
  };
  const place = (link) => {
    const [first] = link.getClientRects();
    const width = box.offsetWidth, height = box.offsetHeight;
    const left = Math.max(8, Math.min(first.left, document.documentElement.clientWidth - width - 8));
    const below = first.bottom + 6, above = first.top - height - 6;
    box.style.left = `${left + scrollX}px`;
    box.style.top = `${(below + height < innerHeight || above < 0 ? below : above) + scrollY}px`;
  };
  const show = async (link) => {
    const url = new URL(link.href);
    const here = url.pathname === location.pathname && document.getElementById(decodeURIComponent(url.hash.slice(1)));
    if (here) { // what stands in view needs no second showing
      const seen = here.getBoundingClientRect();
      if (seen.top >= 0 && seen.bottom <= innerHeight) return;
    }
    const found = await load(url.pathname);
    const html = found[decodeURIComponent(url.hash.slice(1))];
    if (!html || shown !== link) return;
    box.innerHTML = html;
    for (const part of box.querySelectorAll("[id]")) part.removeAttribute("id");
    for (const part of box.querySelectorAll(".headerlink")) part.remove();
    for (const image of box.querySelectorAll("img[src]")) image.src = new URL(image.getAttribute("src"), url).href;
    for (const inner of box.querySelectorAll("a[href]")) inner.href = new URL(inner.getAttribute("href"), url).href;
    for (const inner of box.querySelectorAll("a")) inner.tabIndex = -1;
    box.hidden = false;
    place(link);
    link.setAttribute("aria-describedby", box.id);
    await window.MathJax?.typesetPromise?.([box]);
    if (shown === link) place(link);
  };
  const want = (link, delay) => {
    if (link === shown && !box.hidden) return clearTimeout(timer);
    hide();
    shown = link;
    timer = setTimeout(show, delay, link);
  };
  const leave = () => {
    clearTimeout(timer);
    timer = setTimeout(hide, 250); // time to move into the box
  };

  tformerClosed.each((root) => {
    for (const link of root.querySelectorAll(".bd-article a.internal[href*='#']:not(.headerlink)")) {
      if (!KINDS.test(link.hash)) continue;
      link.removeAttribute("title"); // the browser's own box would cover ours
      link.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && want(link, 200));
      link.addEventListener("pointerleave", leave);
      link.addEventListener("focus", () => link.matches(":focus-visible") && !touched && want(link, 100));
      link.addEventListener("blur", leave);
      link.addEventListener("click", hide);
    }
  });
  addEventListener("pointerdown", (event) => {
    touched = event.pointerType === "touch"; // a tap follows the link
    if (touched && !box.contains(event.target)) hide();
  });
  box.addEventListener("pointerenter", () => clearTimeout(timer));
  box.addEventListener("pointerleave", leave);
  addEventListener("keydown", (event) => event.key === "Escape" && hide());
})();

// --- A stroke asks the book. ---
document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.altKey || document.querySelector("dialog[open]")) return;
  if (event.target.closest?.("input, textarea, select, [contenteditable]")) return;
  event.preventDefault();
  document.querySelector(".tformer-ask")?.click();
});
