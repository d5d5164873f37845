/** An answer of the API that one page shows, read again when records say that it has changed. */

import { copy } from "./connected.js";
import { Refusal } from "./operator_api.js";

/** @typedef {import("../types").Record} Record */

// Records that come so close together are one reading, in milliseconds.
const TOGETHER = 150;
// Reading goes on at most a fourth of the time.
const REST_FACTOR = 3;
const RETRY = 2000;

/**
 * Announces `changed`.
 *
 * @template T
 */
export class LiveAnswer extends EventTarget {
  /** Null before it was read for the first time. @type {T | null} */
  value = null;
  /** Why it cannot be read, in the server's words. */
  trouble = "";
  /** Whether there is no such thing. */
  isMissing = false;
  #read;
  #concerns;
  #signal;
  #timer = 0;
  #isReading = false;
  #isStale = false;

  /**
   * @param {() => Promise<T>} read
   * @param {(record: Record) => boolean} concerns
   * @param {AbortSignal} signal  when nobody looks any more
   */
  constructor(read, concerns, signal) {
    super();
    this.#read = read;
    this.#concerns = concerns;
    this.#signal = signal;
    copy.addEventListener("loaded", () => this.again(), { signal });
    copy.addEventListener("records", (event) => this.#heard(/** @type {CustomEvent} */ (event).detail), {
      signal,
    });
    signal.addEventListener("abort", () => clearTimeout(this.#timer));
    this.again(0);
  }

  /**
   * Read it again soon.
   *
   * @param {number} [milliseconds]
   */
  again(milliseconds = TOGETHER) {
    this.#isStale = true;
    if (this.#timer || this.#isReading || this.#signal.aborted) return;
    this.#timer = setTimeout(() => this.#readNow(), milliseconds);
  }

  /** @param {Record[]} records */
  #heard(records) {
    if (records.some(this.#concerns)) this.again();
  }

  async #readNow() {
    this.#timer = 0;
    this.#isReading = true;
    this.#isStale = false;
    const began = performance.now();
    try {
      this.value = await this.#read();
      this.trouble = "";
      this.isMissing = false;
    } catch (error) {
      this.#failed(error);
    }
    this.#isReading = false;
    this.dispatchEvent(new Event("changed"));
    const rest = Math.max(TOGETHER, (performance.now() - began) * REST_FACTOR);
    if (this.#isStale) this.again(this.trouble ? RETRY : rest);
  }

  /** @param {unknown} error */
  #failed(error) {
    this.trouble = error instanceof Error ? error.message : String(error);
    this.isMissing = error instanceof Refusal && error.status === 404;
    // What was refused stays so; a server that is away comes back, and then the copy is loaded anew.
  }
}
