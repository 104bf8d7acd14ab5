// Which setting is shown, what is selected, and who wants to know; the address keeps it.
/** @import { Data } from "./data.js" */

/**
 * @typedef {object} View
 * @property {number} k place on the axis of the numbers of clusters
 * @property {number} f ... of the numbers of features
 * @property {number} t ... of the shares to trim
 * @property {string} map what colors the map
 * @property {string} plane what places the points
 * @property {number | null} feature whose values are shown
 * @property {[number, number, number] | null} pin a setting to compare with
 * @property {Uint8Array | null} selected cases that were brushed
 * @property {Uint8Array | null} lit cases of the cluster that is pointed at
 */

export const MAPS = {
  agreement: "agreement of half-samples",
  silhouette: "silhouette",
  smallest: "smallest cluster",
};
export const PLANES = {
  shared: "the same for all settings",
  weights: "by the current weights",
};

/** The view, and its listeners. */
export class Store {
  /** @param {Data} data */
  constructor(data) {
    this.data = data;
    const [k, f, t] = data.words.start;
    const map = data.halves ? "agreement" : "silhouette";
    /** @type {View} */
    this.view = {
      k,
      f,
      t,
      map,
      plane: "shared",
      feature: null,
      pin: null,
      selected: null,
      lit: null,
    };
    /** @type {((changed: Set<string>) => void)[]} */
    this.listeners = [];
    this.readAddress();
    window.addEventListener("hashchange", () => {
      this.readAddress();
      this.tell(new Set(Object.keys(this.view)));
    });
  }

  /** @returns {number} the setting that is shown */
  get s() {
    return this.data.setting(this.view.k, this.view.f, this.view.t);
  }

  /** @returns {number | null} the setting that is pinned */
  get pinned() {
    return this.view.pin && this.data.setting(...this.view.pin);
  }

  /** @returns {Uint8Array | null} the cases that stand out */
  get marked() {
    return this.view.lit ?? this.view.selected;
  }

  /** @param {(changed: Set<string>) => void} listener */
  listen(listener) {
    this.listeners.push(listener);
  }

  /** @param {Partial<View>} patch */
  set(patch) {
    const before = /** @type {any} */ (this.view);
    const changed = Object.entries(patch).filter(([name, value]) => before[name] !== value);
    if (!changed.length) return;
    this.view = { ...this.view, ...patch };
    this.writeAddress();
    this.tell(new Set(changed.map(([name]) => name)));
  }

  /** @param {Set<string>} changed */
  tell(changed) {
    if (["k", "f", "t"].some((name) => changed.has(name))) changed.add("setting");
    for (const listener of this.listeners) listener(changed);
  }

  readAddress() {
    const asked = new URLSearchParams(location.hash.slice(1));
    const { numbers, counts, trims, features } = this.data;
    const place = (
      /** @type {number[]} */ axis,
      /** @type {string | null} */ text,
      /** @type {number} */ usual,
    ) => {
      const at =
        text === null ? -1 : axis.findIndex((value) => Math.abs(value - Number(text)) < 1e-9);
      return at < 0 ? usual : at;
    };
    const { k, f, t } = this.view;
    const pin = asked.get("pin")?.split(",") ?? [];
    const feature = asked.has("feature") ? features.indexOf(asked.get("feature")) : -1;
    const map = asked.get("map") ?? "";
    const plane = asked.get("plane") ?? "";
    this.view = {
      ...this.view,
      k: place(numbers, asked.get("k"), k),
      f: place(counts, asked.get("features"), f),
      t: place(trims, asked.get("trim"), t),
      map: map in MAPS ? map : this.view.map,
      plane: plane in PLANES ? plane : this.view.plane,
      feature: feature < 0 ? this.view.feature : feature,
      pin:
        pin.length === 3
          ? [place(numbers, pin[0], k), place(counts, pin[1], f), place(trims, pin[2], t)]
          : this.view.pin,
    };
  }

  writeAddress() {
    const { k, f, t, map, plane, feature, pin } = this.view;
    const { numbers, counts, trims, features } = this.data;
    const words = new URLSearchParams({
      k: String(numbers[k]),
      features: String(counts[f]),
      trim: String(trims[t]),
      map,
      plane,
    });
    if (feature !== null) words.set("feature", features[feature]);
    if (pin) words.set("pin", [numbers[pin[0]], counts[pin[1]], trims[pin[2]]].join(","));
    try {
      history.replaceState(null, "", `#${words}`);
    } catch {
      // In the frame of a notebook there is no address to keep it in.
    }
  }
}
