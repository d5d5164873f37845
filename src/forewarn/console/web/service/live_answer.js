/** An answer of the API that one page shows, read again when records say that it has changed. */

import { messageOf } from "../page/formatting.js";
import { copy } from "./connected.js";
import { Refusal } from "./operator_api.js";
import { PacedReading } from "./paced_reading.js";

/** @typedef {import("../types").Record} Record */

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
  #signal;
  #reading;

  /**
   * @param {() => Promise<T>} read
   * @param {(record: Record) => boolean} concerns
   * @param {AbortSignal} signal  when nobody looks any more
   */
  constructor(read, concerns, signal) {
    super();
    this.#read = read;
    this.#signal = signal;
    const reading = new PacedReading(() => this.#readNow(), signal);
    this.#reading = reading;
    copy.addEventListener("loaded", () => reading.now(), { signal });
    copy.addEventListener(
      "records",
      (event) => {
        if (/** @type {CustomEvent} */ (event).detail.some(concerns)) reading.soon();
      },
      { signal },
    );
    reading.now();
  }

  /** Read it again: it may have changed without a record. */
  again() {
    this.#reading.soon();
  }

  // What was refused stays so; a server that is away comes back, and then the copy is loaded anew.
  async #readNow() {
    try {
      this.value = await this.#read();
      this.trouble = "";
      this.isMissing = false;
    } catch (error) {
      this.trouble = messageOf(error);
      this.isMissing = error instanceof Refusal && error.status === 404;
    }
    if (!this.#signal.aborted) this.dispatchEvent(new Event("changed"));
    return !this.trouble;
  }
}
