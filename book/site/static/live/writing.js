// The first page: the book's model writes by itself, each letter coloured by how much it surprised the model.
// The letters stand there from the start; the model (a megabyte) comes when the browser has nothing else to do.
(() => {
  const place = document.querySelector(".first-letters");
  const button = place.parentElement.querySelector("button");
  const base = document.currentScript.src.replace(/writing\.js.*$/, "");
  const START = place.textContent;
  const [MOST, A_SECOND, STILL] = [260, 14, matchMedia("(prefers-reduced-motion: reduce)")];
  const load = (file) => new Promise((done, failed) => {
    const tag = document.createElement("script");
    [tag.src, tag.onload, tag.onerror] = [base + file, done, failed];
    document.head.append(tag);
  });
  let [model, cache, logits, letters, seed, timer, seen] = [null, null, null, 0, 1, 0, false];
  let running = !STILL.matches;

  const put = (token) => {
    const bits = logits ? -Math.log2(window.TformerMaths.softmax(logits)[token]) : 0; // how surprised it is
    const letter = document.createElement("span");
    letter.textContent = model.letters[token];
    letter.style.setProperty("--surprise", Math.min(1, bits / 6).toFixed(2));
    const blank = letter.textContent === "\n" && place.textContent.endsWith("\n"); // a line that would show nothing
    if (!blank) place.append(letter);
    place.scrollTop = place.scrollHeight; // the line that is written stays in view
    logits = model.step(token, cache).logits;
    letters += 1;
  };
  const begin = () => {
    [cache, logits, letters] = [model.newCache(), null, 0];
    place.textContent = "";
    model.encode(START).forEach(put);
  };
  const next = () => {
    const p = window.TformerMaths.nextProbabilities(logits, { temperature: 0.8, topP: 0.95 });
    let u = window.TformerMaths.random(seed).even();
    seed = (seed % 99999) + 1;
    const at = p.findIndex((q) => (u -= q) < 0);
    put(at < 0 ? p.indexOf(Math.max(...p)) : at);
  };
  const go = () => {
    clearTimeout(timer);
    if (!running || !seen || document.hidden) return;
    if (letters < MOST) next();
    else begin();
    timer = setTimeout(go, letters < MOST ? 1000 / A_SECOND : 6000);
  };
  const show = () => {
    button.hidden = false;
    button.textContent = running ? "Pause" : "Let it write";
  };
  button.addEventListener("click", () => {
    running = !running;
    show();
    go();
  });
  document.addEventListener("visibilitychange", go);
  const start = async () => {
    if (model || navigator.connection?.saveData) return;
    model = "on its way";
    try {
      for (const file of ["maths.js", "model.js", "model_weights.js"]) await load(file);
      model = new window.TformerGPT(window.TformerModel);
    } catch {
      return; // the letters stay as they are
    }
    begin();
    show();
    go();
  };
  new IntersectionObserver(([entry]) => {
    seen = entry.isIntersecting;
    if (seen && !model) (window.requestIdleCallback ?? setTimeout)(start);
    else if (model?.step) go();
  }).observe(place);
})();
