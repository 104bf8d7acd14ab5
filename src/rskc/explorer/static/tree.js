// The tree: how clusters split and merge from one number of clusters to the next.
import { byId, counted, drawn, hideTip, percent, showTip } from "./dom.js";
/** @import { Store } from "./state.js" */

const ROW = 54;
const LEFT = 40;

/**
 * @typedef {object} Node
 * @property {number} k row
 * @property {number} cluster
 * @property {number} size
 * @property {number} x
 * @property {number} y
 */

/**
 * @param {Store} store
 * @param {any} colors
 */
export function makeTree(store, colors) {
  const show = () => drawTree(store, colors);
  store.listen((changed) => {
    if (["f", "t", "k", "colors", "selected"].some((name) => changed.has(name))) show();
    else if (changed.has("lit")) shade(store);
  });
  new ResizeObserver(show).observe(byId("tree").parentElement);
}

/** @param {Store} store @returns {number[]} the setting of each row */
function rowsOf(store) {
  const { f, t } = store.view;
  return store.data.numbers.map((_, k) => store.data.setting(k, f, t));
}

/**
 * @param {Store} store
 * @param {number} above
 * @param {number} below
 * @returns {number[][]} cases in clusters of the row above and of the row below
 */
export function sharedCases(store, above, below) {
  const { data } = store;
  const [a, b] = [data.labels(above), data.labels(below)];
  const counts = Array.from({ length: data.numberOf(above) }, () =>
    new Array(data.numberOf(below)).fill(0),
  );
  for (let i = 0; i < data.n; i++) counts[a[i]][b[i]]++;
  return counts;
}

/**
 * Place the clusters of a row: in the order of where their cases come from.
 * @param {number[][] | null} shared
 * @param {Node[]} above
 * @param {number} K
 * @returns {number[]}
 */
function ordered(shared, above, K) {
  const clusters = Array.from({ length: K }, (_, c) => c);
  if (!shared) return clusters;
  const from = clusters.map((c) => {
    const total = above.reduce((sum, node) => sum + shared[node.cluster][c], 0);
    return total
      ? above.reduce((sum, node) => sum + shared[node.cluster][c] * node.x, 0) / total
      : 1e9;
  });
  return clusters.sort((a, b) => from[a] - from[b] || a - b);
}

/**
 * @param {Store} store
 * @param {any} colors
 */
function drawTree(store, colors) {
  const svg = byId("tree");
  const width = Math.max(280, svg.parentElement.clientWidth);
  const rows = rowsOf(store);
  const height = ROW * rows.length + 4;
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  const { data } = store;
  const edges = drawn("g", { class: "edges" });
  const circles = drawn("g", { class: "nodes" });
  const labels = drawn("g", { class: "rows" });
  /** @type {Node[]} */
  let above = [];
  rows.forEach((s, k) => {
    const y = ROW * k + ROW / 2;
    const shared = k ? sharedCases(store, rows[k - 1], s) : null;
    const sizes = new Array(data.numberOf(s)).fill(0);
    data.labels(s).forEach((label) => sizes[label]++);
    const nodes = ordered(shared, above, sizes.length).map((cluster, i) => {
      const x = LEFT + ((i + 0.5) / sizes.length) * (width - LEFT - 6);
      return { k, cluster, size: sizes[cluster], x, y };
    });
    if (k === store.view.k) {
      labels.append(
        drawn("rect", {
          x: 0,
          y: y - ROW / 2,
          width,
          height: ROW,
          class: "now",
          rx: 8,
        }),
      );
    }
    labels.append(drawn("text", { x: 8, y: y + 4, class: "row" }, String(data.numbers[k])));
    if (shared) drawEdges(edges, shared, above, nodes, data.n, colors);
    nodes.forEach((node) => circles.append(drawNode(store, node, colors)));
    above = nodes;
  });
  svg.replaceChildren(labels, edges, circles);
  shade(store);
}

/**
 * @param {any} group
 * @param {number[][]} shared
 * @param {Node[]} above
 * @param {Node[]} below
 * @param {number} n
 * @param {any} colors
 */
function drawEdges(group, shared, above, below, n, colors) {
  for (const parent of above) {
    for (const child of below) {
      const cases = shared[parent.cluster][child.cluster];
      if (!cases) continue;
      const half = (parent.y + child.y) / 2;
      const d = `M${parent.x},${parent.y}C${parent.x},${half} ${child.x},${half} ${child.x},${child.y}`;
      const share = cases / child.size;
      const edge = drawn("path", {
        d,
        fill: "none",
        stroke: colors.of(child.cluster),
        "stroke-width": Math.max(1, (26 * cases) / n),
        "stroke-opacity": 0.2 + 0.6 * share,
        "data-parent": `${parent.k}:${parent.cluster}`,
        "data-child": `${child.k}:${child.cluster}`,
      });
      edge.append(
        drawn(
          "title",
          {},
          `${counted(cases, "case")}, ${percent(share)} of cluster ${child.cluster}`,
        ),
      );
      group.append(edge);
    }
  }
}

/**
 * @param {Store} store
 * @param {Node} node
 * @param {any} colors
 */
function drawNode(store, node, colors) {
  const { data } = store;
  const { f, t, selected } = store.view;
  const s = data.setting(node.k, f, t);
  const r = Math.max(9, 24 * Math.sqrt(node.size / data.n));
  const words = `cluster ${node.cluster} of ${data.numbers[node.k]}: ${counted(node.size, "case")}`;
  const group = drawn("g", {
    tabindex: 0,
    role: "button",
    "aria-label": words,
    "data-node": `${node.k}:${node.cluster}`,
  });
  group.append(
    drawn("circle", {
      cx: node.x,
      cy: node.y,
      r,
      fill: colors.of(node.cluster),
    }),
  );
  const look = {
    x: node.x,
    y: node.y + 4,
    "text-anchor": "middle",
    fill: colors.inkOn(node.cluster),
  };
  group.append(drawn("text", look, String(node.cluster)));
  if (selected) {
    const inside = data
      .labels(s)
      .reduce((sum, label, i) => sum + (selected[i] && label === node.cluster ? 1 : 0), 0);
    if (inside)
      group.append(
        drawn("text", { x: node.x + r + 3, y: node.y + 4, class: "part" }, String(inside)),
      );
  }
  const light = () => {
    const lit = Uint8Array.from(data.labels(s), (label) => (label === node.cluster ? 1 : 0));
    store.set({ lit });
  };
  const leave = () => {
    hideTip();
    store.set({ lit: null });
  };
  group.addEventListener("pointerenter", (/** @type {PointerEvent} */ event) => {
    light();
    showTip(event.clientX, event.clientY, [words]);
  });
  group.addEventListener("pointerleave", leave);
  group.addEventListener("focus", light);
  group.addEventListener("blur", leave);
  const go = () => store.set({ k: node.k, lit: null });
  group.addEventListener("click", go);
  group.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
    if (event.key === "Enter" || event.key === " ") {
      event.preventDefault();
      go();
    }
  });
  return group;
}

/**
 * Fade the clusters that hold none of the cases that are lit.
 * @param {Store} store
 */
function shade(store) {
  const { data, view } = store;
  const { lit } = view;
  const holding = new Set();
  if (lit) {
    rowsOf(store).forEach((s, k) => {
      data.labels(s).forEach((label, i) => lit[i] && holding.add(`${k}:${label}`));
    });
  }
  const has = (/** @type {string | undefined} */ name) => !lit || holding.has(name);
  for (const node of byId("tree").querySelectorAll("[data-node]")) {
    node.classList.toggle("faded", !has(node.dataset.node));
  }
  for (const edge of byId("tree").querySelectorAll("[data-parent]")) {
    edge.classList.toggle("faded", !(has(edge.dataset.parent) && has(edge.dataset.child)));
  }
}
