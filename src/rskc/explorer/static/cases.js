// The table of the cases.
import { byId, chip, download, element, percent, whole } from "./dom.js";
/** @import { Store } from "./state.js" */

const CASES_AT_A_TIME = 50;
const FILTERS = {
  all: "all cases",
  selected: "selected cases",
  outliers: "outliers",
  trimmed: "trimmed cases",
  wavering: "cases on which half-samples disagree",
  cells: "cases with outlying cells",
  moved: "cases that moved since the pin",
};
const order = new Intl.Collator(undefined, { numeric: true });

/**
 * @typedef {object} Column
 * @property {string} key
 * @property {string} label
 * @property {(i: number) => any} value of a case
 * @property {(i: number) => any} [cell] how it is shown
 * @property {boolean} [now] whether it is the current number of clusters
 */

/**
 * @param {Store} store
 * @param {any} colors
 * @returns {Column[]}
 */
function caseColumns(store, colors) {
  const { data, s } = store;
  const { classes } = data.words;
  const { f, t } = store.view;
  const [flags, agreed] = [data.flags(s), data.agreed(s)];
  const numbers = data.numbers.map((number, k) => {
    const labels = data.labels(data.setting(k, f, t));
    const cell = (/** @type {number} */ i) => chip(colors, labels[i]);
    const now = k === store.view.k;
    return {
      key: `cluster_of_${number}`,
      label: `K=${number}`,
      value: (/** @type {number} */ i) => labels[i],
      cell,
      now,
    };
  });
  const columns = [
    {
      key: "case",
      label: "Case",
      value: (/** @type {number} */ i) => data.names[i],
    },
    classes && {
      key: "class",
      label: "Known class",
      value: (/** @type {number} */ i) => classes.names[classes.codes[i]],
    },
    ...numbers,
    {
      key: "outlier",
      label: "Outlier",
      value: (/** @type {number} */ i) => (flags[i] & 2 ? "yes" : ""),
    },
    {
      key: "trimmed",
      label: "Trimmed",
      value: (/** @type {number} */ i) => (flags[i] & 1 ? "yes" : ""),
    },
    data.words.cells && {
      key: "outlying_cells",
      label: "Outlying cells",
      value: (/** @type {number} */ i) => data.outlying.ofCases[i],
    },
    data.halves && {
      key: "agreement",
      label: "Agreement",
      value: (/** @type {number} */ i) => agreed[i],
      cell: (/** @type {number} */ i) => percent(agreed[i]),
    },
  ];
  return columns.filter(Boolean);
}

/** The table, how it is sorted and how far it is shown. */
class Cases {
  /** @param {Store} store @param {any} colors */
  constructor(store, colors) {
    this.store = store;
    this.colors = colors;
    this.shown = CASES_AT_A_TIME;
    this.sorted = { key: "", sign: 1 };
    const filter = byId("case-filter");
    for (const [value, word] of Object.entries(FILTERS)) {
      if (value === "cells" && !store.data.words.cells) continue;
      filter.append(element("option", { value }, word));
    }
    const again = () => {
      this.shown = CASES_AT_A_TIME;
      this.show();
    };
    filter.addEventListener("change", again);
    byId("case-search").addEventListener("input", again);
    byId("case-more").addEventListener("click", () => {
      this.shown += 4 * CASES_AT_A_TIME;
      this.show();
    });
    byId("case-download").addEventListener("click", () => this.save());
    this.show();
  }

  /** @param {Column[]} columns @returns {number[]} cases */
  rows(columns) {
    const { data, s, view, pinned } = this.store;
    const wanted = byId("case-search").value.trim().toLowerCase();
    const [flags, agreed, labels] = [data.flags(s), data.agreed(s), data.labels(s)];
    const before = pinned === null ? null : data.labels(pinned);
    const tests = /** @type {Record<string, (i: number) => any>} */ ({
      all: () => true,
      selected: (i) => view.selected?.[i],
      outliers: (i) => flags[i] & 2,
      trimmed: (i) => flags[i] & 1,
      wavering: (i) => agreed[i] < 1,
      cells: (i) => data.outlying.ofCases[i],
      moved: (i) => before && before[i] !== labels[i],
    });
    const test = tests[byId("case-filter").value] ?? tests.all;
    const texts = columns.filter(({ key }) => key === "case" || key === "class");
    const rows = [];
    for (let i = 0; i < data.n; i++) {
      if (!test(i)) continue;
      if (wanted && !texts.some(({ value }) => String(value(i)).toLowerCase().includes(wanted)))
        continue;
      rows.push(i);
    }
    const by = columns.find(({ key }) => key === this.sorted.key);
    if (!by) return rows;
    const values = new Map(rows.map((i) => [i, by.value(i)]));
    const compare = (/** @type {any} */ a, /** @type {any} */ b) =>
      typeof a === "number" ? a - b : order.compare(String(a), String(b));
    return rows.sort((a, b) => this.sorted.sign * compare(values.get(a), values.get(b)) || a - b);
  }

  show() {
    const columns = caseColumns(this.store, this.colors);
    const rows = this.rows(columns);
    const table = byId("cases");
    table
      .querySelector("thead")
      .replaceChildren(element("tr", {}, ...columns.map((column) => this.head(column))));
    const body = rows.slice(0, this.shown).map((i) => {
      const cells = columns.map(({ value, cell, now }, c) => {
        const content = cell ? cell(i) : element("bdi", {}, String(value(i)));
        return element(
          c ? "td" : "th",
          {
            scope: c ? undefined : "row",
            class: now ? "now" : undefined,
          },
          content,
        );
      });
      return element("tr", {}, ...cells);
    });
    table.querySelector("tbody").replaceChildren(...body);
    byId("case-more").hidden = rows.length <= this.shown;
    byId("case-status").textContent = rows.length
      ? `${whole(Math.min(this.shown, rows.length))} of ${whole(rows.length)} shown.`
      : "No case matches.";
  }

  /** @param {Column} column */
  head({ key, label, now }) {
    const mine = this.sorted.key === key;
    const sort = mine ? (this.sorted.sign > 0 ? "ascending" : "descending") : "none";
    const button = element("button", { type: "button" }, label);
    button.addEventListener("click", () => {
      this.sorted = { key, sign: mine ? -this.sorted.sign : 1 };
      this.show();
      byId("cases").querySelector(`[data-key="${key}"] button`)?.focus();
    });
    return element(
      "th",
      {
        scope: "col",
        "aria-sort": sort,
        "data-key": key,
        class: now ? "now" : undefined,
      },
      button,
    );
  }

  save() {
    const columns = caseColumns(this.store, this.colors);
    const rows = this.rows(columns).map((i) => columns.map(({ value }) => value(i)));
    download("cases.csv", [columns.map(({ key }) => key), ...rows]);
  }
}

/**
 * @param {Store} store
 * @param {any} colors
 */
export function makeCases(store, colors) {
  const cases = new Cases(store, colors);
  let brushed = false;
  store.listen((changed) => {
    if (changed.has("selected")) {
      const filter = byId("case-filter");
      if (store.view.selected) filter.value = "selected";
      else if (brushed && filter.value === "selected") filter.value = "all";
      brushed = Boolean(store.view.selected);
    }
    if (["setting", "selected", "pin", "colors"].some((name) => changed.has(name))) cases.show();
  });
}
