// Elements, numbers in words, colors, tips and files.
/** @import { Data } from "./data.js" */

const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/; // what a spreadsheet would compute
const SVG = "http://www.w3.org/2000/svg";

/**
 * @param {string} id
 * @returns {any}
 */
export function byId(id) {
  return document.getElementById(id);
}

/**
 * Make an element; names of others are text and never HTML.
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== undefined && value !== null) made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

/**
 * @param {string} name
 * @param {Record<string, any>} [attributes]
 * @param {...(Node | string)} children
 * @returns {any}
 */
export function drawn(name, attributes = {}, ...children) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** @param {number} value */
export function whole(value) {
  return value.toLocaleString("en-US");
}

/** @param {number} n @param {string} one */
export function counted(n, one) {
  return `${whole(n)} ${one}${n === 1 ? "" : "s"}`;
}

/** @param {number} share */
export function percent(share) {
  return `${Number((100 * share).toPrecision(3))}%`;
}

/** @param {number | null | undefined} value */
export function short(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "–";
  if (Number.isInteger(value)) return whole(value);
  const size = Math.abs(value);
  return size >= 1e-3 && size < 1e6 ? String(Number(value.toPrecision(3))) : value.toExponential(1);
}

/** Colors of clusters and of the paper, as the scheme of light has them. */
export class Colors {
  /** @param {Data} data */
  constructor(data) {
    this.data = data;
    this.update();
  }

  update() {
    const style = getComputedStyle(document.documentElement);
    const get = (/** @type {string} */ name) => style.getPropertyValue(name).trim();
    this.paper = get("--paper");
    this.ink = get("--ink");
    this.muted = get("--muted");
    this.line = get("--line");
    this.accent = get("--accent");
    this.scheme = get("--scheme");
    this.clusters = this.scheme === "dark" ? this.data.words.dark : this.data.words.colors;
  }

  /** @param {number} cluster @returns {string} */
  of(cluster) {
    return this.clusters[cluster % this.clusters.length];
  }

  /** @param {number} cluster @returns {string} black or white, whichever is read on its color */
  inkOn(cluster) {
    return inkOn(...parts(this.of(cluster)));
  }
}

/** @param {string} color "#rrggbb" @returns {[number, number, number]} */
export function parts(color) {
  const number = parseInt(color.slice(1), 16);
  return [number >> 16, (number >> 8) & 255, number & 255];
}

/**
 * Black or white, whichever has more contrast (WCAG): at least 4.58 on any color.
 * @param {number} red @param {number} green @param {number} blue
 */
export function inkOn(red, green, blue) {
  const [r, g, b] = [red, green, blue].map((part) => {
    const share = part / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000000" : "#ffffff";
}

/**
 * @param {Colors} colors
 * @param {number} cluster
 */
export function chip(colors, cluster) {
  const style = `background:${colors.of(cluster)};color:${colors.inkOn(cluster)}`;
  return element("span", { class: "chip", style }, String(cluster));
}

/**
 * @param {number} x
 * @param {number} y
 * @param {string[]} lines the first is the name
 */
export function showTip(x, y, lines) {
  const tip = byId("tip");
  tip.replaceChildren(element("strong", {}, element("bdi", {}, lines[0])));
  for (const line of lines.slice(1)) tip.append(element("div", {}, element("bdi", {}, line)));
  tip.hidden = false;
  const { width, height } = tip.getBoundingClientRect();
  const left = Math.max(4, Math.min(x + 14, innerWidth - width - 8));
  tip.style.left = `${left}px`;
  tip.style.top = `${y + 16 + height > innerHeight ? Math.max(4, y - height - 12) : y + 16}px`;
}

export function hideTip() {
  byId("tip").hidden = true;
}

/** @param {any} value */
function quoted(value) {
  if (value === null || value === undefined || Number.isNaN(value)) return "";
  if (typeof value === "number") return String(Number(value.toPrecision(6)));
  const safe = FORMULA.test(value) ? `'${value}` : String(value);
  return /[",\r\n]/.test(safe) ? `"${safe.replaceAll('"', '""')}"` : safe;
}

/**
 * Save rows as a file that spreadsheets read.
 * @param {string} name
 * @param {any[][]} rows
 */
export function download(name, rows) {
  const text = rows.map((row) => row.map(quoted).join(",")).join("\r\n") + "\r\n";
  // The mark in front tells spreadsheets that this is UTF-8.
  const address = URL.createObjectURL(
    new Blob(["\uFEFF", text], { type: "text/csv;charset=utf-8" }),
  );
  const link = element("a", { href: address, download: name });
  document.body.append(link);
  link.click();
  link.remove();
  setTimeout(() => URL.revokeObjectURL(address), 10000);
}

/**
 * Offer a choice among a few words.
 * @param {any} fieldset
 * @param {string} name
 * @param {Record<string, string>} words
 * @param {() => string} chosen
 * @param {(value: string) => void} choose
 * @returns {() => void} shows what is chosen
 */
export function radios(fieldset, name, words, chosen, choose) {
  const inputs = Object.entries(words).map(([value, word]) => {
    const input = element("input", { type: "radio", name, value });
    input.addEventListener("change", () => choose(value));
    fieldset.append(element("label", {}, input, word));
    return input;
  });
  const show = () => inputs.forEach((input) => (input.checked = input.value === chosen()));
  show();
  return show;
}

/**
 * Fit a canvas to its place, in the pixels of the screen.
 * @param {any} canvas
 * @param {number} least height; a place that is higher is filled
 * @returns {{ pen: CanvasRenderingContext2D, width: number, height: number }}
 */
export function fitted(canvas, least) {
  const place = canvas.parentElement;
  place.style.minHeight = `${Math.round(least)}px`;
  const [width, height] = [place.clientWidth, place.clientHeight];
  const ratio = window.devicePixelRatio || 1;
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  return { pen, width, height };
}
