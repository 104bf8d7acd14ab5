// How to repeat a view, and its numbers as files.
import { byId, download, element } from "./dom.js";
/** @import { Store } from "./state.js" */

/** @param {Store} store */
export function makeTake(store) {
  const { data } = store;
  const show = () => {
    const { python, models, fit } = data.words;
    const lines = `${python}\n${models[store.s]}\n${fit}`;
    const blocks = [block("In Python", lines)];
    if (data.words.bounded) {
      const text =
        "The fits on this page used the table without its extreme cells. A fit to the table itself " +
        "bounds the errors of outlying cells and may assign a few cases differently. The files " +
        "contain the clusters of this view.";
      blocks.unshift(element("p", { class: "warn", id: "other" }, text));
    }
    byId("take").replaceChildren(...blocks);
  };
  byId("take-labels").addEventListener("click", () => {
    const { s } = store;
    const [labels, flags, agreed] = [data.labels(s), data.flags(s), data.agreed(s)];
    const rows = Array.from(data.names, (name, i) => [
      name,
      labels[i],
      flags[i] & 2 ? "True" : "False",
      flags[i] & 1 ? "True" : "False",
      agreed[i],
    ]);
    download("labels.csv", [["case", "cluster", "outlier", "trimmed", "agreement"], ...rows]);
  });
  byId("take-weights").addEventListener("click", () => {
    const { features, weights, selected } = data.weights(store.s);
    const rows = Array.from(features, (j, i) => [
      data.features[j],
      weights[i],
      data.halves ? selected[i] / data.halves : null,
    ]);
    download("weights.csv", [["feature", "weight", "selected"], ...rows]);
  });
  store.listen((changed) => {
    if (changed.has("setting")) show();
  });
  show();
}

/** @param {string} title @param {string} text */
function block(title, text) {
  const code = element("code", {}, text);
  const copy = element("button", { type: "button", class: "copy" }, "Copy");
  copy.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(text);
      copy.textContent = "Copied";
    } catch {
      getSelection()?.selectAllChildren(code);
      copy.textContent = "Selected";
    }
    setTimeout(() => (copy.textContent = "Copy"), 2000);
  });
  const head = element("div", { class: "head" }, element("h3", {}, title), copy);
  return element("div", { class: "block" }, head, element("pre", { tabindex: "0" }, code));
}
