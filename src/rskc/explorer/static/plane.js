// The cases in a plane: drawn on a canvas, moving smoothly, to be pointed at and brushed.
import {
  byId,
  chip,
  counted,
  element,
  fitted,
  hideTip,
  parts,
  percent,
  radios,
  showTip,
} from "./dom.js";
import { project } from "./project.js";
import { PLANES } from "./state.js";
/** @import { Store } from "./state.js" */

const LASTS = 350; // milliseconds of a transition
const MARGIN = 14;
const NEAR = 14; // pixels from a point at which it is named

/** The points, where they are and where they go. */
class Plane {
  /**
   * @param {Store} store
   * @param {any} colors
   */
  constructor(store, colors) {
    this.store = store;
    this.colors = colors;
    this.canvas = byId("plane");
    const { n } = store.data;
    this.size = n > 2000 ? 2.6 : n > 600 ? 3.6 : 5;
    // x, y, radius, red, green, blue and opacity of each point: from, to and now.
    this.from = new Float32Array(7 * n);
    this.to = new Float32Array(7 * n);
    this.now = new Float32Array(7 * n);
    /** @type {number[] | null} */
    this.brush = null;
    this.frame = 0;
    this.width = 1;
    this.height = 1;
    this.aim();
    this.now.set(this.to);
    this.listen();
    this.draw();
  }

  /** Set where the points go. */
  aim() {
    const { data, s, view, marked } = this.store;
    const [labels, agreed] = [data.labels(s), data.agreed(s)];
    const projection = view.plane === "weights" ? project(data, s) : null;
    const places = projection?.positions ?? data.plane;
    const palette = this.colors.clusters.map(parts);
    for (let i = 0; i < data.n; i++) {
      const color = palette[labels[i] % palette.length];
      const firm = Number.isNaN(agreed[i]) ? 1 : agreed[i];
      const stands = !marked || marked[i];
      const radius = this.size * (0.45 + 0.55 * firm);
      this.to.set([places[2 * i], places[2 * i + 1], radius, ...color, stands ? 0.85 : 0.1], 7 * i);
    }
    const beyond = projection?.beyond ?? data.words.n_beyond;
    const used = projection ? ` ${counted(projection.used, "feature")} place the points.` : "";
    byId("plane-note").textContent =
      (beyond ? `${counted(beyond, "case")} beyond the frame, drawn on its edge.` : "") + used;
  }

  /** Move to where the points go. */
  move() {
    cancelAnimationFrame(this.frame);
    this.aim();
    if (matchMedia("(prefers-reduced-motion: reduce)").matches || document.hidden) {
      this.now.set(this.to);
      this.draw();
      return;
    }
    this.from.set(this.now);
    const start = performance.now();
    const step = (/** @type {number} */ time) => {
      const share = Math.max(0, Math.min(1, (time - start) / LASTS));
      const eased = share < 0.5 ? 2 * share * share : 1 - 2 * (1 - share) * (1 - share);
      const { from, to, now } = this;
      for (let i = 0; i < now.length; i++) now[i] = from[i] + (to[i] - from[i]) * eased;
      this.draw();
      if (share < 1) this.frame = requestAnimationFrame(step);
    };
    this.frame = requestAnimationFrame(step);
  }

  draw() {
    const width = this.canvas.parentElement.clientWidth;
    const { pen, height } = fitted(this.canvas, Math.max(280, Math.min(760, 0.95 * width)));
    this.width = width;
    this.height = height;
    pen.clearRect(0, 0, width, height);
    const { data, s } = this.store;
    const flags = data.flags(s);
    const { now } = this;
    for (let i = 0; i < data.n; i++) {
      const o = 7 * i;
      const [x, y] = this.at(now[o], now[o + 1]);
      pen.globalAlpha = now[o + 6];
      const color = `rgb(${now[o + 3] | 0},${now[o + 4] | 0},${now[o + 5] | 0})`;
      mark(pen, x, y, now[o + 2], color, flags[i]);
    }
    pen.globalAlpha = 1;
    this.drawNumbers(pen);
    if (this.brush) {
      const [x0, y0, x1, y1] = this.brush;
      pen.strokeStyle = this.colors.accent;
      pen.lineWidth = 1.5;
      pen.setLineDash([5, 4]);
      pen.strokeRect(Math.min(x0, x1), Math.min(y0, y1), Math.abs(x1 - x0), Math.abs(y1 - y0));
      pen.setLineDash([]);
    }
  }

  /** @param {CanvasRenderingContext2D} pen */
  drawNumbers(pen) {
    const { data, s } = this.store;
    const [labels, flags] = [data.labels(s), data.flags(s)];
    pen.font = "600 12px system-ui, sans-serif";
    pen.textAlign = "center";
    pen.textBaseline = "middle";
    for (let k = 0; k < data.numberOf(s); k++) {
      /** @type {number[][]} */
      const [xs, ys] = [[], []];
      for (let i = 0; i < data.n; i++) {
        if (labels[i] !== k || flags[i]) continue;
        xs.push(this.now[7 * i]);
        ys.push(this.now[7 * i + 1]);
      }
      if (!xs.length) continue;
      const [x, y] = this.at(middle(xs), middle(ys));
      pen.beginPath();
      pen.arc(x, y, 11, 0, 7);
      pen.fillStyle = this.colors.paper;
      pen.fill();
      pen.lineWidth = 2;
      pen.strokeStyle = this.colors.of(k);
      pen.stroke();
      pen.fillStyle = this.colors.ink;
      pen.fillText(String(k), x, y + 0.5);
    }
  }

  /** @param {number} x @param {number} y @returns {[number, number]} pixels */
  at(x, y) {
    const [width, height] = [this.width - 2 * MARGIN, this.height - 2 * MARGIN];
    return [MARGIN + x * width, MARGIN + (1 - y) * height];
  }

  listen() {
    const place = (/** @type {PointerEvent} */ event) => {
      const box = this.canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    this.canvas.addEventListener("pointerdown", (/** @type {PointerEvent} */ event) => {
      if (event.button) return;
      const [x, y] = place(event);
      this.brush = [x, y, x, y];
      this.canvas.setPointerCapture(event.pointerId);
    });
    this.canvas.addEventListener("pointermove", (/** @type {PointerEvent} */ event) => {
      const [x, y] = place(event);
      if (!this.brush) {
        this.point(x, y, event);
        return;
      }
      [this.brush[2], this.brush[3]] = [x, y];
      hideTip();
      this.draw();
    });
    const end = () => {
      const { brush } = this;
      this.brush = null;
      if (!brush) return;
      const [x0, y0, x1, y1] = brush;
      const dragged = Math.abs(x1 - x0) + Math.abs(y1 - y0) > 6;
      this.store.set({
        selected: dragged ? this.within(x0, y0, x1, y1) : null,
      });
      this.draw();
    };
    this.canvas.addEventListener("pointerup", end);
    this.canvas.addEventListener("pointercancel", () => {
      this.brush = null;
      this.draw();
    });
    this.canvas.addEventListener("pointerleave", hideTip);
    this.canvas.addEventListener("keydown", (/** @type {KeyboardEvent} */ event) => {
      if (event.key === "Escape") this.store.set({ selected: null });
    });
  }

  /**
   * @param {number} x0
   * @param {number} y0
   * @param {number} x1
   * @param {number} y1
   * @returns {Uint8Array | null} the cases in a rectangle
   */
  within(x0, y0, x1, y1) {
    const [left, right] = x0 < x1 ? [x0, x1] : [x1, x0];
    const [top, bottom] = y0 < y1 ? [y0, y1] : [y1, y0];
    const inside = new Uint8Array(this.store.data.n);
    for (let i = 0; i < inside.length; i++) {
      const [x, y] = this.at(this.to[7 * i], this.to[7 * i + 1]);
      inside[i] = x >= left && x <= right && y >= top && y <= bottom ? 1 : 0;
    }
    return inside.some((one) => one) ? inside : null;
  }

  /** @param {number} x @param {number} y @param {PointerEvent} event */
  point(x, y, event) {
    const { data, s } = this.store;
    let [nearest, least] = [-1, NEAR * NEAR];
    for (let i = 0; i < data.n; i++) {
      const [px, py] = this.at(this.to[7 * i], this.to[7 * i + 1]);
      const distance = (px - x) ** 2 + (py - y) ** 2;
      if (distance < least) [nearest, least] = [i, distance];
    }
    if (nearest < 0) {
      hideTip();
      return;
    }
    showTip(event.clientX, event.clientY, wordsOn(data, s, nearest));
  }
}

/**
 * @param {any} data
 * @param {number} s
 * @param {number} i
 * @returns {string[]}
 */
function wordsOn(data, s, i) {
  const flag = data.flags(s)[i];
  const agreed = data.agreed(s)[i];
  const { classes } = data.words;
  return [
    data.names[i],
    `cluster ${data.labels(s)[i]}`,
    classes ? `known class: ${classes.names[classes.codes[i]]}` : "",
    flag & 2 ? "outlier" : "",
    flag & 1 ? "trimmed" : "",
    Number.isNaN(agreed) ? "" : `${percent(agreed)} of the half-samples agree`,
  ].filter(Boolean);
}

/**
 * @param {CanvasRenderingContext2D} pen
 * @param {number} x
 * @param {number} y
 * @param {number} r
 * @param {string} color
 * @param {number} flag
 */
export function mark(pen, x, y, r, color, flag) {
  pen.beginPath();
  if (flag & 2) {
    const d = Math.max(3.4, r);
    pen.moveTo(x - d, y - d);
    pen.lineTo(x + d, y + d);
    pen.moveTo(x - d, y + d);
    pen.lineTo(x + d, y - d);
  } else {
    pen.arc(x, y, flag ? Math.max(2.4, r) : r, 0, 7);
  }
  if (!flag) {
    pen.fillStyle = color;
    pen.fill();
    return;
  }
  pen.lineWidth = 1.7;
  pen.strokeStyle = color;
  pen.stroke();
}

/** @param {number[]} values */
export function middle(values) {
  values.sort((a, b) => a - b);
  const half = values.length >> 1;
  return values.length % 2 ? values[half] : (values[half - 1] + values[half]) / 2;
}

/**
 * @param {Store} store
 * @param {any} colors
 */
export function makePlane(store, colors) {
  const plane = new Plane(store, colors);
  const choose = (/** @type {string} */ value) => store.set({ plane: value });
  const showChoice = radios(byId("plane-choice"), "plane", PLANES, () => store.view.plane, choose);
  const showKey = () => {
    const sizes = store.data.words.sizes[store.s];
    const entry = (/** @type {number} */ size, /** @type {number} */ k) =>
      element("li", {}, chip(colors, k), ` ${counted(size, "case")}`);
    byId("key").replaceChildren(...sizes.map(entry));
  };
  store.listen((changed) => {
    showChoice();
    if (changed.has("setting")) showKey();
    if (["setting", "plane", "selected", "lit", "colors"].some((name) => changed.has(name)))
      plane.move();
    if (changed.has("colors")) showKey();
  });
  new ResizeObserver(() => plane.draw()).observe(plane.canvas.parentElement);
  showKey();
  return plane;
}
