/** Which bar the tab key reaches, and how arrow keys go from one to the next. */

/** @typedef {import("./lanes.js").Placed} Placed */

export class BarFocus {
  /** @type {string | null} */
  #current = null;
  /** Those that are in a lane, row by row. @type {string[]} */
  #laid = [];
  /** The same in the order of time. @type {string[]} */
  #inTime = [];
  /** @type {string | null} */
  #next = null;

  /** The bar that the tab key reaches: the one that had the focus, or the next that is not over. */
  get reachable() {
    if (this.#current && this.#laid.includes(this.#current)) return this.#current;
    return this.#next;
  }

  /**
   * Take what is drawn now.
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
   * Return the bar that a key leads to: left and right in the order of time, up and down between rows. Null: there is
   * none; undefined: it is another key.
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
