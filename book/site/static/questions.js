// Questions of a few seconds: an answer is a button. The one that is chosen shows its reason, and so does the right one.
// What follows a Predict tells its answer, and is veiled until one is chosen. What was chosen is kept in this browser.
(() => {
  // --- What is kept: of each page the questions that were answered, and with what; no answer is "show it". ---
  const [KEY, VERSION] = ["tformer.answers", 1];
  const root = new URL(document.documentElement.dataset.content_root || "./", location.href);
  const here = location.pathname.slice(root.pathname.length).replace(/\.html$/, "");
  const read = () => {
    try {
      const kept = JSON.parse(localStorage.getItem(KEY));
      if (kept?.version === VERSION && kept.pages) return kept.pages;
    } catch { /* forbidden, or not ours: then nothing is kept */ }
    return {};
  };
  const write = (pages) => {
    try {
      if (Object.keys(pages).length) localStorage.setItem(KEY, JSON.stringify({ version: VERSION, pages }));
      else localStorage.removeItem(KEY);
    } catch { /* forbidden, or full: it holds until one leaves */ }
  };
  const keep = (label, answers) => {
    const pages = read(); // another tab may have written
    pages[here] = { ...pages[here], [label]: answers };
    if (!answers) delete pages[here][label];
    if (!Object.keys(pages[here]).length) delete pages[here];
    write(pages);
    foot.update();
  };

  const element = (tag, name, ...children) => {
    const made = document.createElement(tag);
    made.className = name;
    made.append(...children);
    return made;
  };
  const button = (words, act) => {
    const made = document.createElement("button");
    made.type = "button";
    made.append(words);
    made.addEventListener("click", act);
    return made;
  };

  // --- The veil: over what is shown next, and the paragraph that says what it means. Code before it stays in view. ---
  const WORDS = "p, ul, ol, dl, blockquote, .admonition", RESULT = ".cell:has(.cell_output)";
  const CLOSED = `.cell:not(${RESULT})`, NUMBERS = ".tformer-claims"; // a mark opens the numbers of what stands above it
  const tellsAnswer = (box) => {
    const found = [];
    for (let one = box.nextElementSibling; one && !one.matches("section, h2, h3, .question"); one = one.nextElementSibling) {
      if (!found.length && one.matches(CLOSED)) continue;
      found.push(one);
      if (!one.matches(WORDS)) continue;
      if (!found.some((before) => before.matches(RESULT)) && one.nextElementSibling?.matches(RESULT)) found.push(one.nextElementSibling);
      break;
    }
    const after = found.at(-1)?.nextElementSibling;
    return after?.matches(NUMBERS) ? [...found, after] : found;
  };
  const veils = [];
  const veil = (box, asked) => {
    const told = tellsAnswer(box);
    if (!told.length) return null;
    const show = button("show it", () => {
      asked();
      held.focus({ preventScroll: true });
      const bar = parseFloat(getComputedStyle(document.documentElement).scrollPaddingTop);
      if (held.getBoundingClientRect().top < bar) held.scrollIntoView({ block: "start" }); // it is read from its start
    });
    const cover = element("div", "veil-cover", element("p", "", "What follows tells the answer. Choose one first, or ", show, "."));
    const held = element("div", "veil-held");
    const all = element("div", "veil", held);
    told[0].before(all);
    held.append(...told);
    held.tabIndex = -1;
    const made = {
      held,
      put: () => {
        made.lift(); // it may be there
        held.inert = true;
        all.append(cover);
        tformerClosed.findable(all, held, () => {
          made.lift();
          held.scrollIntoView({ block: "center" });
        });
      },
      lift: () => {
        held.inert = false;
        cover.remove();
        all.querySelector(":scope > .tformer-words")?.remove();
      },
    };
    veils.push(made);
    return made;
  };

  // --- The questions; those in a closed fold come when it is opened. ---
  const questions = [];
  const setUp = (box) => {
    const label = box.id.replace(/^q-/, "");
    const fold = box.querySelector("details");
    const told = element("p", "question-told");
    told.setAttribute("role", "status");
    const items = [...box.querySelectorAll(".question-answers > li")];
    const cover = box.classList.contains("question-predict") ? veil(box, () => {
      cover.lift();
      keep(label, []);
    }) : null;

    const chosen = () => items.filter((item) => item.classList.contains("chosen"));
    const choose = (item) => {
      item.classList.add("chosen");
      box.classList.add("answered");
      item.firstElementChild.setAttribute("aria-pressed", "true");
      cover?.lift();
    };
    const forget = () => {
      for (const item of items) {
        item.classList.remove("chosen");
        item.firstElementChild.removeAttribute("aria-pressed");
      }
      box.classList.remove("answered");
      told.textContent = "";
      cover?.put();
    };
    items.forEach((item, n) => {
      const why = fold.querySelector(`.why-${n}`);
      why.firstElementChild.remove(); // the answer, which stands above it
      const answer = button("", () => {
        choose(item);
        keep(label, chosen().map((one) => one.firstElementChild.textContent));
        told.textContent = `${item.classList.contains("right") ? "Right." : "Not this one."} ${why.textContent.trim()}`;
      });
      answer.append(...[...item.children].flatMap((child) => [...child.childNodes]));
      item.replaceChildren(answer, why);
    });
    const again = element("p", "question-again", button("Ask again", () => {
      forget();
      keep(label, null);
      items[0].firstElementChild.focus({ preventScroll: true });
    }));
    fold.replaceWith(told, again);
    box.classList.add("asks");

    const kept = read()[here]?.[label];
    if (kept) for (const item of items) if (kept.includes(item.firstElementChild.textContent)) choose(item);
    if (!kept) cover?.put();
    questions.push({ forget });
  };
  tformerClosed.each((root) => {
    for (const box of root.querySelectorAll(".question:not(.asks)")) setUp(box);
  });

  // --- What leads into what is veiled opens it: an address, a word that was searched for, the browser's own search. ---
  const reach = (target) => target && veils.find(({ held }) => held.contains(target))?.lift();
  const arrive = () => {
    const hash = location.hash.slice(1);
    let name = hash;
    try { name = decodeURIComponent(hash); } catch { /* a lone % is a part of it */ }
    const figure = new URLSearchParams(hash).get("try");
    reach(name && document.getElementById(name));
    if (figure) reach(document.querySelector(`[data-try="${CSS.escape(figure)}"]`));
  };
  arrive();
  addEventListener("hashchange", arrive);
  document.addEventListener("click", (event) => {
    if (event.target.closest?.("a[href*='#']")) setTimeout(arrive);
  });
  addEventListener("load", () => {
    for (const word of document.querySelectorAll(".veil .highlighted")) reach(word);
  });
  addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase();
    if (key === "f3" || ((event.ctrlKey || event.metaKey) && (key === "f" || key === "g"))) for (const { lift } of veils) lift();
  });

  // --- Below the text: where the answers are, and how to be rid of them. ---
  const foot = (() => {
    const line = element("p", "question-foot", "Your answers are kept in this browser, and nowhere else. ", button("Forget them all", () => {
      write({});
      for (const { forget } of questions) forget();
      foot.update();
    }));
    const update = () => {
      if (questions.length && !line.isConnected) document.querySelector(".bd-article")?.append(line);
      line.hidden = !Object.keys(read()).length;
    };
    update();
    return { update };
  })();
})();
