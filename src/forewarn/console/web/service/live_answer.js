/** An answer of the API for one view. It is read again when records concern it. */

import { messageOf } from "../page/formatting.js";
import { copy } from "./connected.js";
import { Refusal } from "./operator_api.js";
import { PacedReading } from "./paced_reading.js";

/** @typedef {import("../types").Record} Record */

/**
 * Fires `changed`.
 *
 * @template T
 */
export class LiveAnswer extends EventTarget {
  /** Null until the first read. @type {T | null} */
  value = null;
  /** The error message of the last read. */
  trouble = "";
  /** Whether the subject does not exist. */
  isMissing = false;
  #read;
  #signal;
  #reading;

  /**
   * @param {() => Promise<T>} read
   * @param {(record: Record) => boolean} concerns
   * @param {AbortSignal} signal  stops reading
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

  /** Read again, for changes that have no record. */
  again() {
    this.#reading.soon();
  }

  // A refusal is final. After a connection loss, the copy's `loaded` triggers a new read.
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
