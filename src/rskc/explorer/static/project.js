// Principal components of the cases, by the weights of a setting, turned to lie as another plane.
/** @import { Data } from "./data.js" */

const ROUNDS = 24;
const MOST_FEATURES = 400; // with the largest weights

/**
 * @typedef {object} Projection
 * @property {Float64Array} positions x and y of each case in turn, from 0 to 1
 * @property {number} used features
 * @property {number} beyond cases outside of the frame, put on its edge
 */

/**
 * @param {Data} data
 * @param {number} s setting
 * @returns {Projection}
 */
export function project(data, s) {
  return data.kept(`plane ${s}`, () => {
    const { n } = data;
    const out = Uint8Array.from(data.flags(s), (flag) => (flag ? 1 : 0));
    const { columns, used } = columnsOf(data, s, out);
    const first = component(columns, out, n, null);
    const second = component(columns, out, n, first);
    const positions = new Float64Array(2 * n);
    for (let i = 0; i < n; i++) {
      positions[2 * i] = first.scores[i];
      positions[2 * i + 1] = second.scores[i];
    }
    turn(positions, data.plane, out, n);
    return {
      positions,
      used,
      beyond: frame(positions, out, n),
    };
  });
}

/**
 * Center the features at the means of cases that are no outliers, times the roots of the weights.
 * @param {Data} data
 * @param {number} s
 * @param {Uint8Array} out
 */
function columnsOf(data, s, out) {
  const { features, weights } = data.weights(s);
  const columns = /** @type {Float64Array[]} */ ([]);
  let used = 0;
  for (let i = 0; i < features.length && columns.length < MOST_FEATURES; i++) {
    const coded = data.coded(features[i]);
    used += coded.length ? 1 : 0;
    for (const values of coded) {
      let [sum, known] = [0, 0];
      for (let c = 0; c < data.n; c++) {
        if (out[c] || Number.isNaN(values[c])) continue;
        sum += values[c];
        known++;
      }
      const mean = known ? sum / known : 0;
      const root = Math.sqrt(weights[i]);
      columns.push(values.map((value) => (Number.isNaN(value) ? 0 : root * (value - mean))));
    }
  }
  return { columns, used };
}

/**
 * Find a component by repeated multiplication.
 * @param {Float64Array[]} columns
 * @param {Uint8Array} out
 * @param {number} n
 * @param {{ axis: Float64Array } | null} before to which it is orthogonal
 */
function component(columns, out, n, before) {
  const axis = Float64Array.from(columns, (_, j) => 1 + ((j * 7919) % 13) / 13);
  let scores = new Float64Array(n);
  for (let round = 0; round <= ROUNDS; round++) {
    if (before) remove(axis, before.axis);
    normalize(axis);
    scores = new Float64Array(n);
    columns.forEach((column, j) => {
      for (let i = 0; i < n; i++) scores[i] += axis[j] * column[i];
    });
    if (round === ROUNDS) break;
    columns.forEach((column, j) => {
      let sum = 0;
      for (let i = 0; i < n; i++) if (!out[i]) sum += column[i] * scores[i];
      axis[j] = sum;
    });
  }
  return { axis, scores };
}

/** @param {Float64Array} axis @param {Float64Array} other */
function remove(axis, other) {
  let product = 0;
  for (let j = 0; j < axis.length; j++) product += axis[j] * other[j];
  for (let j = 0; j < axis.length; j++) axis[j] -= product * other[j];
}

/** @param {Float64Array} axis */
function normalize(axis) {
  const size = Math.hypot(...axis) || 1;
  for (let j = 0; j < axis.length; j++) axis[j] /= size;
}

/**
 * Rotate and reflect positions so that cases are near to where they are in another plane.
 * @param {Float64Array} positions
 * @param {Float64Array} other
 * @param {Uint8Array} out
 * @param {number} n
 */
function turn(positions, other, out, n) {
  const m = [0, 0, 0, 0];
  const mean = [0, 0];
  let kept = 0;
  for (let i = 0; i < n; i++) {
    if (out[i]) continue;
    kept++;
    mean[0] += other[2 * i];
    mean[1] += other[2 * i + 1];
  }
  for (let i = 0; i < n; i++) {
    if (out[i]) continue;
    const [u, v] = [other[2 * i] - mean[0] / kept, other[2 * i + 1] - mean[1] / kept];
    m[0] += positions[2 * i] * u;
    m[1] += positions[2 * i] * v;
    m[2] += positions[2 * i + 1] * u;
    m[3] += positions[2 * i + 1] * v;
  }
  // The best rotation, and the best reflection; the better of the two.
  const turned = Math.atan2(m[1] - m[2], m[0] + m[3]);
  const gain = Math.hypot(m[0] + m[3], m[1] - m[2]);
  const flipped = Math.atan2(m[1] + m[2], m[0] - m[3]);
  const [angle, sign] = gain >= Math.hypot(m[0] - m[3], m[1] + m[2]) ? [turned, 1] : [flipped, -1];
  const [c, d] = [Math.cos(angle), Math.sin(angle)];
  for (let i = 0; i < n; i++) {
    const [x, y] = [positions[2 * i], sign * positions[2 * i + 1]];
    positions[2 * i] = c * x - d * y;
    positions[2 * i + 1] = d * x + c * y;
  }
}

/**
 * Bring positions to 0..1, by the cases that are no outliers and some room around them.
 * @param {Float64Array} positions
 * @param {Uint8Array} out
 * @param {number} n
 * @returns {number} cases beyond it
 */
function frame(positions, out, n) {
  const outside = new Uint8Array(n);
  for (const axis of [0, 1]) {
    let [low, high] = [Infinity, -Infinity];
    for (let i = 0; i < n; i++) {
      if (out[i]) continue;
      low = Math.min(low, positions[2 * i + axis]);
      high = Math.max(high, positions[2 * i + axis]);
    }
    const room = 0.15 * (high - low) || 1;
    for (let i = 0; i < n; i++) {
      const place = (positions[2 * i + axis] - low + room) / (high - low + 2 * room);
      if (place < 0 || place > 1) outside[i] = 1;
      positions[2 * i + axis] = Math.max(0, Math.min(1, place));
    }
  }
  return outside.reduce((sum, value) => sum + value, 0);
}
