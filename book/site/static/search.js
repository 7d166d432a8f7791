// Search as one types, by pagefind: its data are loaded when a search begins. It asks by `fetch`, which
// browsers forbid for file://; there, and where pagefind does not load, search.html searches by Sphinx.
//
// Pagefind wants every word of a query on one page, and shortens a word that it does not know until it knows it.
// Readers ask questions. So it is asked for one word at a time, whole words apart from their beginnings; what it
// says is added up, rarer words counting more, and titles and other names, of which there is a list, are compared.
(() => {
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  // Which kinds of records stand together, in what order, and how many of each; and how much what is found in one counts.
  const SHOWN = [[["section", "opening", "laboratory", "page"], 8], [["term"], 3], [["aside"], 2], [["work"], 2]];
  const BEST = 10; // so many are shown, and the others when they are asked for
  const CODE = /[_(]|\p{L}\.\p{L}|\p{Ll}\p{Lu}/u; // a query with it asks for a name of code, perhaps
  const CANDIDATES = 24; // whose texts are looked at
  const WORTH = { section: 1, opening: 0.9, term: 0.9, laboratory: 0.85, aside: 0.6, page: 0.6, work: 0.6, reference: 0.5 };
  const MAIN = { section: true, opening: true, laboratory: true, term: true };
  const OTHER = { kind: "reference", heading: new Set(), names: [] };
  const RANKING = { metaWeights: { title: 5, names: 5, spellings: 0.5, page: 0, number: 0, url: 0, within: 0 } };
  const PAGES = { section: true, opening: true, laboratory: true, page: true, aside: true }; // shown by the page that they are on
  const EDGES = /^[^\p{L}\p{N}[]+|[^\p{L}\p{N}\]+]+$/gu; // what is not a word at its ends
  const SOURCES = { term: "Glossary", work: "Bibliography", reference: "Reference" };

  // Words of a question that are not what it asks about. They are searched for where there are no others.
  const FILLING = new Set(
    ("a about all an and any are as at be between by can compare compared comparison could did difference differences do does explain " +
      "explained for from get has have how i if in into is it its many me much my of on or our should so than that " +
      "the their them there these they this to use used using versus vs was we were what when where which while who why will with work works " +
      "would you your").split(" "),
  );

  // Stems, so that "normalizing" is "normalisation" and "layer norms" are a "layer norm"; only compared with each other.
  const ENDINGS = /^(.{3,}?)(?:is(?:e[drs]?|ers|ing|ations?)|ations?|ions?|ings?|al|ly|ed|ers?|es|e|s)$/;
  const SAME = new Map([["sqrt", "root"]]); // as it is typed, and as it is written
  const written = (word) => word.replace(/^(\p{L}{4,})iz(?=(?:e[drs]?|ers|ing|ations?)$)/iu, "$1is"); // as this book spells it
  const british = (word) => word.toLowerCase().replace(/iz(?=e|i|a)/g, "is").replace(/our/g, "or");
  const known = new Map(); // stems of words, since whole texts are compared
  const stem = (word) => {
    if (!known.has(word)) {
      let short = british(SAME.get(word) ?? word).replace(/ies$/, "y");
      for (let last; last !== short; ) [last, short] = [short, short.replace(ENDINGS, "$1")];
      known.set(word, short.replace(/([^aeiou])\1$/, "$1"));
    }
    return known.get(word);
  };
  const parts = (text) => text.toLowerCase().match(/[\p{L}\p{N}]+/gu) || [];
  const content = (words) => {
    const left = words.filter((word) => !FILLING.has(word.toLowerCase()));
    return left.length ? left : words;
  };
  const stems = (text) => content(parts(text)).map(stem);
  const add = (numbers) => numbers.reduce((sum, one) => sum + one, 0);

  let engine; // a promise of pagefind and of the records' titles, or of null
  const load = () => {
    if (location.protocol === "file:") return Promise.resolve(null);
    engine ??= Promise.all([import(new URL("pagefind/pagefind.js", root).href), fetch(new URL("pagefind/titles.json", root))])
      .then(async ([pagefind, titles]) => {
        await pagefind.options({ ranking: RANKING });
        await pagefind.init();
        const records = new Map();
        for (const [id, kind, title, names] of await titles.json())
          records.set(id, { kind, heading: new Set(stems(title)), names: [title, ...names].map((name) => stems(name).join("")) });
        const main = [...records.values()].filter(({ kind }) => kind in MAIN).length;
        return { pagefind, records, main, words: new Map() };
      })
      .catch(() => null);
    return engine;
  };

  // What one word finds: by record how well (0 to 1), whole or as the beginning of a word; and how much it counts: more,
  // the fewer chapters and terms have it. Pagefind gives `begun` also for what begins otherwise, so one text is looked at.
  const lookUp = async ({ pagefind, records, main }, word) => {
    const [exact, loose] = await Promise.all([pagefind.search(`"${word}"`), pagefind.search(word)]);
    const ids = new Set(exact.results.map(({ id }) => id));
    const most = Math.log1p(loose.results[0]?.score || 1);
    const whole = new Map(), begun = new Map();
    for (const result of loose.results)
      (ids.has(result.id) ? whole : begun).set(result.id, { result, score: Math.log1p(result.score) / most });
    if (!whole.size && begun.size) {
      const { meta, content } = await loose.results[0].data();
      const said = parts(Object.values(meta).concat(content).join(" ")).map(british);
      if (!parts(word).every((part) => said.some((one) => one.startsWith(british(part))))) begun.clear();
    }
    if (word.length < 3) begun.clear(); // "d" does not ask for "do"
    const having = [...(whole.size ? whole : begun).keys()].filter((id) => records.get(id)?.kind in MAIN).length;
    const weight = (having ? Math.log(1 + main / having) : 1) * (word.length > 1 ? 1 : 0.3);
    return { word, whole, begun, weight };
  };
  const lookedUp = (engine, word) => {
    if (!engine.words.has(word)) engine.words.set(word, lookUp(engine, word));
    return engine.words.get(word);
  };

  // Of a text the sentence with the most different words of what is asked, of such the one with the rarer: its words,
  // each with whether it is one of them. And how much of the query a sentence has at most, the rarer words counting
  // more (0 to 1). What is left of a long formula is no word, and the "kv" of H_kv is not asked for by "KV cache".
  const FORMULA = /^(?!["“(]*[a-z]{2})(?=.*[_^])(?=.*[\p{Lu}=+(])\S{5,}$|[√Σ∏]/u;
  const OPERATOR = /^[-=+·×/≈≤≥]$/u;
  const LONGEST = 32; // in words
  const bestSentence = (content, asked, typed, tokens) => {
    const long = asked.filter(({ stem }) => stem.length > 1); // a letter is in many formulas
    const weights = new Map((long.length ? long : asked).map(({ stem, weight }) => [stem, weight]));
    const isPart = (word) => /[_^]/.test(word) && !tokens.has(word.replace(EDGES, "").toLowerCase());
    const isAsked = (word) => !isPart(word) && parts(word).some((one) => weights.has(stem(one)) || (typed && one.startsWith(typed)));
    const total = add([...weights.values()]) || 1;
    const sentences = content.split(/(?<=[.!?:…]) +(?=[\p{Lu}“(])/u).map((sentence) => sentence.split(/\s+/).filter(Boolean));
    let best = 0, highest = -1, most = 0;
    sentences.forEach((words, i) => {
      const there = new Set(words.filter((word) => !isPart(word)).flatMap(parts).map(stem));
      const said = [...weights].filter(([one]) => there.has(one));
      const sum = add(said.map(([, weight]) => weight));
      const rank = said.length + sum / (2 * total) + (words.some(isAsked) ? 1e-6 : 0);
      most = Math.max(most, sum);
      if (rank > highest) [best, highest] = [i, rank];
    });
    let words = sentences[best] ?? [];
    if (words.length < LONGEST / 2) words = words.concat(sentences[best + 1] ?? []);
    const first = Math.max(0, words.findIndex(isAsked));
    const from = words.length > LONGEST && first > LONGEST / 2 ? first - LONGEST / 4 : 0;
    const said = from ? [["…", false]] : [];
    for (const word of words.slice(from, from + LONGEST)) {
      const left = said.at(-1)?.[0] === "…";
      if (word !== "…" && !FORMULA.test(word) && !(left && OPERATOR.test(word))) said.push([word, isAsked(word)]);
      else if (!left) said.push(["…", false]);
    }
    if (words.length > from + LONGEST) said.push(["…", false]);
    return { share: most / total, said };
  };

  // How a record's names match the query: the share of the query that is names of the record in full, whether one
  // name is all of it, and how much of its title is in the query and the other way round.
  const compare = (asked, total, { heading, names }) => {
    const covered = new Set();
    let exact = false;
    for (const name of names) {
      for (let i = 0; i < asked.length; i++) {
        for (let j = i, run = ""; j < asked.length && run.length < name.length; ) {
          run += asked[j++].stem;
          if (run !== name) continue;
          for (let k = i; k < j; k++) covered.add(k);
          exact ||= j - i === asked.length;
        }
      }
    }
    const share = (ones) => add(ones.map(({ weight }) => weight)) / total;
    const inTitle = asked.filter((one) => heading.has(one.stem));
    const ofTitle = new Set(inTitle.map((one) => one.stem)).size / (heading.size || 1);
    return { exact, name: share([...covered].map((i) => asked[i])), title: share(inTitle) * (0.5 + 0.5 * ofTitle) };
  };

  // For a word that the book does not have, the commonest of those that differ least: by two letters that are wrong,
  // missing, too many or swapped, in short words by one.
  let vocabulary; // a promise of the words
  const apart = (a, b) => { // in how many letters two words differ
    let [older, old] = [[], [...Array(b.length + 1).keys()]];
    for (let i = 1; i <= a.length; i++) {
      const row = [i];
      for (let j = 1; j <= b.length; j++) {
        row[j] = Math.min(old[j] + 1, row[j - 1] + 1, old[j - 1] + (a[i - 1] !== b[j - 1]));
        if (i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1]) row[j] = Math.min(row[j], older[j - 2] + 1);
      }
      [older, old] = [old, row];
    }
    return old[b.length];
  };
  const meant = async (word) => {
    const most = word.length < 5 ? 0 : word.length < 7 ? 1 : 2;
    if (!most) return null;
    vocabulary ??= fetch(new URL("pagefind/words.json", root)).then((found) => found.json()).catch(() => []);
    let best = null, least = most + 1;
    for (const one of await vocabulary) {
      if (Math.abs(one.length - word.length) >= least) continue;
      const distance = apart(word.toLowerCase(), one);
      if (distance < least) [best, least] = [one, distance];
    }
    return best;
  };

  // The results of a query, best first, and the words of it that the book does not have.
  const ask = async (engine, query) => {
    const code = CODE.test(query);
    const typedWords = content(query.split(/\s+/).map((word) => word.replace(EDGES, "")).filter(Boolean));
    const words = typedWords.map((word) => (code ? word : SAME.get(word.toLowerCase()) ?? written(word)));
    const quoted = query.replaceAll('"', " ");
    const phrases = new Set(parts(query).length > 2 ? [quoted, quoted.replace(/[\p{L}]+/gu, written)] : []);
    const [same, ...looked] = await Promise.all([
      Promise.all([...phrases].map((phrase) => engine.pagefind.search(`"${phrase}"`))),
      ...words.map((word) => lookedUp(engine, word)),
    ]);
    const typing = /[\p{L}\p{N}]$/u.test(query) ? looked.at(-1) : null;
    const there = looked.filter(({ whole, begun }) => whole.size || begun.size);
    const weights = add(there.map(({ weight }) => weight));

    const sums = new Map();
    for (const one of there) {
      const { whole, begun, weight } = one;
      const partly = whole.size ? (one === typing ? 0.3 : 0) : 0.8; // what the beginning of another word is worth
      for (const [found, worth] of [[whole, 1], [begun, partly]]) {
        for (const [id, { result, score }] of worth ? found : []) {
          const sum = sums.get(id) || { id, covered: 0, text: 0, rarest: 0 };
          sum.covered += (worth * weight) / weights;
          sum.text += (worth * weight * score) / weights;
          if (worth * weight > sum.rarest) Object.assign(sum, { rarest: worth * weight, result });
          sums.set(id, sum);
        }
      }
    }

    const asked = looked.flatMap(({ word, weight }) => {
      const those = stems(word);
      return those.map((one) => ({ stem: one, weight: weight / those.length }));
    });
    const total = add(asked.map(({ weight }) => weight));
    const literal = new Set(same.flatMap(({ results }) => results.map(({ id }) => id))); // have the query as it stands: the longer, the less by chance
    const ofLiteral = Math.min(2, 0.5 * (parts(query).length - 1));
    const scored = [...sums.values()]
      .filter(({ covered }) => covered > 0.4)
      .map((sum) => {
        const record = engine.records.get(sum.id) || OTHER;
        const like = compare(asked, total, record);
        const said = literal.has(sum.id) ? ofLiteral : 0;
        const score = WORTH[record.kind] * (sum.text * sum.covered + 1.2 * like.name + 0.8 * like.title + said);
        const exact = like.exact && record.kind === "term";
        return { ...sum, kind: record.kind, exact, score: score + (exact ? 1 : 0) };
      })
      .sort((a, b) => b.score - a.score);
    // Words that one sentence says together answer better than words of one section. Only the best are read for that.
    const typed = typing && words.at(-1).length > 2 ? words.at(-1).toLowerCase() : "";
    const tokens = new Set(words.map((word) => word.toLowerCase()));
    const read = async (one) => {
      const data = await one.result.data();
      return Object.assign(one, { data, best: bestSentence(data.content, asked, typed, tokens) });
    };
    const main = scored.filter(({ kind }) => kind !== "reference");
    const near = await Promise.all(main.slice(0, CANDIDATES).map(read));
    if (words.length > 1) for (const one of near) one.score += WORTH[one.kind] * one.best.share;
    near.sort((a, b) => b.score - a.score);
    const first = near.filter((one, i) => !i || one.exact); // and the term of that name
    const sorted = [...near, ...main.slice(CANDIDATES)];
    const shown = SHOWN.flatMap(([kinds, most]) =>
      sorted.filter((one) => !first.includes(one) && kinds.includes(one.kind)).slice(0, most),
    );
    const names = scored.filter(({ kind }) => kind === "reference").slice(0, code ? 4 : 2); // of code: last, however well they match
    const others = [...first, ...shown];
    const better = new Set(first.concat([...shown].sort((a, b) => b.score - a.score)).slice(0, BEST - names.length));
    const chosen = await Promise.all([...others, ...names].map((one) => (one.data ? one : read(one))));
    const results = chosen.map((one) => ({
      meta: one.data.meta, kind: one.kind, said: one.best.said, later: others.includes(one) && !better.has(one),
    }));
    const unknown = looked.filter((one) => !there.includes(one)).map(({ word }) => word);
    const partly = !scored.some(({ covered }) => covered > 0.99);
    return { unknown, partly, results };
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
    const offer = element("p", { class: "tformer-search__meant" }); // the query, as it may have been meant
    const more = element("button", { type: "button", class: "tformer-search__more", hidden: "" });
    form.after(element("div", { class: "tformer-search" }, status, offer, list, more));
    for (const [key, value] of Object.entries({
      role: "combobox", "aria-controls": id, "aria-expanded": "false", "aria-autocomplete": "list",
    })) input.setAttribute(key, value);
    let shown = [], active = -1, turn = 0, timer; // the results that are seen; the rows of all are numbered

    const empty = element("button", { type: "button", class: "tformer-search__empty", "aria-label": "Clear" }, "×");
    input.after(empty);
    empty.addEventListener("click", () => {
      input.value = "";
      clear();
      input.focus();
    });
    const dialog = form.closest("dialog");
    if (dialog) {
      const close = element("button", { type: "button", class: "tformer-search__close" }, "Close");
      form.append(close);
      close.addEventListener("click", () => dialog.close());
    }

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
      mark(-1);
      shown = [];
      list.replaceChildren();
      more.hidden = true;
      list.hidden = true;
      input.setAttribute("aria-expanded", "false");
      status.textContent = words;
      offer.replaceChildren();
      delete offer.dataset.query;
      delete list.dataset.query;
    };

    const option = (result, place) => {
      const { meta, kind } = result;
      const title = element("span", { class: "tformer-search__title" });
      if (meta.number) title.append(element("span", { class: "tformer-search__number" }, meta.number), " ");
      title.append(meta.title);
      const around = kind === "reference" ? meta.page : meta.within && `in “${meta.within}”`;
      if (around) title.append(" ", element("small", {}, around));
      const excerpt = element("span", { class: "tformer-search__excerpt" });
      for (const [word, asked] of result.said) excerpt.append(asked ? element("mark", {}, word) : word, " ");
      return element("a", {
        role: "option", id: `${id}-${place}`, href: new URL(meta.url, root).href, tabindex: "-1", "aria-selected": "false",
      }, title, excerpt);
    };

    const count = (query, { results, unknown, partly }) => {
      const found = results.filter(({ later }) => !later).length;
      if (!found) return `Nothing found for “${query}”.`;
      const without = unknown.length ? ` without ${unknown.map((word) => `“${word}”`).join(", ")}, which the book does not have` : "";
      const best = found < results.length ? "Best " : "";
      return `${best}${found} result${found === 1 ? "" : "s"}${partly ? " with some of these words" : ""}${without}`;
    };

    const show = (query, answer) => {
      const { results } = answer;
      clear(count(query, answer));
      let place = 0;
      for (const [i, group] of grouped(results).entries()) {
        const name = element("div", { class: "tformer-search__page", id: `${id}-page-${i}` }, group.source);
        const box = element("div", { role: "group", "aria-labelledby": name.id }, name);
        for (const result of group.results) {
          const made = option(result, place++);
          made.hidden = result.later;
          box.append(made);
        }
        box.hidden = group.results.every(({ later }) => later);
        list.append(box);
      }
      shown = [...list.querySelectorAll("a:not([hidden])")];
      const later = place - shown.length;
      more.hidden = !later;
      more.textContent = `Show ${later} more`;
      if (shown.length) mark(0); // what Enter opens
      list.hidden = !results.length;
      list.dataset.query = query;
      list.scrollTop = 0;
      input.setAttribute("aria-expanded", String(results.length > 0));
    };

    more.addEventListener("click", () => {
      for (const one of list.querySelectorAll("[hidden]")) one.hidden = false;
      shown = [...list.querySelectorAll("a")];
      mark(0); // rows have come before others: one begins anew
      more.hidden = true;
      status.textContent = status.textContent.replace(/^Best \d+/, shown.length);
      input.focus();
    });

    const propose = async (query, unknown, mine) => {
      const better = await Promise.all(unknown.map(meant));
      if (mine !== turn) return;
      offer.dataset.query = query; // for whoever waits for it: looked up, whether something was found or not
      if (!better.some(Boolean)) return;
      const said = unknown.reduce((text, word, i) => text.replace(word, better[i] ?? word), query);
      const link = element("a", { href: `${new URL("search.html", root).href}?q=${encodeURIComponent(said)}` }, said);
      link.addEventListener("click", (event) => {
        event.preventDefault();
        event.stopPropagation();
        input.value = said;
        input.focus();
        search();
      });
      offer.append("Did you mean ", link, "?");
    };

    const search = async () => {
      const query = input.value.trim();
      if (!query) return clear();
      const mine = ++turn;
      const engine = await load();
      if (mine !== turn) return;
      if (!engine) return clear("Press Enter to search.");
      const answer = await ask(engine, query);
      if (mine !== turn) return;
      show(query, answer);
      propose(query, answer.unknown, turn);
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
        mark((active + step + shown.length) % shown.length);
      } else if (event.key === "Enter" && list.dataset.query === input.value.trim() && shown.length) {
        event.preventDefault();
        shown[active].click();
      }
    });
    // Who goes back from a result finds the search as it was left. (The history's own state Sphinx empties on each page.)
    const ASKED = "tformer-asked";
    let leaves = false;
    const reopen = async (event) => {
      const [{ type }] = performance.getEntriesByType("navigation");
      if (event.type === "pageshow" && !event.persisted && type !== "back_forward") return;
      const left = JSON.parse(sessionStorage.getItem(ASKED) || "null");
      if (left?.page !== location.href || dialog.open) return;
      dialog.showModal();
      input.value = left.query;
      await search();
      if (left.all) more.click();
      list.scrollTop = left.scroll;
    };
    list.addEventListener("click", (event) => {
      if (!dialog || !event.target.closest("a") || event.ctrlKey || event.metaKey || event.shiftKey) return;
      const left = { page: location.href, query: list.dataset.query, scroll: list.scrollTop, all: more.hidden };
      sessionStorage.setItem(ASKED, JSON.stringify(left));
      leaves = true;
      dialog.close(); // the result may be on this page
    });
    dialog?.addEventListener("close", () => {
      if (!leaves) sessionStorage.removeItem(ASKED);
      leaves = false;
    });
    if (dialog) for (const back of ["pageshow", "popstate"]) addEventListener(back, reopen);
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
