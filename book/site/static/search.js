// Search as one types, by pagefind: its data are loaded when a search begins. It asks by `fetch`, which
// browsers forbid for file://; there, and where pagefind does not load, search.html searches by Sphinx.
(() => {
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const GROUPS = { term: 3, section: 8, aside: 2, work: 2, reference: 4 }; // how many of each are shown
  const RANKING = { metaWeights: { title: 5, names: 5, spellings: 0.5, page: 0, number: 0, url: 0 } };
  const PAGES = { section: true, aside: true }; // shown by the page that they are on
  const SOURCES = { term: "Glossary", work: "Bibliography", reference: "Reference" };
  const british = (text) => text.toLowerCase().replace(/iz(?=e|i|a)/g, "is").replace(/[^\p{L}\p{N}[\]]+/gu, " ").trim();

  // Words of a question that are not what it asks about; left out where with them nothing is found.
  const FILLING = /\b(how|why|what|when|where|which|who|is|are|do|does|did|the|an?|of|in|on|to|for|and|work|works|we|i)\b/gi;
  // Pagefind shortens a word that it does not know until it knows it: some word must really be there.
  const holds = (query) => (data) => {
    const text = `${data.meta.title} ${data.meta.names || ""} ${data.meta.spellings || ""} ${data.content}`.toLowerCase();
    return query.toLowerCase().split(/[^\p{L}\p{N}]+/u).some((word) => word && text.includes(word.slice(0, 4)));
  };

  let engine; // a promise of pagefind, or of null
  const load = () => {
    if (location.protocol === "file:") return Promise.resolve(null);
    engine ??= import(new URL("pagefind/pagefind.js", root).href)
      .then(async (pagefind) => {
        await pagefind.options({ ranking: RANKING, excerptLength: 24 });
        await pagefind.init();
        return pagefind;
      })
      .catch(() => null);
    return engine;
  };

  // The results of one query, best first: a term that is the query, sections (one that explains it first), other
  // terms, works, code.
  const ask = async (pagefind, query) => {
    const kinds = Object.keys(GROUPS);
    const answers = await Promise.all(kinds.map((kind) => pagefind.search(query, { filters: { kind } })));
    const found = {};
    await Promise.all(
      kinds.map(async (kind, i) => {
        const best = answers[i].results.slice(0, GROUPS[kind]);
        const data = (await Promise.all(best.map((result) => result.data()))).filter(holds(query));
        found[kind] = data.map((one) => ({ ...one, kind }));
      }),
    );
    const wanted = british(query);
    const named = (one) =>
      [one.meta.title, ...(one.meta.names || "").split("|")].some((name) => british(name) === wanted);
    const exact = found.term.filter(named);
    const others = found.term.filter((term) => !exact.includes(term));
    // The section that explains a term bears its names, and stands before those that only say them.
    found.section.sort((a, b) => named(b) - named(a));
    const results = [...exact.slice(0, 1), ...found.section, ...exact.slice(1), ...others, ...found.aside, ...found.work, ...found.reference];
    const total = results.length && answers.reduce((sum, answer) => sum + answer.results.length, 0);
    const shorter = query.replace(FILLING, " ").trim();
    return total || !shorter || shorter === query.trim() ? { total, results } : ask(pagefind, shorter);
  };

  // Sections of one page stand together, in the order of the best of each page.
  const grouped = (results) => {
    const groups = new Map();
    results.forEach((result, i) => {
      const chapter = result.kind in PAGES;
      const source = chapter ? result.meta.page : SOURCES[result.kind];
      const key = chapter ? source : `${source} ${i === 0}`;
      if (!groups.has(key)) groups.set(key, { source, chapter, results: [] });
      groups.get(key).results.push(result);
    });
    return [...groups.values()];
  };

  const element = (name, attributes = {}, ...children) => {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  };

  let fields = 0;
  // Makes of a form with a field of text one that shows results below it.
  const attach = (form) => {
    const input = form.querySelector("input[name=q]");
    const id = `tformer-search-${fields++}`;
    const status = element("p", { class: "tformer-search__status", role: "status" });
    const list = element("div", { class: "tformer-search__results", id, role: "listbox", "aria-label": "Results" });
    list.hidden = true;
    form.after(element("div", { class: "tformer-search" }, status, list));
    for (const [key, value] of Object.entries({
      role: "combobox", "aria-controls": id, "aria-expanded": "false", "aria-autocomplete": "list",
    })) input.setAttribute(key, value);
    let shown = [], active = -1, turn = 0, timer;

    const mark = (index) => {
      shown[active]?.setAttribute("aria-selected", "false");
      active = index;
      const option = shown[active];
      option?.setAttribute("aria-selected", "true");
      option?.scrollIntoView({ block: "nearest" });
      if (option) input.setAttribute("aria-activedescendant", option.id);
      else input.removeAttribute("aria-activedescendant");
    };

    const clear = (words = "") => {
      turn++;
      shown = [];
      mark(-1);
      list.replaceChildren();
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      status.textContent = words;
      delete list.dataset.query;
    };

    const option = (result) => {
      const { meta, kind } = result;
      const title = element("span", { class: "tformer-search__title" });
      if (meta.number && meta.number.includes(".")) title.append(element("span", { class: "tformer-search__number" }, meta.number), " ");
      title.append(kind in PAGES && meta.number && !meta.number.includes(".") ? "The chapter" : meta.title);
      if (kind === "reference" && meta.page) title.append(" ", element("small", {}, meta.page));
      const excerpt = element("span", { class: "tformer-search__excerpt" });
      excerpt.innerHTML = result.excerpt; // pagefind's own: escaped words and <mark>
      return element("a", {
        role: "option", id: `${id}-${shown.length}`, href: new URL(meta.url, root).href, tabindex: "-1", "aria-selected": "false",
      }, title, excerpt);
    };

    const show = (query, { total, results }) => {
      clear(total ? `${total} result${total === 1 ? "" : "s"}` : `Nothing found for “${query}”.`);
      for (const [i, group] of grouped(results).entries()) {
        const name = element("div", { class: "tformer-search__page", id: `${id}-page-${i}` }, group.source);
        const box = element("div", { role: "group", "aria-labelledby": name.id }, name);
        for (const result of group.results) {
          const made = option(result);
          shown.push(made);
          box.append(made);
        }
        list.append(box);
      }
      list.hidden = !results.length;
      list.dataset.query = query;
      list.scrollTop = 0;
      input.setAttribute("aria-expanded", String(results.length > 0));
    };

    const search = async () => {
      const query = input.value.trim();
      if (!query) return clear();
      const mine = ++turn;
      const pagefind = await load();
      if (mine !== turn) return;
      if (!pagefind) return clear("Press Enter to search.");
      const answer = await ask(pagefind, query);
      if (mine === turn) show(query, answer);
    };

    input.addEventListener("focus", load, { once: true });
    input.addEventListener("input", () => {
      clearTimeout(timer);
      timer = setTimeout(search, 120);
    });
    input.addEventListener("keydown", (event) => {
      const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (step && shown.length) {
        event.preventDefault();
        mark(active < 0 && step < 0 ? shown.length - 1 : (active + step + shown.length) % shown.length);
      } else if (event.key === "Enter" && list.dataset.query === input.value.trim() && shown.length) {
        event.preventDefault();
        shown[Math.max(active, 0)].click();
      }
    });
    list.addEventListener("click", (event) => {
      if (event.target.closest("a")) form.closest("dialog")?.close(); // the result may be on this page
    });
    return { input, search };
  };

  // On search.html: what ?q= asks for, by pagefind or else by Sphinx.
  const searchPage = async (field) => {
    const query = new URLSearchParams(location.search).get("q") || "";
    field.input.value = query;
    if (await load()) return field.search();
    for (const name of ["_static/searchtools.js", "_static/language_data.js", "searchindex.js"]) {
      await new Promise((resolve) => {
        const script = element("script", { src: new URL(name, root).href });
        script.onload = script.onerror = resolve;
        document.head.append(script);
      });
    }
  };

  const forms = [...document.querySelectorAll("form.bd-search")];
  const onPage = forms.find((form) => !form.closest("dialog"));
  for (const form of forms) {
    const field = attach(form);
    if (form === onPage && document.querySelector("#search-results")) searchPage(field);
  }
})();
