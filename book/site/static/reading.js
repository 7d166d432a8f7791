// What makes a page easy to read: contents that say where one is, previews.

// --- Where one is: the entry of the section in view is marked in the contents, and named in the bar. ---
(() => {
  // The theme marks by what comes into view, and sticks after a long jump: without this id it leaves it to us.
  const toc = document.getElementById("pst-page-toc-nav");
  if (toc) toc.id = "tformer-page-toc";
  const links = [...document.querySelectorAll("#tformer-page-toc a[href^='#']")]; // and those of the bar's list
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

  // What an entry names; how hard an exercise is and how long it takes, which stands in <small>, is no name.
  const name = (link) =>
    [...link.childNodes].map((part) => (part.nodeName === "SMALL" ? "" : part.textContent)).join("").trim();

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
      if (open && bar) bar.textContent = name(link);
    }
    if (bar && !section) bar.textContent = title;
    for (const entry of document.querySelectorAll(".toc-entry"))
      entry.classList.toggle("active", Boolean(entry.querySelector("a.active")));
    beside();
  };

  // In the margin the contents stay in view. They give way to what reaches into the margin, a figure or a note or long
  // lines of code, while it passes; and where they are longer than the screen, the entry that is marked is seen.
  const margin = document.querySelector(".bd-sidebar-secondary .sidebar-secondary-items");
  const article = document.querySelector(".bd-article");
  let marked = null;
  const beside = () => {
    const box = margin?.getBoundingClientRect();
    if (!box?.width) return;
    const [left, end] = [box.left + 1, Math.min(box.bottom, innerHeight)];
    const reaches = (y) => {
      const one = document.elementsFromPoint(left, y).find((found) => found !== article && article.contains(found));
      const code = one?.closest("pre") ?? one?.querySelector("pre");
      if (!code) return Boolean(one);
      const lines = document.createRange(); // its frame is as wide as the page, its lines may be short
      lines.selectNodeContents(code);
      return lines.getBoundingClientRect().right > left;
    };
    let passes = false;
    for (let y = Math.max(box.top, 0); y < end && !passes; y += 16) passes = reaches(y);
    margin.classList.toggle("passed", passes);
    const active = margin.querySelector("a.active");
    if (active === marked) return;
    marked = active;
    if (!active || margin.scrollHeight <= margin.clientHeight) return;
    const place = active.getBoundingClientRect();
    if (place.top < box.top || place.bottom > box.bottom) margin.scrollTop += place.top - box.top - box.height / 2;
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
    link.closest("[popover]")?.hidePopover();
    setTimeout(pin);
  });
  for (const moved of ["wheel", "touchmove", "keydown"]) addEventListener(moved, (event) => {
    if (moved !== "keydown" || /^(Arrow|Page|Home|End| )/.test(event.key)) pinned = null;
  }, { passive: true });
  addEventListener("scroll", soon, { passive: true });
  addEventListener("resize", soon);
  new ResizeObserver(soon).observe(article); // formulas and folds move what follows
  pin();

  // The bar opens the same list: under its button, and on a phone from the bottom. Nothing of the page moves for it.
  const list = document.getElementById("tformer-sections");
  list?.addEventListener("beforetoggle", (event) => {
    if (event.newState !== "open") return;
    if (!list.firstChild) {
      list.append(...[...margin.firstElementChild.children].map((part) => part.cloneNode(true)));
      for (const one of list.querySelectorAll("[id]")) one.removeAttribute("id");
      for (const nav of list.querySelectorAll("nav.page-toc")) nav.setAttribute("aria-label", bar.title);
      links.push(...list.querySelectorAll("a[href^='#']"));
      mark();
    }
    list.style.setProperty("--left", `${bar.getBoundingClientRect().left}px`);
  });
  list?.addEventListener("toggle", () => list.querySelector("a.active")?.scrollIntoView({ block: "nearest" }));
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

  const made = (name, attributes) => {
    const element = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return document.body.appendChild(element);
  };
  const box = made("div", { class: "tformer-preview", id: "tformer-preview", role: "tooltip", hidden: "" });
  let shown = null, timer, touched = false;

  // What a link leads to, in `place`; nothing where it is in view, or where nothing is known.
  const write = async (link, place, wanted) => {
    const url = new URL(link.href);
    const here = url.pathname === location.pathname && document.getElementById(decodeURIComponent(url.hash.slice(1)));
    if (here) { // what stands in view needs no second showing
      const seen = here.getBoundingClientRect();
      if (seen.top >= 0 && seen.bottom <= innerHeight) return false;
    }
    const html = (await load(url.pathname))[decodeURIComponent(url.hash.slice(1))];
    if (!html || !wanted()) return false;
    place.innerHTML = html;
    for (const part of place.querySelectorAll("[id]")) part.removeAttribute("id");
    for (const part of place.querySelectorAll(".headerlink")) part.remove();
    for (const image of place.querySelectorAll("img[src]")) image.src = new URL(image.getAttribute("src"), url).href;
    for (const inner of place.querySelectorAll("a[href]")) inner.href = new URL(inner.getAttribute("href"), url).href;
    return true;
  };

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
    if (!await write(link, box, () => shown === link)) return;
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

  // A finger cannot point: its tap shows the same in a sheet from the bottom, with a link that goes there.
  const WORDS = [[/^#term-/, "Go to the glossary"], [/^#cite-/, "Go to the bibliography"], [/^#equation-/, "Go to the equation"], [/./, "Go to the figure"]];
  const sheet = made("div", { class: "tformer-sheet", popover: "", role: "dialog", "aria-label": "What the link leads to", tabindex: "-1", autofocus: "" });
  sheet.innerHTML = `<div class="tformer-preview__text"></div><p><a></a><button popovertarget="${sheet.id = "tformer-sheet"}" popovertargetaction="hide">Close</button></p>`;
  const [text, go] = [sheet.firstChild, sheet.querySelector("a")];
  const open = async (link) => {
    shown = link;
    if (!await write(link, text, () => shown === link)) {
      if (shown === link) location.assign(link.href);
      return;
    }
    if (link.hash.startsWith("#term-")) text.prepend(Object.assign(document.createElement("strong"), { textContent: link.textContent }));
    go.href = link.href;
    go.textContent = WORDS.find(([kind]) => kind.test(link.hash))[1];
    sheet.showPopover();
    sheet.scrollTop = 0;
    window.MathJax?.typesetPromise?.([text]);
  };
  document.addEventListener("click", (event) => {
    const link = event.target.closest?.(".bd-article a.internal[href*='#']:not(.headerlink), .tformer-preview__text a.internal[href*='#']");
    if (event.target.closest?.("a") === go) sheet.hidePopover(); // it may be on this page
    if (!link || !touched || !event.detail || !KINDS.test(link.hash) || !sheet.showPopover) return; // by keyboard it is followed
    event.preventDefault();
    open(link);
  });

  tformerClosed.each((root) => {
    for (const link of root.querySelectorAll(".bd-article a.internal[href*='#']:not(.headerlink)")) {
      if (!KINDS.test(link.hash)) continue;
      link.removeAttribute("title"); // the browser's own box would cover ours
      link.addEventListener("pointerenter", (event) => event.pointerType === "mouse" && want(link, 200));
      link.addEventListener("pointerleave", (event) => event.pointerType === "mouse" && leave());
      link.addEventListener("focus", () => link.matches(":focus-visible") && !touched && want(link, 100));
      link.addEventListener("blur", () => !touched && leave());
      link.addEventListener("click", hide);
    }
  });
  addEventListener("pointerdown", (event) => {
    touched = event.pointerType === "touch";
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
