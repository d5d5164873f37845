/**
 * Paces reads: changes that come close together share one read, and each read is followed by a rest. This limits the
 * load of a busy fleet on browser and server. A hidden tab reads nothing.
 */

// In milliseconds.
const TOGETHER = 100;
// The rest after a read. Changes appear within a second, and several tabs stay far below the rate limit of a token.
const REST = 400;
// Reads take at most a quarter of the time, and less if they are slow: several users may have the console open.
const REST_FACTOR = 3;
const LONG_READING = 200;
const LONG_REST_FACTOR = 10;
// The delay before a failed read is retried.
const RETRY = 1000;

export class PacedReading {
  #read;
  #timer = 0;
  #isWanted = false;
  #isReading = false;
  #restsUntil = 0;
  #lastTook = 0;

  /**
   * @param {() => Promise<boolean>} read  returns whether the read succeeded
   * @param {AbortSignal} [signal]  stops all reads
   */
  constructor(read, signal) {
    this.#read = read;
    document.addEventListener("visibilitychange", () => this.#isWanted && this.#plan(0), { signal });
    signal?.addEventListener("abort", () => this.stop());
  }

  /** Read soon, together with other changes. */
  soon() {
    this.#isWanted = true;
    if (!this.#timer) this.#plan(Math.max(TOGETHER, this.#restsUntil - performance.now()));
  }

  /** Read at once, or after the current read. */
  now() {
    this.#isWanted = true;
    this.#plan(0);
  }

  /** Cancel the planned read. */
  stop() {
    this.#isWanted = false;
    clearTimeout(this.#timer);
    this.#timer = 0;
  }

  /** @param {number} milliseconds */
  #plan(milliseconds) {
    if (this.#isReading || document.hidden) return;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#readNow(), milliseconds);
  }

  async #readNow() {
    this.#timer = 0;
    this.#isWanted = false;
    this.#isReading = true;
    const began = performance.now();
    const isGood = await this.#read();
    const took = performance.now() - began;
    this.#isReading = false;
    // A single slow read may be the first, or may have waited for other work. Two slow reads mean a large fleet.
    const usual = Math.min(took, this.#lastTook);
    this.#lastTook = took;
    const rest = Math.max(REST, usual * (usual < LONG_READING ? REST_FACTOR : LONG_REST_FACTOR));
    this.#restsUntil = performance.now() + rest;
    if (this.#isWanted) this.#plan(isGood ? rest : RETRY);
  }
}
