// The map of choices: numbers of clusters by numbers of features, in colors.
import { byId, element, inkOn, percent, radios, short, whole } from "./dom.js";
import { MAPS } from "./state.js";
/** @import { Store } from "./state.js" */

// From low to high: pale to dark, in steps that are even to the eye.
const RAMP = [
  [247, 251, 236],
  [217, 238, 201],
  [153, 212, 184],
  [75, 176, 181],
  [33, 130, 167],
  [33, 82, 141],
  [29, 40, 95],
];
const NOTES = {
  agreement:
    "Agreement: the adjusted Rand index of fits to two halves of the cases; 1 means the same clusters, 0 is expected by chance.",
  silhouette:
    "Silhouette: how much nearer cases are to their center than to the next one, from 0 to 1, without outliers.",
  smallest: "Smallest cluster: the number of its cases; a very small cluster may consist of outliers.",
};

/**
 * @param {Store} store
 * @param {any} colors
 */
export function makeMap(store, colors) {
  const { data } = store;
  const choices = /** @type {Record<string, string>} */ ({ ...MAPS });
  if (!data.halves) delete choices.agreement;
  const map = (/** @type {string} */ value) => store.set({ map: value });
  const showChoice = radios(byId("map-choice"), "map", choices, () => store.view.map, map);
  const cells = makeCells(store);
  const show = () => {
    showChoice();
    const value = valueOf(store);
    const values = data.numbers.map((_, k) =>
      data.counts.map((__, f) => value(data.setting(k, f, store.view.t))),
    );
    const seen = values.flat().filter((each) => each !== null);
    const [low, high] = [Math.min(...seen), Math.max(...seen)];
    const { pin } = store.view;
    const { marked } = data.words;
    cells.forEach((row, k) =>
      row.forEach((cell, f) => {
        const now = values[k][f];
        const share = now === null ? null : high > low ? (now - low) / (high - low) : 1;
        const [r, g, b] =
          share === null ? [150, 150, 150] : ramp(colors.scheme === "dark" ? 1 - share : share);
        cell.style.background = `rgb(${r},${g},${b})`;
        cell.style.color = inkOn(r, g, b);
        const at = (/** @type {any} */ place) =>
          place && place[0] === k && place[1] === f && place[2] === store.view.t;
        const sign = at(marked) ? "★" : at(pin) ? "◆" : "";
        const text = store.view.map === "smallest" ? short(now) : (now?.toFixed(2) ?? "–");
        cell.textContent = text + sign;
        const words = `${data.numbers[k]} clusters, ${data.counts[f]} features: ${choices[store.view.map]} ${text}`;
        cell.setAttribute("aria-label", words + (at(marked) ? ", the automatic choice" : ""));
        cell.title = words;
        const here = k === store.view.k && f === store.view.f;
        cell.setAttribute("aria-pressed", String(here));
        cell.tabIndex = here ? 0 : -1;
      }),
    );
    byId("map-note").textContent =
      `With ${percent(data.trims[store.view.t])} of the cases trimmed. ${NOTES[/** @type {keyof typeof NOTES} */ (store.view.map)]}`;
  };
  store.listen((changed) => {
    if (["setting", "map", "pin", "colors"].some((name) => changed.has(name))) show();
  });
  show();
}

/** @param {Store} store @returns {(s: number) => number | null} */
function valueOf(store) {
  const { words } = store.data;
  if (store.view.map === "agreement") return (s) => words.agreement[s];
  if (store.view.map === "silhouette") return (s) => words.silhouette[s];
  return (s) => Math.min(...words.sizes[s]);
}

/** @param {Store} store @returns {any[][]} */
function makeCells(store) {
  const { data } = store;
  const table = byId("map");
  const head = element("tr", {}, element("th", { scope: "col" }, "Clusters ↓ Features →"));
  head.append(...data.counts.map((count) => element("th", { scope: "col" }, whole(count))));
  table.append(element("thead", {}, head));
  const body = element("tbody");
  table.append(body);
  const rows = data.numbers.map((number, k) => {
    const row = element("tr", {}, element("th", { scope: "row" }, String(number)));
    const cells = data.counts.map((_, f) => {
      const cell = element("button", { type: "button" });
      cell.addEventListener("click", () => store.set({ k, f }));
      row.append(element("td", {}, cell));
      return cell;
    });
    body.append(row);
    return cells;
  });
  table.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    const steps = /** @type {Record<string, number[]>} */ ({
      ArrowLeft: [0, -1],
      ArrowRight: [0, 1],
      ArrowUp: [-1, 0],
      ArrowDown: [1, 0],
    });
    const step = steps[event.key];
    if (!step) return;
    event.preventDefault();
    const k = Math.max(0, Math.min(rows.length - 1, store.view.k + step[0]));
    const f = Math.max(0, Math.min(data.counts.length - 1, store.view.f + step[1]));
    store.set({ k, f });
    rows[k][f].focus();
  });
  return rows;
}

/** @param {number} share @returns {number[]} */
function ramp(share) {
  const place = share * (RAMP.length - 1);
  const low = Math.min(RAMP.length - 2, Math.floor(place));
  return RAMP[low].map((part, i) => Math.round(part + (RAMP[low + 1][i] - part) * (place - low)));
}
