/** Keyboard focus on the bars: one bar is reachable with Tab, and arrow keys move between bars. */

/** @typedef {import("./lanes.js").Placed} Placed */

export class BarFocus {
  /** @type {string | null} */
  #current = null;
  /** The drawn bars, row by row. @type {string[]} */
  #laid = [];
  /** The drawn bars by time. @type {string[]} */
  #inTime = [];
  /** @type {string | null} */
  #next = null;

  /** The bar that Tab reaches: the last focused one, otherwise the next open one. */
  get reachable() {
    if (this.#current && this.#laid.includes(this.#current)) return this.#current;
    return this.#next;
  }

  /**
   * Set the drawn bars.
   *
   * @param {readonly Placed[]} laid  row by row
   */
  take(laid) {
    const inTime = laid.toSorted((one, other) => one.from - other.from);
    this.#laid = laid.map((bar) => bar.key);
    this.#inTime = inTime.map((bar) => bar.key);
    this.#next = (inTime.find((bar) => bar.isOpen) ?? inTime[0])?.key ?? null;
  }

  /** @param {string | null} key */
  set current(key) {
    this.#current = key;
  }

  /**
   * Return the bar that a key moves to: left and right by time, up and down between rows. Return null at an end, and
   * undefined for other keys.
   *
   * @param {string} from
   * @param {string} key
   * @returns {string | null | undefined}
   */
  after(from, key) {
    const [laid, inTime] = [this.#laid, this.#inTime];
    const leads = {
      ArrowLeft: () => inTime[inTime.indexOf(from) - 1],
      ArrowRight: () => inTime[inTime.indexOf(from) + 1],
      Home: () => inTime[0],
      End: () => inTime.at(-1),
      ArrowUp: () => laid[laid.indexOf(from) - 1],
      ArrowDown: () => laid[laid.indexOf(from) + 1],
    }[key];
    return leads && (leads() ?? null);
  }
}
