// What changed since the setting that was pinned.
import { byId, chip, counted, element, percent, short } from "./dom.js";
/** @import { Store } from "./state.js" */
import { sharedCases } from "./tree.js";

const MOST_NAMES = 20;

/**
 * Return the share of the pairs of cases that are together in one partition and apart in the other.
 * @param {ArrayLike<number>} a
 * @param {ArrayLike<number>} b
 * @returns {number}
 */
export function errorRate(a, b) {
  const [rows, columns, cells] = [new Map(), new Map(), new Map()];
  const add = (/** @type {Map<any, number>} */ map, /** @type {any} */ key) =>
    map.set(key, (map.get(key) ?? 0) + 1);
  for (let i = 0; i < a.length; i++) {
    add(rows, a[i]);
    add(columns, b[i]);
    add(cells, a[i] * 65536 + b[i]);
  }
  const squares = (/** @type {Map<any, number>} */ map) =>
    [...map.values()].reduce((sum, count) => sum + count * count, 0);
  const n = a.length;
  return (squares(rows) + squares(columns) - 2 * squares(cells)) / (n * (n - 1));
}

/**
 * @param {Store} store
 * @param {any} colors
 */
export function makeCompare(store, colors) {
  const show = () => {
    const parts = store.pinned === null ? withoutPin(store) : withPin(store, store.pinned, colors);
    byId("compare").replaceChildren(...parts);
  };
  store.listen((changed) => {
    if (["setting", "pin", "colors"].some((name) => changed.has(name))) show();
  });
  show();
}

/** @param {Store} store @param {number} s */
function wordsOf(store, s) {
  const { data } = store;
  const [F, T] = [data.counts.length, data.trims.length];
  const [f, t] = [s % F, Math.floor(s / F) % T];
  return `${data.numberOf(s)} clusters, ${counted(data.counts[f], "feature")}, ${percent(data.trims[t])} trimmed`;
}

/** @param {Store} store @param {number[]} settings @returns {any[]} on the known class */
function onClasses(store, settings) {
  const { classes } = store.data.words;
  if (!classes) return [];
  const rates = settings.map((s) => errorRate(store.data.labels(s), classes.codes).toFixed(3));
  const change = rates.length > 1 ? `${rates[0]} at the pin, ${rates[1]} now` : rates[0];
  return [element("p", { id: "cer" }, `Error rate against the known classes (CER): ${change}.`)];
}

/** @param {Store} store @returns {any[]} */
function withoutPin(store) {
  const text = "No view is pinned. Pin this one, then move a slider.";
  return [element("p", { class: "quiet" }, text), ...onClasses(store, [store.s])];
}

/** @param {Store} store @param {number} pinned @param {any} colors @returns {any[]} */
function withPin(store, pinned, colors) {
  const { data, s } = store;
  const [before, now] = [data.labels(pinned), data.labels(s)];
  /** @type {number[]} */
  const moved = [];
  for (let i = 0; i < data.n; i++) if (before[i] !== now[i]) moved.push(i);
  const [lost, gained] = [differing(store, pinned, s), differing(store, s, pinned)];
  const back = element("button", { type: "button" }, "Back to the pin");
  back.addEventListener("click", () => {
    const [k, f, t] = /** @type {number[]} */ (store.view.pin);
    store.set({ k, f, t });
  });
  const select = element("button", { type: "button" }, "Select these cases");
  select.disabled = !moved.length;
  select.addEventListener("click", () => {
    const selected = new Uint8Array(data.n);
    for (const i of moved) selected[i] = 1;
    store.set({ selected });
  });
  return [
    element(
      "p",
      {},
      element("strong", {}, "Pinned: "),
      wordsOf(store, pinned),
      ". ",
      element("strong", {}, "Now: "),
      wordsOf(store, s),
      ".",
    ),
    element(
      "p",
      { id: "moved" },
      `${counted(moved.length, "case")} of ${data.n.toLocaleString("en-US")} moved; ${percent(errorRate(before, now))} of the pairs of cases changed (CER ${short(errorRate(before, now))}). `,
      names(moved.map((i) => data.names[i])),
    ),
    ...onClasses(store, [pinned, s]),
    element(
      "p",
      { id: "gained" },
      `${counted(gained.length, "feature")} gained: `,
      names(gained.map((j) => data.features[j])),
    ),
    element(
      "p",
      { id: "lost" },
      `${counted(lost.length, "feature")} lost: `,
      names(lost.map((j) => data.features[j])),
    ),
    element("div", { class: "buttons" }, back, select),
    element("div", { class: "scroll plain" }, crossTable(store, pinned, colors)),
  ];
}

/** @param {Store} store @param {number} own @param {number} other @returns {number[]} */
function differing(store, own, other) {
  const there = store.data.weightOf(other);
  return Array.from(store.data.weights(own).features).filter((j) => !there.has(j));
}

/** @param {string[]} all */
function names(all) {
  if (!all.length) return element("span", {}, "none.");
  const first = all
    .slice(0, MOST_NAMES)
    .flatMap((name, i) => [i ? ", " : "", element("bdi", {}, name)]);
  const more = all.length - MOST_NAMES;
  return element(
    "span",
    {},
    ...first,
    more > 0 ? ` and ${more.toLocaleString("en-US")} more.` : ".",
  );
}

/** @param {Store} store @param {number} pinned @param {any} colors */
function crossTable(store, pinned, colors) {
  const counts = sharedCases(store, pinned, store.s);
  const head = element("tr", {}, element("th", { scope: "col" }, "Pinned ↓  Now →"));
  head.append(
    ...counts[0].map((_, c) => element("th", { scope: "col", class: "n" }, chip(colors, c))),
  );
  const rows = counts.map((row, r) => {
    const cells = row.map((count) =>
      element("td", { class: count ? "n" : "n zero" }, count.toLocaleString("en-US")),
    );
    return element("tr", {}, element("th", { scope: "row" }, chip(colors, r)), ...cells);
  });
  return element(
    "table",
    { class: "cross" },
    element("thead", {}, head),
    element("tbody", {}, ...rows),
  );
}
