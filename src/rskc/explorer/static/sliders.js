// The three sliders, and the buttons beside them.
import { byId, counted, element, percent, whole } from "./dom.js";
/** @import { Store } from "./state.js" */

const AXES = /** @type {const} */ ([
  ["k", "Clusters"],
  ["f", "Features"],
  ["t", "Trimmed"],
]);

/** @param {Store} store */
export function makeSliders(store) {
  const { data } = store;
  const words = {
    k: data.numbers.map(whole),
    f: data.counts.map(whole),
    t: data.trims.map(percent),
  };
  const shows = AXES.map(([axis, label], a) => makeSlider(store, axis, label, words[axis], a));
  const form = byId("sliders");
  form.addEventListener("submit", (/** @type {Event} */ event) => event.preventDefault());
  const { marked } = data.words;
  byId("to-automatic").hidden = !marked;
  byId("to-automatic").addEventListener("click", () => {
    const [k, f, t] = marked;
    store.set({ k, f, t });
  });
  byId("pin").addEventListener("click", () => {
    const { k, f, t, pin } = store.view;
    store.set({
      pin: pin && pin.join() === [k, f, t].join() ? null : [k, f, t],
    });
  });
  byId("clear").addEventListener("click", () => store.set({ selected: null }));
  const show = () => {
    shows.forEach((each) => each());
    const { k, f, t, pin, selected } = store.view;
    const here = pin && pin.join() === [k, f, t].join();
    byId("pin").textContent = here ? "Unpin this view" : "Pin this view";
    byId("clear").hidden = !selected;
    byId("status").textContent = statusOf(store);
  };
  store.listen(show);
  show();
}

/**
 * @param {Store} store
 * @param {"k" | "f" | "t"} axis
 * @param {string} label
 * @param {string[]} words of the places
 * @param {number} a which axis it is
 * @returns {() => void}
 */
function makeSlider(store, axis, label, words, a) {
  const box = document.querySelector(`.slider[data-axis=${axis}]`);
  const last = words.length - 1;
  const input = element("input", {
    type: "range",
    id: `slider-${axis}`,
    min: 0,
    max: last,
    step: 1,
  });
  const output = element("output", { for: `slider-${axis}` });
  const track = element("div", { class: "track" }, input);
  const places = words.map((word, i) => {
    const at = `--at:${last ? i / last : 0.5}`;
    return element("span", { class: "tick", style: at, "aria-hidden": "true" }, word);
  });
  const ticks = element("div", { class: "ticks" }, ...places);
  const { marked } = store.data.words;
  const star = (/** @type {number} */ i) => `--at:${last ? i / last : 0.5}`;
  if (marked) {
    const style = star(marked[a]);
    const title = `the automatic choice: ${words[marked[a]]}`;
    track.append(element("span", { class: "star", style, title, "aria-hidden": "true" }, "★"));
  }
  const pinned = element("span", { class: "pinned", "aria-hidden": "true", hidden: "" }, "◆");
  track.append(pinned);
  box?.append(element("label", { for: `slider-${axis}` }, label, " ", output), track, ticks);
  input.addEventListener("input", () => store.set({ [axis]: Number(input.value) }));
  return () => {
    const place = store.view[axis];
    input.value = String(place);
    input.setAttribute("aria-valuetext", words[place]);
    output.textContent = words[place];
    pinned.hidden = !store.view.pin;
    if (store.view.pin) pinned.style.cssText = star(store.view.pin[a]);
    places.forEach((tick, i) => tick.classList.toggle("now", i === place));
  };
}

/** @param {Store} store */
function statusOf(store) {
  const { data, s } = store;
  const { words } = data;
  const figures = [
    `silhouette ${words.silhouette[s]?.toFixed(2) ?? "–"}`,
    words.agreement[s] === null ? "" : `agreement of half-samples ${words.agreement[s].toFixed(2)}`,
    `smallest cluster ${counted(Math.min(...words.sizes[s]), "case")}`,
    counted(words.n_outliers[s], "outlier"),
  ];
  const selected = store.view.selected?.reduce((sum, one) => sum + one, 0);
  const brushed = selected === undefined ? "" : `${counted(selected, "case")} selected.`;
  return [figures.filter(Boolean).join(" · "), brushed].filter(Boolean).join(" — ");
}
