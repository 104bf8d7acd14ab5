// The values of one feature, cluster by cluster.
import { byId, counted, fitted, short } from "./dom.js";
import { mark, middle } from "./plane.js";
/** @import { Store } from "./state.js" */

const [LEAST_ROW, MOST_ROW, LABELS_WIDTH, BOTTOM] = [46, 110, 34, 26];
let row = LEAST_ROW; // higher where there is room

/**
 * @param {Store} store
 * @param {any} colors
 */
export function makeValues(store, colors) {
  const show = () => drawValues(store, colors);
  store.listen((changed) => {
    const mine = ["setting", "feature", "selected", "lit", "colors"];
    if (mine.some((name) => changed.has(name))) show();
  });
  new ResizeObserver(show).observe(byId("values").parentElement);
}

/** @param {number[]} sorted @param {number} share */
function quantile(sorted, share) {
  const place = share * (sorted.length - 1);
  const low = Math.floor(place);
  return sorted[low] + ((sorted[low + 1] ?? sorted[low]) - sorted[low]) * (place - low);
}

/**
 * @param {Store} store
 * @param {any} colors
 */
function drawValues(store, colors) {
  const { data, s, marked } = store;
  const j = store.view.feature ?? data.weights(s).features[0];
  const values = j === undefined ? null : data.values(j);
  const K = data.numberOf(s);
  const { pen, width, height: space } = fitted(byId("values"), K * LEAST_ROW + BOTTOM);
  row = Math.min(MOST_ROW, (space - BOTTOM) / K);
  const height = K * row + BOTTOM;
  pen.clearRect(0, 0, width, space);
  byId("value-name").textContent = j === undefined ? "" : data.features[j];
  const note = byId("value-note");
  if (!values) {
    note.textContent = `The page holds the values of the ${data.words.shown.length} features with the largest weights; this is not one of them.`;
    return;
  }
  const labels = data.labels(s);
  const flags = data.flags(s);
  const groups = Array.from({ length: K }, () => /** @type {number[]} */ ([]));
  values.forEach((value, i) => Number.isNaN(value) || groups[labels[i]].push(value));
  const all = groups.flat().sort((a, b) => a - b);
  if (!all.length) {
    note.textContent = "No value is observed.";
    return;
  }
  const names = data.categories(j);
  const scatter = (/** @type {number} */ i, /** @type {number} */ times) =>
    (((i * times) >>> 8) % 1000) / 1000 - 0.5;
  const down = (/** @type {number} */ i) =>
    labels[i] * row + row / 2 + scatter(i, 2654435761) * (row - 18);
  const radius = data.n > 2000 ? 1.6 : 2.6;
  const outlying = data.outlyingCases(j);
  const dot = (/** @type {number} */ i, /** @type {number} */ across) => {
    pen.globalAlpha = !marked || marked[i] ? 0.7 : 0.08;
    if (outlying[i]) diamond(pen, across, down(i), colors.ink);
    mark(pen, across, down(i), radius, colors.of(labels[i]), flags[i] & 2);
  };
  note.textContent = `Weight ${short(data.weightOf(s).get(j) ?? 0)} here.`;
  const n = outlying.reduce((sum, one) => sum + one, 0);
  if (n) note.textContent += ` ${counted(n, "outlying cell")} of the automatic fit, shown as diamonds.`;
  if (names) {
    const room = (width - LABELS_WIDTH - 12) / names.length;
    const at = (/** @type {number} */ place) => LABELS_WIDTH + 4 + (place + 0.5) * room;
    values.forEach((value, i) => {
      // Kept apart from the shares, which stand on the right.
      if (!Number.isNaN(value)) dot(i, at(value) + (scatter(i, 2246822519) - 0.2) * room * 0.5);
    });
    pen.globalAlpha = 1;
    drawCategories(pen, colors, names, groups, at, room, height);
    groups.forEach((_, k) => drawNumber(pen, colors, k));
    return;
  }
  // An outlying cell does not squeeze all others: beyond the frame it stands on its edge.
  const [q1, q3] = [quantile(all, 0.05), quantile(all, 0.95)];
  const reach = 1.5 * (q3 - q1) || 1;
  const [low, high] = [Math.max(all[0], q1 - reach), Math.min(all[all.length - 1], q3 + reach)];
  const span = high - low || 1;
  const x = (/** @type {number} */ value) =>
    LABELS_WIDTH + 8 + Math.max(0, Math.min(1, (value - low) / span)) * (width - LABELS_WIDTH - 20);
  drawAxis(pen, colors, x, low, high, width, height);
  values.forEach((value, i) => {
    if (!Number.isNaN(value)) dot(i, x(value));
  });
  pen.globalAlpha = 1;
  groups.forEach((group, k) => drawBox(pen, colors, group, k, x));
  const beyond = all.filter((value) => value < low || value > high).length;
  if (beyond) note.textContent += ` ${counted(beyond, "case")} beyond the frame, drawn on its edge.`;
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {any} colors
 * @param {(value: number) => number} x
 * @param {number} low
 * @param {number} high
 * @param {number} width
 * @param {number} height
 */
function drawAxis(pen, colors, x, low, high, width, height) {
  const step = 10 ** Math.floor(Math.log10((high - low || 1) / 3));
  const wide = [1, 2, 5, 10].find((factor) => (high - low) / (step * factor) <= 6) ?? 10;
  pen.font = "11px system-ui, sans-serif";
  pen.textAlign = "center";
  pen.fillStyle = colors.muted;
  pen.strokeStyle = colors.line;
  pen.lineWidth = 1;
  const unit = step * wide;
  for (let value = Math.ceil(low / unit) * unit; value <= high + unit / 1e6; value += unit) {
    pen.globalAlpha = 0.5;
    pen.beginPath();
    pen.moveTo(x(value), 4);
    pen.lineTo(x(value), height - BOTTOM + 4);
    pen.stroke();
    pen.globalAlpha = 1;
    pen.fillText(short(Number(value.toPrecision(6))), x(value), height - 8);
  }
  void width;
}

/**
 * The names of categories, and the share that each has of a cluster.
 * @param {CanvasRenderingContext2D} pen
 * @param {any} colors
 * @param {string[]} names
 * @param {number[][]} groups places of the cases of each cluster
 * @param {(place: number) => number} at
 * @param {number} room
 * @param {number} height
 */
function drawCategories(pen, colors, names, groups, at, room, height) {
  pen.textBaseline = "alphabetic";
  pen.lineWidth = 1;
  names.forEach((name, place) => {
    pen.font = "11px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.fillStyle = colors.muted;
    pen.fillText(shortened(pen, name, room - 4), at(place), height - 8);
    pen.textAlign = "right";
    pen.font = "600 11px system-ui, sans-serif";
    pen.fillStyle = colors.ink;
    groups.forEach((group, k) => {
      const count = group.filter((value) => value === place).length;
      const y = k * row + row / 2 + 4;
      const share = `${Math.round((100 * count) / group.length)}%`;
      if (count) pen.fillText(share, at(place) + room / 2 - 2, y);
    });
    if (!place) return;
    pen.strokeStyle = colors.line;
    pen.beginPath();
    pen.moveTo(at(place) - room / 2, 4);
    pen.lineTo(at(place) - room / 2, height - BOTTOM + 4);
    pen.stroke();
  });
}

/** @param {CanvasRenderingContext2D} pen @param {string} name @param {number} room */
function shortened(pen, name, room) {
  let text = name;
  while (text.length > 1 && pen.measureText(text).width > room)
    text = `${text.replace(/…$/, "").slice(0, -1)}…`;
  return text;
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {any} colors
 * @param {number[]} group
 * @param {number} k
 * @param {(value: number) => number} x
 */
function drawBox(pen, colors, group, k, x) {
  const y = k * row + row / 2;
  drawNumber(pen, colors, k);
  if (!group.length) return;
  const sorted = group.slice().sort((a, b) => a - b);
  const [first, last] = [x(quantile(sorted, 0.25)), x(quantile(sorted, 0.75))];
  const half = x(middle(sorted));
  pen.strokeStyle = colors.ink;
  pen.lineWidth = 1.2;
  pen.strokeRect(first, y - 11, Math.max(1, last - first), 22);
  pen.lineWidth = 3;
  pen.beginPath();
  pen.moveTo(half, y - 13);
  pen.lineTo(half, y + 13);
  pen.stroke();
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} x
 * @param {number} y
 * @param {string} color
 */
function diamond(pen, x, y, color) {
  pen.strokeStyle = color;
  pen.lineWidth = 1.2;
  pen.beginPath();
  pen.moveTo(x - 6, y);
  pen.lineTo(x, y - 6);
  pen.lineTo(x + 6, y);
  pen.lineTo(x, y + 6);
  pen.closePath();
  pen.stroke();
}

/** @param {CanvasRenderingContext2D} pen @param {any} colors @param {number} k */
function drawNumber(pen, colors, k) {
  const y = k * row + row / 2;
  pen.textAlign = "center";
  pen.font = "600 12px system-ui, sans-serif";
  pen.beginPath();
  pen.arc(16, y, 11, 0, 7);
  pen.fillStyle = colors.of(k);
  pen.fill();
  pen.fillStyle = colors.inkOn(k);
  pen.textBaseline = "middle";
  pen.fillText(String(k), 16, y + 0.5);
  pen.textBaseline = "alphabetic";
}
