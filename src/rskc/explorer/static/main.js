// The page puts itself together.
import { makeCases } from "./cases.js";
import { makeCompare } from "./compare.js";
import { readData } from "./data.js";
import { byId, Colors } from "./dom.js";
import { makeFeatures } from "./features.js";
import { makeMap } from "./map.js";
import { makePlane } from "./plane.js";
import { makeSliders } from "./sliders.js";
import { Store } from "./state.js";
import { makeTake } from "./take.js";
import { makeTree } from "./tree.js";
import { makeValues } from "./values.js";

async function start() {
  const data = await readData();
  const store = new Store(data);
  const colors = new Colors(data);
  const { automatic, reason, budget, sample, cells } = data.words;
  byId("automatic").textContent = automatic;
  byId("reason").textContent = reason;
  byId("about").textContent = [cells, sample, budget].filter(Boolean).join(" ");
  makeSliders(store);
  makeMap(store, colors);
  makePlane(store, colors);
  makeTree(store, colors);
  makeFeatures(store);
  makeValues(store, colors);
  makeCases(store, colors);
  makeCompare(store, colors);
  makeTake(store);
  const recolor = () => {
    colors.update();
    store.tell(new Set(["colors"]));
  };
  for (const query of ["(prefers-color-scheme: dark)", "print"]) {
    matchMedia(query).addEventListener("change", recolor);
  }
  /** @type {any} */ (window).rskc = store; // for the tests, and for the curious
  document.documentElement.dataset.ready = "yes";
}

start();
