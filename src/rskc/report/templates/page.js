// Draws the charts, and makes the tables sort, search and download. No network, no eval.
(function () {
  "use strict";

  const AT_A_TIME = 200;
  const LONGEST_NAME = 80;
  const FORMULA = /^[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20]/;
  const compareText = new Intl.Collator(undefined, { numeric: true, sensitivity: "base" }).compare;

  function read(id) {
    return JSON.parse(document.getElementById(id).textContent);
  }

  function element(name, text, attributes) {
    const made = document.createElement(name);
    if (text !== undefined) made.textContent = text;
    for (const [key, value] of Object.entries(attributes || {})) made.setAttribute(key, value);
    return made;
  }

  // Charts

  const config = {
    background: null,
    aria: false,
    font: "system-ui, sans-serif",
    view: { stroke: null },
    axis: {
      labelColor: "var(--ink)", titleColor: "var(--ink)", gridColor: "var(--grid)",
      domainColor: "var(--line)", tickColor: "var(--line)", labelFontSize: 12, titleFontSize: 12,
      titleFontWeight: "normal", titlePadding: 8,
    },
    legend: {
      labelColor: "var(--ink)", titleColor: "var(--ink)", labelFontSize: 12, titleFontSize: 12,
      titleFontWeight: "normal",
    },
  };

  function rowsOf(columns) {
    const keys = Object.keys(columns);
    const rows = columns[keys[0]].map((_, i) => Object.fromEntries(keys.map((key) => [key, columns[key][i]])));
    if (columns.cluster) for (const row of rows) row.called = `${row.cluster}: ${names[row.cluster]}`;
    return rows;
  }

  async function draw(chart) {
    const box = document.getElementById("chart-" + chart.id);
    const datasets = {};
    for (const [name, columns] of Object.entries(chart.data)) datasets[name] = rowsOf(columns);
    const options = {
      mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, config,
      tooltip: { disableDefaultStyle: true },
    };
    const { view } = await window.vegaEmbed(box, { ...chart.spec, datasets }, options);
    window.rskc.views[chart.id] = view;
    box.querySelector("svg").setAttribute("aria-hidden", "true"); // the box says what it shows
    box.dataset.drawn = "yes";
  }

  async function drawAll() {
    for (const chart of read("chart-data")) {
      try {
        await draw(chart);
      } catch (error) {
        console.error("chart " + chart.id, error);
        document.getElementById("chart-" + chart.id).textContent = "This chart could not be drawn.";
      }
      await new Promise((resume) => setTimeout(resume)); // the page stays usable meanwhile
    }
    document.documentElement.dataset.ready = "yes";
  }

  // Names of clusters: those of the page, or what was typed in its place before.

  const place = "rskc names " + location.pathname + " " + document.title;
  const names = read("name-data");

  function remembered() {
    try {
      const kept = JSON.parse(localStorage.getItem(place));
      return Array.isArray(kept) && kept.length === names.length ? kept.map(String) : null;
    } catch {
      return null; // a browser may refuse
    }
  }

  function show(cluster, but) {
    for (const each of document.querySelectorAll(`[data-name-of="${cluster}"]`)) {
      if (each !== but) each.textContent = names[cluster];
    }
  }

  function listenForNames() {
    (remembered() || []).forEach((name, k) => { names[k] = name; show(k); });
    for (const field of document.querySelectorAll(".rename")) {
      const k = Number(field.dataset.nameOf);
      const suggested = read("name-data")[k];
      field.setAttribute("contenteditable", "plaintext-only");
      if (field.contentEditable !== "plaintext-only") field.setAttribute("contenteditable", "true");
      field.tabIndex = 0;
      field.addEventListener("input", () => {
        names[k] = field.textContent.replace(/\s+/g, " ").trim().slice(0, LONGEST_NAME) || suggested;
        show(k, field);
      });
      field.addEventListener("keydown", (event) => {
        if (event.key !== "Enter" && event.key !== "Escape") return;
        event.preventDefault();
        field.blur();
      });
      field.addEventListener("blur", () => {
        show(k);
        try { localStorage.setItem(place, JSON.stringify(names)); } catch { /* not kept */ }
        drawAll();
      });
    }
    const save = document.getElementById("save-names");
    save.hidden = false;
    save.addEventListener("click", saveCopy);
  }

  function saveCopy() {
    const copy = document.documentElement.cloneNode(true);
    delete copy.dataset.ready;
    for (const box of copy.querySelectorAll(".drawing, .browser thead, .browser tbody")) box.replaceChildren();
    for (const box of copy.querySelectorAll(".drawing")) delete box.dataset.drawn;
    copy.querySelector("#vg-tooltip-element")?.remove();
    copy.querySelector("#name-data").textContent = JSON.stringify(names).replace(/[<>&\u2028\u2029]/g,
      (sign) => "\\u" + sign.charCodeAt(0).toString(16).padStart(4, "0"));
    hand("report.html", "text/html", ["<!DOCTYPE html>\n", copy.outerHTML]);
  }

  function hand(name, type, parts) {
    const address = URL.createObjectURL(new Blob(parts, { type: type + ";charset=utf-8" }));
    const link = element("a", undefined, { href: address, download: name });
    document.body.append(link);
    link.click();
    link.remove();
    setTimeout(() => URL.revokeObjectURL(address), 10000);
  }

  // Tables

  function written(value, kind) {
    if (value === null) return "–";
    if (kind !== "number" || Number.isInteger(value)) return String(value);
    const size = Math.abs(value);
    return size >= 1e-4 && size < 1e7 ? String(Number(value.toPrecision(4))) : value.toExponential(2);
  }

  class Table {
    constructor(section, table) {
      this.section = section;
      this.columns = table.columns;
      this.values = table.columns.map(({ key }) =>
        table.words[key] ? table.data[key].map((code) => table.words[key][code]) : table.data[key]);
      this.all = this.values[0].map((_, i) => i);
      this.rows = this.all;
      this.sorted = null;
      this.body = section.querySelector("tbody");
      this.more = section.querySelector(".more");
      this.status = section.querySelector(".status");
      this.search = section.querySelector("input");
      this.writeHead();
      this.listen();
      this.update();
    }

    writeHead() {
      const row = element("tr");
      this.heads = this.columns.map(({ label, kind }, j) => {
        const head = element("th", undefined, { scope: "col", "aria-sort": "none" });
        if (kind === "number") head.className = "n";
        const button = element("button", label, { type: "button" });
        button.addEventListener("click", () => this.sortBy(j));
        head.append(button);
        row.append(head);
        return head;
      });
      this.section.querySelector("thead").append(row);
    }

    listen() {
      let waiting;
      this.search.addEventListener("input", () => {
        clearTimeout(waiting);
        waiting = setTimeout(() => this.update(), 120);
      });
      this.more.addEventListener("click", () => this.write(AT_A_TIME));
      this.section.querySelector(".download").addEventListener("click", () => this.download());
    }

    sortBy(j) {
      const first = this.columns[j].kind === "text" ? "ascending" : "descending";
      const other = first === "ascending" ? "descending" : "ascending";
      const order = this.heads[j].getAttribute("aria-sort") === first ? other : first;
      this.heads.forEach((head, i) => head.setAttribute("aria-sort", i === j ? order : "none"));
      this.sorted = { j, sign: order === "ascending" ? 1 : -1 };
      this.update();
    }

    update() {
      const wanted = this.search.value.trim().toLowerCase();
      const texts = this.values.filter((_, j) => this.columns[j].kind === "text");
      this.rows = wanted
        ? this.all.filter((i) => texts.some((column) => String(column[i]).toLowerCase().includes(wanted)))
        : this.all.slice();
      if (this.sorted) this.sortRows();
      this.body.replaceChildren();
      this.write(AT_A_TIME);
    }

    sortRows() {
      const { j, sign } = this.sorted;
      const column = this.values[j];
      const compare = this.columns[j].kind === "text" ? compareText : (a, b) => a - b;
      this.rows.sort((a, b) => {
        if (column[a] === null || column[b] === null) return (column[a] === null) - (column[b] === null) || a - b;
        return sign * compare(column[a], column[b]) || a - b;
      });
    }

    write(number) {
      const shown = this.body.children.length;
      const part = document.createDocumentFragment();
      for (const i of this.rows.slice(shown, shown + number)) part.append(this.rowOf(i));
      this.body.append(part);
      const [now, all] = [this.body.children.length, this.rows.length];
      this.more.hidden = now >= all;
      this.status.textContent = all === 0 ? "No row matches." : now < all
        ? `Showing ${now.toLocaleString("en")} of ${all.toLocaleString("en")} rows.`
        : `${all.toLocaleString("en")} ${all === 1 ? "row" : "rows"}.`;
    }

    rowOf(i) {
      const row = element("tr");
      this.columns.forEach(({ kind }, j) => {
        const text = written(this.values[j][i], kind);
        const cell = j === 0 ? element("th", undefined, { scope: "row" }) : element("td");
        if (kind === "text") cell.append(element("bdi", text));
        else cell.textContent = text;
        if (kind === "number") cell.className = "n";
        row.append(cell);
      });
      return row;
    }

    csv() {
      const quoted = (value) => {
        if (value === null) return "";
        if (typeof value === "number") return String(value);
        const safe = FORMULA.test(value) ? "'" + value : value;
        return /[",\r\n]/.test(safe) ? '"' + safe.replaceAll('"', '""') + '"' : safe;
      };
      const [heads, values] = [this.columns.map(({ key }) => key), this.values.slice()];
      const clusters = values[heads.indexOf("cluster")];
      if (clusters) {
        heads.push("cluster_name");
        values.push(clusters.map((k) => names[k]));
      }
      const lines = [heads];
      for (const i of this.rows) lines.push(values.map((column) => column[i]));
      return lines.map((line) => line.map(quoted).join(",")).join("\r\n") + "\r\n";
    }

    download() {
      // The mark in front tells spreadsheets that this is UTF-8.
      hand(this.section.dataset.table + ".csv", "text/csv", ["\uFEFF", this.csv()]);
    }
  }

  window.rskc = { views: {}, tables: {} };
  const tables = read("table-data");
  for (const section of document.querySelectorAll("section.browser")) {
    window.rskc.tables[section.dataset.table] = new Table(section, tables[section.dataset.table]);
  }
  listenForNames();
  drawAll();
})();
