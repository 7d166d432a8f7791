// The element <tformer-live figure="...">, and what all figures share: controls, a stage, a state in the link.
(() => {
  const SVG = "http://www.w3.org/2000/svg";
  const figures = new Map();

  const fill = (node, attributes = {}, ...children) => {
    for (const [name, value] of Object.entries(attributes)) {
      if (name.startsWith("aria-")) { // true and false are words there
        if (value != null) node.setAttribute(name, String(value));
      } else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
      else if (value === true) node.setAttribute(name, "");
      else if (value !== false && value != null) node.setAttribute(name, value);
      else node.removeAttribute(name);
    }
    node.append(...children.flat().filter((child) => child != null && child !== false));
    return node;
  };
  const html = (tag, ...rest) => fill(document.createElement(tag), ...rest);
  const svg = (tag, ...rest) => fill(document.createElementNS(SVG, tag), ...rest);
  const colour = (role) => `var(--tformer-${role})`;
  // Numbers with a real minus sign, but none before a zero, and a comma at thousands.
  const number = (x, digits = 2) => (Object.is(x, -Infinity) ? "−∞" : x.toLocaleString("en", {
    minimumFractionDigits: digits, maximumFractionDigits: digits }).replace(/^-(?=[0.,]*$)/, "").replace("-", "−"));
  // 12,345,678 as 12.3 million.
  const amount = (x) => {
    for (const [size, word] of [[1e12, "trillion"], [1e9, "billion"], [1e6, "million"]])
      if (x >= size) return `${x / size >= 100 ? Math.round(x / size).toLocaleString("en") : (x / size).toPrecision(3)} ${word}`;
    return x.toLocaleString("en");
  };
  const bytes = (x) => {
    for (const [size, unit] of [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]])
      if (x >= size) return `${x / size >= 100 ? Math.round(x / size).toLocaleString("en") : (x / size).toPrecision(3)} ${unit}`;
    return `${x} bytes`;
  };

  // Letters as they are said: signs that a screen reader skips by their names.
  const SIGNS = { " ": "a space", "\n": "a line end", ".": "a full stop", ",": "a comma", ";": "a semicolon", ":": "a colon",
    "!": "an exclamation mark", "?": "a question mark", "'": "an apostrophe", "\"": "a quotation mark", "-": "a hyphen", "—": "a dash",
    "(": "an opening bracket", ")": "a closing bracket", "[": "an opening square bracket", "]": "a closing square bracket", "&": "an ampersand", "$": "a dollar sign" };
  const spoken = (letter) => SIGNS[letter] ?? (/^[A-Z]$/.test(letter) ? `a capital ${letter}` : letter);
  const quoted = (word) => SIGNS[word] ?? `“${word}”`;
  const shown = (letter) => ({ " ": "␣", "\n": "↵" })[letter] ?? letter;
  // Letters one behind the other: what is seen, and its name for the ear where it differs.
  const letters = (all, gap = " ") => all.flatMap((letter, i) => [i ? gap : "", ...(SIGNS[letter]
    ? [html("span", { "aria-hidden": "true" }, shown(letter)), html("span", { class: "tl-hidden" }, `${i ? " " : ""}${SIGNS[letter]}`)] : [letter])]);
  const list = (parts) => (parts.length < 2 ? parts.join("") : `${parts.slice(0, -1).join(", ")} and ${parts[parts.length - 1]}`);

  // A background for a share of the greatest weight, with text that can be read on it in light and dark.
  const shade = (share) => (share <= 0.5
    ? `background: color-mix(in srgb, ${colour("weights")} ${Math.round(100 * share)}%, transparent)`
    : `background: color-mix(in srgb, ${colour("weights")} ${Math.round(50 + 50 * share)}%, var(--pst-color-background)); color: ${colour("on-weights")}`);

  // A child for each item, which `looks` gives attributes and content. Those that stand there stay: they keep the focus,
  // and what changes of their style is a transition.
  const each = (parent, items, make, looks) => {
    while (parent.childElementCount > items.length) parent.lastElementChild.remove();
    while (parent.childElementCount < items.length) parent.append(make(parent.childElementCount));
    [...parent.children].forEach((child, i) => {
      const [attributes, ...content] = looks(items[i], i);
      child.replaceChildren();
      fill(child, attributes, ...content);
    });
  };

  // --- Motion. Texts are those of the new state at once; what is drawn goes there, in one of three ways: what has a
  // `data-key` by `glide`, numbers that are drawn by `arrive`, what stays in the document by a transition in live.css.
  // All three ask `still`: there is no motion where it is unwanted, and none where the next state comes at once.
  const GLIDES = ["x", "y", "width", "height", "cx", "cy", "d", "fill", "strokeWidth", "fillOpacity", "opacity"];
  const reduced = matchMedia("(prefers-reduced-motion: reduce)");
  let held = false; // something follows a pointer, which is down and has moved
  addEventListener("pointermove", (event) => { held = event.buttons > 0; }, true);
  for (const kind of ["pointerup", "pointercancel"]) addEventListener(kind, () => { held = false; }, true);
  const stands = (node) => {
    const style = getComputedStyle(node);
    return Object.fromEntries(GLIDES.map((name) => [name, style[name]]));
  };
  const standing = (picture) => new Map([...picture.querySelectorAll("[data-key]")].map((node) => [node.dataset.key, node]));
  let counter = 0;

  class Live extends HTMLElement {
    static observedAttributes = ["ready"];

    attributeChangedCallback() {
      if (!this.made && figures.has(this.getAttribute("figure"))) this.make();
    }

    make() {
      this.made = true;
      const name = this.getAttribute("figure");
      const figure = figures.get(name);
      // The start is that of the page (`data-state`), the state that of a link, if it is for this figure.
      this.start = { ...figure.state, ...this.known(figure.state, new URLSearchParams(this.dataset.state)) };
      const given = new URLSearchParams(location.hash.slice(1));
      this.state = { ...this.start, ...(given.get("try") === name ? this.known(this.start, given) : {}) };
      [this.controls, this.ways] = [new Map(), new Map()];
      this.stage = html("div", { class: "tl-stage" });
      this.panel = html("div", { class: "tl-panel", role: "group", "aria-label": "Settings" });
      this.said = html("p", { class: "tl-said", "aria-hidden": "true" }); // seen at once, and
      this.heard = html("p", { class: "tl-heard tl-hidden", "aria-live": "polite" }); // heard once it stands still
      const copied = html("span", { class: "tl-copied", role: "status" });
      const copy = async () => {
        const link = this.link(name);
        history.replaceState(null, "", link);
        try {
          await navigator.clipboard.writeText(link);
          copied.textContent = "Copied.";
        } catch {
          copied.textContent = "The link is in the address bar.";
        }
        setTimeout(() => { copied.textContent = ""; }, 3000);
      };
      this.steps = this.taskLine(figure);
      this.replaceChildren(this.steps ?? "", this.stage, this.panel, this.said, this.heard, html("p", { class: "tl-foot" },
        html("button", { type: "button", onclick: () => this.again() }, "Start again"),
        html("button", { type: "button", onclick: copy }, "Link to this state"), copied));
      this.draw = figure.build(this);
      new ResizeObserver(() => this.redraw()).observe(this.stage);
      this.redraw();
    }

    // One task at a time: a sentence, a dot for each; what is reached is ticked, and the next one comes. A task may
    // say what was expected of a state that does not reach it, in place of its sentence. A figure with `plan` has
    // other tasks in other states, say for each model: they begin when that state does.
    taskLine(figure) {
      if (!figure.tasks && !figure.plan) return null;
      for (const told of this.closest("details")?.querySelectorAll(":scope > .tl-task") ?? []) {
        if (told.querySelector("a")) this.after(told); // its exercises come after it
        else told.remove(); // the page's own sentence, for where nothing moves
      }
      this.plan = null;
      this.toDo = html("span", { class: "tl-to-do" });
      this.dots = html("span", { class: "tl-dots" });
      this.heardTask = html("span", { class: "tl-hidden", role: "status" });
      this.progress = () => {
        const plan = figure.plan?.(this.state) ?? figure;
        const begins = plan !== this.plan;
        if (begins) {
          [this.plan, this.reached] = [plan, 0];
          this.dots.replaceChildren(...plan.tasks.map(() => html("span", { class: "tl-dot", "aria-hidden": "true" })));
        }
        if (!begins && !this.touched) return; // what the page or a link begins with is nobody's doing
        const touched = this.touched && !begins;
        this.touched = false;
        const { tasks, learned } = plan;
        const before = this.reached;
        if (touched && tasks[before]?.[1](this.state, this.start)) this.reached += 1;
        const reached = before < this.reached;
        const missed = touched && !reached && tasks[before]?.[2]?.(this.state, this.start);
        const words = missed || (tasks[this.reached]?.[0] ?? learned);
        if (!begins && words === this.toDo.textContent) return;
        [...this.dots.children].forEach((dot, i) => dot.classList.toggle("tl-done", i < this.reached));
        this.toDo.textContent = words;
        this.heardTask.textContent = missed || (reached ? `Reached. ${words}` : "");
      };
      return html("p", { class: "tl-steps" }, this.toDo, this.heardTask, this.dots);
    }

    // As it was when the page was opened, its tasks too.
    again() {
      this.plan = null;
      this.change(this.start);
    }

    // What the given texts say about a state like this one; what is no state of it is left alone.
    known(like, given) {
      const found = {};
      for (const [key, first] of Object.entries(like)) {
        if (!given.has(key)) continue;
        const text = given.get(key);
        if (typeof first === "number" && Number.isFinite(Number(text)) && text.trim()) found[key] = Number(text);
        if (typeof first === "boolean") found[key] = text === "true";
        if (typeof first === "string") found[key] = text;
      }
      return found;
    }

    link(name) {
      const kept = Object.entries(this.state).filter(([key, value]) => value !== this.start[key]);
      const state = new URLSearchParams([["try", name], ...kept]);
      return `${location.href.replace(/#.*$/, "")}#${state}`;
    }

    change(values) {
      Object.assign(this.state, values);
      this.touched = true;
      for (const [key, control] of this.controls) control.show(this.state[key]);
      this.redraw();
    }

    redraw() {
      for (const control of this.controls.values()) control.show();
      const width = Math.round(this.stage.clientWidth);
      if (width < 50 || !this.draw) return; // folded
      this.still = reduced.matches || held || width !== this.width || Boolean(this.runs?.()); // `runs`: by itself
      this.toggleAttribute("data-still", this.still);
      if (width !== this.width) {
        this.width = width;
        for (const one of [this.steps, this.said]) if (one) one.style.minHeight = "";
      }
      this.said.textContent = this.draw(this.state, Math.min(width, 720)) ?? "";
      if (this.steps) this.progress();
      // Sentences keep the height they once had, so that what is below them stays where it is.
      for (const one of [this.steps, this.said]) if (one) one.style.minHeight = `${one.scrollHeight}px`;
      for (const box of this.stage.querySelectorAll(".tl-scroll")) { // by keyboard too, if there is more than is seen
        const name = box.querySelector("caption").textContent;
        const wide = box.scrollWidth > box.clientWidth + 1;
        for (const [key, value] of [["tabindex", "0"], ["role", "group"], ["aria-label", `${name}, scrolls sideways`]])
          if (wide) box.setAttribute(key, value);
          else box.removeAttribute(key);
      }
      clearTimeout(this.timer);
      const hear = () => { this.heard.textContent = this.said.textContent; };
      if (this.heard.textContent) this.timer = setTimeout(hear, 700);
      else hear(); // at the start there is nothing to announce
    }

    // What has a `data-key` goes from where it stood before the change; what was not there yet appears.
    glide(picture, change) {
      const before = new Map(this.still ? [] : [...standing(picture)].map(([key, node]) => [key, stands(node)]));
      change();
      if (!before.size) return;
      for (const [key, node] of standing(picture)) {
        const [from, to] = [before.get(key) ?? { opacity: 0 }, stands(node)];
        if (Object.keys(from).some((name) => from[name] !== to[name])) node.animate([from, to], { duration: 220, easing: "ease-out" });
      }
    }

    // Numbers on their way from what was drawn last to what they are now.
    arrive(name, wanted) {
      const now = performance.now();
      const way = this.ways.get(name);
      if (way?.to.length !== wanted.length || this.still) {
        this.ways.set(name, { from: wanted, to: wanted, since: -Infinity });
        return wanted;
      }
      const done = Math.min(1, (now - way.since) / 250);
      const at = done === 1 ? way.to : way.from.map((x, i) => way.to[i] + (x - way.to[i]) * (1 - done) ** 3);
      const turns = wanted.some((x, i) => x !== way.to[i]);
      if (turns) this.ways.set(name, { from: at, to: wanted, since: now });
      if (turns || done < 1) {
        cancelAnimationFrame(this.frame);
        this.frame = requestAnimationFrame(() => this.redraw());
      }
      return at;
    }

    // `max` may be a function, where it depends on the state.
    slider(key, label, { min, max, step = 1, show = (x) => number(x, 0), from = (x) => x, to = (x) => x }) {
      const id = `tl-${(counter += 1)}`;
      const output = html("output", { for: id, "aria-live": "off" }); // the slider says it already
      const most = () => (typeof max === "function" ? max() : max);
      const clip = (x) => Math.min(most(), Math.max(min, x));
      const input = html("input", { id, type: "range", min, max: most(), step, oninput: () => {
        const old = this.state[key];
        const wanted = Number(input.value);
        const way = Math.sign(wanted - from(old)) * step;
        let x = wanted; // one step may be too small to change a rounded number: then go on until it does
        while (way && to(x) === old && clip(x + way) !== x) x = clip(x + way);
        this.change({ [key]: to(x) });
      } });
      const row = html("div", { class: "tl-row" }, html("label", { for: id }, label), input, output);
      this.panel.append(row);
      const given = from(this.state[key]); // of a link, perhaps
      if (!Number.isFinite(given)) this.state[key] = this.start[key];
      else if (clip(given) !== given) this.state[key] = to(clip(given));
      this.controls.set(key, { show: () => {
        input.max = most();
        input.value = from(this.state[key]);
        output.textContent = show(this.state[key]);
        input.setAttribute("aria-valuetext", show(this.state[key]));
      } });
      return row;
    }

    toggle(key, label) {
      const input = html("input", { type: "checkbox", onchange: () => this.change({ [key]: input.checked }) });
      const row = html("div", { class: "tl-row" }, html("label", { class: "tl-check" }, input, label));
      this.panel.append(row);
      this.controls.set(key, { show: () => { input.checked = this.state[key]; } });
      return row;
    }

    // `options`: [value, text] pairs; a state from a link that is none of them becomes the first.
    choice(key, label, options, chosen = (value) => ({ [key]: value })) {
      const id = `tl-${(counter += 1)}`;
      const input = html("select", { id, onchange: () => this.change(chosen(input.value)) },
        options.map(([value, text]) => html("option", { value }, text)));
      const row = html("div", { class: "tl-row" }, html("label", { for: id }, label), input);
      this.panel.append(row);
      if (!options.some(([value]) => value === this.state[key])) this.state[key] = options[0][0];
      this.controls.set(key, { show: () => { input.value = this.state[key]; } });
      return row;
    }

    // A choice as a row of buttons; the figure puts it where it belongs.
    buttons(key, label, options, chosen = (value) => ({ [key]: value })) {
      const all = options.map(([value, text]) => html("button", { type: "button", value, onclick: () => this.change(chosen(value)) }, text));
      if (!options.some(([value]) => value === this.state[key])) this.state[key] = options[0][0];
      this.controls.set(key, { show: () => all.forEach((one) => one.setAttribute("aria-pressed", one.value === this.state[key])) });
      return html("div", { class: "tl-pick", role: "group", "aria-label": label }, all);
    }

    button(label, press) {
      const button = html("button", { type: "button", onclick: press }, label);
      const last = this.panel.lastElementChild;
      if (last?.classList.contains("tl-buttons")) last.append(button);
      else this.panel.append(html("div", { class: "tl-row tl-buttons" }, button));
      return button;
    }

    // A picture of this height; `drag` gets the place of the pointer in its units, and whether it has just come down.
    picture(label, drag) {
      const picture = svg("svg", { role: "img", "aria-label": label });
      if (drag) {
        const at = (event, down) => {
          const box = picture.getBoundingClientRect();
          const scale = picture.viewBox.baseVal.width / box.width;
          drag((event.clientX - box.left) * scale, (event.clientY - box.top) * scale, down);
        };
        // A finger on a grip moves it. Elsewhere it may be about to scroll the page, which the browser then says by
        // `pointercancel`: it moves something once it goes sideways, or is lifted where it came down.
        let came = null;
        picture.classList.add("tl-drag");
        picture.addEventListener("pointerdown", (event) => {
          picture.setPointerCapture(event.pointerId);
          if (event.pointerType === "touch" && !event.target.closest(".tl-grip")) came = event;
          else at(event, true);
        });
        picture.addEventListener("touchstart", (event) => {
          if (event.target.closest(".tl-grip")) event.preventDefault();
        }, { passive: false });
        picture.addEventListener("pointermove", (event) => {
          if (!picture.hasPointerCapture(event.pointerId)) return;
          if (came) {
            const [dx, dy] = [Math.abs(event.clientX - came.clientX), Math.abs(event.clientY - came.clientY)];
            if (dx < 8 || dx < dy) return;
            at(came, true);
            came = null;
          }
          at(event, false);
        });
        picture.addEventListener("pointerup", () => {
          if (came) at(came, true);
          came = null;
        });
        picture.addEventListener("pointercancel", () => { came = null; });
      }
      this.stage.append(picture);
      return (width, height, ...children) => {
        picture.setAttribute("viewBox", `0 0 ${width} ${height}`);
        picture.style.maxWidth = `${width}px`;
        this.glide(picture, () => picture.replaceChildren(...children.flat(Infinity).filter((child) => child != null && child !== false)));
      };
    }

    // A table of numbers: `head` and rows of texts; a row may carry a class.
    table(caption) {
      const table = html("table", { class: "tl-table" });
      this.stage.append(html("div", { class: "tl-scroll" }, table));
      return (head, rows, marked = () => "") => table.replaceChildren(
        html("caption", {}, caption),
        html("thead", {}, html("tr", {}, head.map((text) => html("th", { scope: "col" }, text)))),
        html("tbody", {}, rows.map((row, i) => html("tr", {}, row.map((text, j) => (j
          ? html("td", { class: marked(i, j) }, text) : html("th", { scope: "row" }, text)))))));
    }
  }

  const text = (x, y, words, { anchor = "middle", size = 14, ...rest } = {}) => svg("text", {
    x, y, "text-anchor": anchor, "font-size": size, fill: "currentColor", ...rest }, words);
  const line = (x1, y1, x2, y2, rest = {}) => svg("line", { x1, y1, x2, y2, stroke: "currentColor", ...rest });
  const rect = (x, y, width, height, rest = {}) => svg("rect", {
    x, y, width: Math.max(0, width), height: Math.max(0, height), ...rest });
  const path = (points, rest = {}) => svg("path", {
    d: points.map(([x, y], i) => `${i ? "L" : "M"}${x.toFixed(1)} ${y.toFixed(1)}`).join(""),
    fill: "none", stroke: "currentColor", "stroke-width": 2, ...rest });

  window.TformerLive = {
    figures, define: (name, figure) => figures.set(name, figure),
    html, svg, text, line, rect, path, each, colour, shade, number, amount, bytes, spoken, quoted, shown, letters, list,
  };
  customElements.define("tformer-live", Live);
})();
