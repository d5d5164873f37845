import { copy } from "./connected.js";
import { Refusal } from "./operator_api.js";

/** @typedef {import("../types").Record} Record */

// Records that come so close together are one reason to read again, in milliseconds.
const TOGETHER = 150;
// Reading goes on at most a fourth of the time.
const REST_FACTOR = 3;

/**
 * Something that is not in the copy of the fleet: read when a view opens, and again when records name it or a lost
 * connection is back.
 *
 * Announces `changed`.
 *
 * @template T
 */
export class Loaded extends EventTarget {
  /** What was read last; null before the first time. @type {T | null} */
  value = null;
  /** Why it could not be read, if that is so. */
  trouble = "";
  /** Whether the server says that there is no such thing. */
  isMissing = false;
  #read;
  #concerns;
  #timer = 0;
  #isReading = false;
  #isOutdated = false;
  #isOver = false;

  /**
   * @param {() => Promise<T>} read
   * @param {(record: Record) => boolean} concerns  whether a record is a reason to read again
   */
  constructor(read, concerns) {
    super();
    this.#read = read;
    this.#concerns = concerns;
  }

  /**
   * Read now, and keep up to date until the signal says that nobody looks any more.
   *
   * @param {AbortSignal} signal
   */
  follow(signal) {
    copy.addEventListener(
      "records",
      (event) => {
        if (/** @type {CustomEvent} */ (event).detail.some(this.#concerns)) this.#plan(TOGETHER);
      },
      { signal },
    );
    copy.addEventListener("loaded", () => this.again(), { signal });
    signal.addEventListener("abort", () => {
      this.#isOver = true;
      clearTimeout(this.#timer);
    });
    this.again();
  }

  /** Read again, now. */
  again() {
    clearTimeout(this.#timer);
    this.#timer = 0;
    this.#isOutdated = true;
    if (!this.#isReading) this.#load();
  }

  /** @param {number} milliseconds */
  #plan(milliseconds) {
    this.#isOutdated = true;
    if (this.#isReading || this.#timer) return;
    this.#timer = setTimeout(() => this.again(), milliseconds);
  }

  async #load() {
    this.#isReading = true;
    this.#isOutdated = false;
    const began = performance.now();
    try {
      this.value = await this.#read();
      this.trouble = "";
      this.isMissing = false;
    } catch (error) {
      this.trouble = error instanceof Error ? error.message : String(error);
      this.isMissing = error instanceof Refusal && error.status === 404;
    }
    this.#isReading = false;
    if (this.#isOver) return;
    this.dispatchEvent(new Event("changed"));
    if (this.#isOutdated) this.#plan(Math.max(TOGETHER, (performance.now() - began) * REST_FACTOR));
  }
}
