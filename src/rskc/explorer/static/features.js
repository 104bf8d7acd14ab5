// The features: weights now, along the numbers of features, and how often they are selected.
import { byId, counted, download, drawn, element, percent, short } from "./dom.js";
/** @import { Store } from "./state.js" */

const AT_A_TIME = 25;

/** @param {Store} store */
export function makeFeatures(store) {
  const { data } = store;
  let shown = AT_A_TIME;
  const heads = [
    "Feature",
    "Weight",
    data.halves ? "Selected" : "",
    data.words.cells ? "Outlying cells" : "",
    "More features →",
  ].filter(Boolean);
  const row = heads.map((head, i) =>
    element("th", { scope: "col", class: i ? "n" : undefined }, head),
  );
  byId("features")
    .querySelector("thead")
    .append(element("tr", {}, ...row));
  const show = () => {
    const found = foundFeatures(store);
    const rows = found.slice(0, shown).map((feature) => rowOf(store, feature));
    byId("features")
      .querySelector("tbody")
      .replaceChildren(...rows);
    byId("feature-more").hidden = found.length <= shown;
    byId("feature-note").textContent = noteOn(store, found.length);
  };
  byId("feature-search").addEventListener("input", () => {
    shown = AT_A_TIME;
    show();
  });
  byId("feature-more").addEventListener("click", () => {
    shown += 4 * AT_A_TIME;
    show();
  });
  byId("feature-download").addEventListener("click", () => download("features.csv", table(store)));
  store.listen((changed) => {
    if (changed.has("setting") || changed.has("feature")) show();
  });
  show();
}

/**
 * @typedef {object} Found
 * @property {number} j number of the feature
 * @property {number} weight
 * @property {number | null} selected share of the half-samples
 */

/** @param {Store} store @returns {Found[]} */
function foundFeatures(store) {
  const { data } = store;
  const { features, weights, selected } = data.weights(store.s);
  const wanted = byId("feature-search").value.trim().toLowerCase();
  const found = [];
  for (let i = 0; i < features.length; i++) {
    if (wanted && !data.features[features[i]].toLowerCase().includes(wanted)) continue;
    found.push({
      j: features[i],
      weight: weights[i],
      selected: data.halves ? selected[i] / data.halves : null,
    });
  }
  if (wanted) {
    const known = data.weightOf(store.s);
    data.features.forEach((/** @type {string} */ name, /** @type {number} */ j) => {
      if (!known.has(j) && name.toLowerCase().includes(wanted))
        found.push({ j, weight: 0, selected: null });
    });
  }
  return found;
}

/** @param {Store} store @param {number} j @returns {number[]} weights along the path */
function pathOf(store, j) {
  const { data, view } = store;
  return data.counts.map((_, f) => data.weightOf(data.setting(view.k, f, view.t)).get(j) ?? 0);
}

/** @param {Store} store @param {Found} found */
function rowOf(store, { j, weight, selected }) {
  const { data } = store;
  const { weights } = data.weights(store.s);
  const name = element(
    "button",
    { type: "button", class: "link" },
    element("bdi", {}, data.features[j]),
  );
  name.addEventListener("click", () => store.set({ feature: j }));
  const bar = element("span", {
    class: "bar",
    style: `--share:${weights[0] ? weight / weights[0] : 0}`,
  });
  const cells = [
    element("th", { scope: "row" }, name),
    element(
      "td",
      { class: "n", "data-label": "Weight" },
      element("span", { class: "weight" }, bar, element("span", {}, weight.toFixed(3))),
    ),
  ];
  if (data.halves)
    cells.push(
      element(
        "td",
        { class: "n", "data-label": "Selected" },
        selected === null ? "–" : percent(selected),
      ),
    );
  if (data.words.cells) {
    const outlying = String(data.outlying.ofFeatures[j]);
    cells.push(element("td", { class: "n", "data-label": "Outlying" }, outlying));
  }
  const line = sparkline(pathOf(store, j), store.view.f);
  cells.push(element("td", { "data-label": "More features →" }, line));
  return element("tr", { class: store.view.feature === j ? "chosen" : undefined }, ...cells);
}

/** @param {number[]} values @param {number} now */
function sparkline(values, now) {
  const [width, height] = [92, 20];
  const most = Math.max(...values, 1e-9);
  const at = (/** @type {number} */ value, /** @type {number} */ i) => [
    3 + (i / Math.max(1, values.length - 1)) * (width - 6),
    height - 3 - (value / most) * (height - 6),
  ];
  const points = values
    .map((value, i) =>
      at(value, i)
        .map((each) => each.toFixed(1))
        .join(","),
    )
    .join(" ");
  const [x, y] = at(values[now], now);
  return drawn(
    "svg",
    {
      class: "spark",
      width,
      height,
      viewBox: `0 0 ${width} ${height}`,
      role: "img",
      "aria-label": `weights ${values.map(short).join(", ")}`,
    },
    drawn("polyline", { points }),
    drawn("circle", { cx: x, cy: y, r: 2.6 }),
  );
}

/** @param {Store} store @param {number} found */
function noteOn(store, found) {
  const { data } = store;
  const with_weight = data.words.n_features[store.s];
  const kept = data.weights(store.s).features.length;
  const all = `${counted(with_weight, "feature")} of ${data.features.length.toLocaleString("en-US")} have weight here`;
  const left =
    kept < with_weight ? `; the page holds the ${kept.toLocaleString("en-US")} largest` : "";
  return `${all}${left}.${found ? "" : " None matches."}`;
}

/** @param {Store} store @returns {any[][]} */
function table(store) {
  const { data } = store;
  const head = [
    "feature",
    "weight",
    "selected",
    ...data.counts.map((count) => `weight_at_${count}`),
  ];
  return [
    head,
    ...foundFeatures(store).map(({ j, weight, selected }) => [
      data.features[j],
      weight,
      selected,
      ...pathOf(store, j),
    ]),
  ];
}
