// What the page knows, read from the compressed data at its end.

/**
 * @typedef {object} Weighted the features with weight in a setting, the largest first
 * @property {Uint32Array} features their numbers
 * @property {Float64Array} weights
 * @property {Uint16Array} selected how many half-samples select them
 */

const MISSING = 65535;
const MOST_OF_16_BITS = 65534;

/**
 * Read whole numbers of a few bits each.
 * @param {Uint8Array} bytes
 * @param {number} start first byte
 * @param {number} n how many numbers
 * @param {number} bits of each, 16 at most
 * @returns {Uint16Array}
 */
export function unpacked(bytes, start, n, bits) {
  const values = new Uint16Array(n);
  const mask = (1 << bits) - 1;
  for (let i = 0; i < n; i++) {
    const bit = i * bits;
    const place = start + (bit >> 3);
    const [next, last] = [bytes[place + 1] ?? 0, bytes[place + 2] ?? 0];
    values[i] = ((bytes[place] | (next << 8) | (last << 16)) >> (bit & 7)) & mask;
  }
  return values;
}

/** @param {number} n @returns {number} bits that tell n values apart */
export function bitsFor(n) {
  return Math.max(1, Math.ceil(Math.log2(n)));
}

/** All settings, cases and features. */
export class Data {
  /**
   * @param {any} words
   * @param {ArrayBuffer} buffer
   * @param {number} start of the arrays
   */
  constructor(words, buffer, start) {
    this.words = words;
    this.n = words.n_shown;
    /** @type {number[]} */
    this.numbers = words.axes[0];
    /** @type {number[]} */
    this.counts = words.axes[1];
    /** @type {number[]} */
    this.trims = words.axes[2];
    this.names = words.cases;
    this.features = words.features;
    this.halves = words.n_halves;
    /** @type {(name: string) => Uint8Array} */
    const bytes = (name) =>
      new Uint8Array(buffer, start + words.arrays[name][0], words.arrays[name][1]);
    const of16 = (/** @type {string} */ name) => {
      const [place, length] = words.arrays[name];
      return new Uint16Array(buffer, start + place, length / 2);
    };
    this.bytes = {
      labels: bytes("labels"),
      flags: bytes("flags"),
      agreed: bytes("agreed"),
    };
    const [place, length] = words.arrays.features;
    this.weighted = {
      features: new Uint32Array(buffer, start + place, length / 4),
      weights: of16("weights"),
      selected: of16("selected"),
    };
    this.plane = Float64Array.from(of16("plane"), (v) => v / MOST_OF_16_BITS);
    this.cells = of16("values");
    const of32 = (/** @type {string} */ name) => {
      if (!words.cells) return new Uint32Array(0);
      const [first, size] = words.arrays[name];
      return new Uint32Array(buffer, start + first, size / 4);
    };
    // Outlying cells of the automatic fit: how many, and whose they are in the features shown.
    this.outlying = {
      ofCases: of32("cells_of_cases"),
      ofFeatures: of32("cells_of_features"),
      cases: of32("cell_cases"),
      starts: of32("cell_starts"),
    };
    /** @type {number[]} */
    const shown = words.shown;
    this.shownAt = new Map(shown.map((j, i) => [j, i]));
    this.cache = new Map();
    this.starts = this.findStarts();
  }

  findStarts() {
    const labels = [0];
    const weights = [0];
    const each = this.counts.length * this.trims.length;
    for (let s = 0; s < this.numbers.length * each; s++) {
      const bits = bitsFor(this.numbers[Math.floor(s / each)]);
      labels.push(labels[s] + Math.ceil((this.n * bits) / 8));
      weights.push(weights[s] + this.words.n_weights[s]);
    }
    return { labels, weights };
  }

  /** @param {number} k @param {number} f @param {number} t @returns {number} of the setting */
  setting(k, f, t) {
    return (k * this.trims.length + t) * this.counts.length + f;
  }

  /** @param {number} s @returns {number} of clusters */
  numberOf(s) {
    return this.numbers[Math.floor(s / (this.counts.length * this.trims.length))];
  }

  /**
   * @param {string} key
   * @param {() => any} make
   */
  kept(key, make) {
    if (!this.cache.has(key)) this.cache.set(key, make());
    return this.cache.get(key);
  }

  /** @param {number} s @returns {Uint16Array} the cluster of each case */
  labels(s) {
    const bits = bitsFor(this.numberOf(s));
    return this.kept(`labels ${s}`, () =>
      unpacked(this.bytes.labels, this.starts.labels[s], this.n, bits),
    );
  }

  /** @param {number} s @returns {Uint16Array} 1: trimmed, 2: outlier, 3: both */
  flags(s) {
    const start = s * Math.ceil((this.n * 2) / 8);
    return this.kept(`flags ${s}`, () => unpacked(this.bytes.flags, start, this.n, 2));
  }

  /** @param {number} s @returns {Float64Array} share of the half-samples that agree */
  agreed(s) {
    const bits = bitsFor(this.halves + 1);
    const start = s * Math.ceil((this.n * bits) / 8);
    return this.kept(`agreed ${s}`, () => {
      const times = unpacked(this.bytes.agreed, start, this.n, bits);
      return Float64Array.from(times, (v) => (this.halves ? v / this.halves : NaN));
    });
  }

  /** @param {number} s @returns {Weighted} */
  weights(s) {
    const [first, last] = [this.starts.weights[s], this.starts.weights[s + 1]];
    const { features, weights, selected } = this.weighted;
    return this.kept(`weights ${s}`, () => ({
      features: features.slice(first, last),
      weights: Float64Array.from(weights.slice(first, last), (v) => v / MOST_OF_16_BITS),
      selected: selected.slice(first, last),
    }));
  }

  /** @param {number} s @returns {Map<number, number>} the weight of each feature that has one */
  weightOf(s) {
    return this.kept(`map ${s}`, () => {
      const { features, weights } = this.weights(s);
      return new Map(Array.from(features, (j, i) => [j, weights[i]]));
    });
  }

  /** @param {number} j feature @returns {string[] | null} its categories, if it has some */
  categories(j) {
    const place = this.shownAt.get(j);
    return place === undefined ? null : this.words.categories[place];
  }

  /**
   * @param {number} j feature
   * @returns {Float64Array | null} NaN where missing; of categories their places
   */
  values(j) {
    const place = this.shownAt.get(j);
    if (place === undefined) return null;
    return this.kept(`values ${j}`, () => {
      const [low, high] = this.words.spans[place];
      const cells = this.cells.subarray(place * this.n, (place + 1) * this.n);
      const whole = this.words.categories[place] !== null;
      return Float64Array.from(cells, (v) => {
        const value = v === MISSING ? NaN : low + ((high - low) * v) / MOST_OF_16_BITS;
        return whole ? Math.round(value) : value;
      });
    });
  }

  /** @param {number} j feature @returns {Uint8Array} 1 for the cases whose cell is outlying */
  outlyingCases(j) {
    return this.kept(`cells ${j}`, () => {
      const { cases, starts } = this.outlying;
      const place = this.shownAt.get(j);
      const flags = new Uint8Array(this.n);
      if (!starts.length || place === undefined) return flags;
      for (const i of cases.subarray(starts[place], starts[place + 1])) flags[i] = 1;
      return flags;
    });
  }

  /**
   * @param {number} j feature
   * @returns {Float64Array[]} the numbers that cases are compared by; of a category several
   */
  coded(j) {
    const values = this.values(j);
    const place = this.shownAt.get(j);
    if (!values || place === undefined) return [];
    const categories = this.categories(j);
    if (categories) return indicators(values, categories.length);
    const scale = this.words.scales[place];
    const unit = this.words.log_units[place];
    // As rskc.preprocessing has them: logarithms from a floor, or from 0 in units.
    const kind = this.words.logs[place];
    const log = (/** @type {number} */ value) => {
      if (kind === 0) return value;
      return kind === 1 ? Math.log(Math.max(value, unit)) : Math.log1p(value / unit);
    };
    const outlying = this.outlyingCases(j); // no part of a plane, as of the centers of a fit
    return [values.map((value, i) => (outlying[i] ? NaN : log(value) / scale))];
  }
}

/**
 * Categories as indicators, scaled as in a fit.
 * @param {Float64Array} places NaN where missing
 * @param {number} count of categories
 * @returns {Float64Array[]}
 */
function indicators(places, count) {
  const sizes = Array.from({ length: count }, (_, place) =>
    places.reduce((sum, value) => sum + (value === place ? 1 : 0), 0),
  );
  const known = sizes.reduce((sum, size) => sum + size, 0);
  const spread = Math.max(1, count - 1);
  return sizes.map((size, place) => {
    const unit = Math.sqrt(((2 / Math.PI) * known) / (Math.max(1, size) * spread));
    return places.map((value) => (Number.isNaN(value) ? NaN : value === place ? unit : 0));
  });
}

/** @returns {Promise<Data>} */
export async function readData() {
  const text = document.getElementById("data")?.textContent ?? "";
  const packed = Uint8Array.from(atob(text), (sign) => sign.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const words = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 8, length)));
  return new Data(words, buffer, 8 + length);
}
