/**
 * When something is read again: what comes close together is one reading, and then reading rests, so that a busy fleet
 * costs neither page nor server too much. Nothing is read while nobody sees the page.
 */

// In milliseconds.
const TOGETHER = 100;
// So long nothing is read after a reading: what happens is on the page within a second, and several pages of one token
// stay far from the number of calls that it has.
const REST = 400;
// Reading goes on at most a fourth of the time; less where it takes long, as for many events at once: several people may
// be looking.
const REST_FACTOR = 3;
const LONG_READING = 200;
const LONG_REST_FACTOR = 10;
// What could not be read is tried again so much later.
const RETRY = 1000;

export class PacedReading {
  #read;
  #timer = 0;
  #isWanted = false;
  #isReading = false;
  #restsUntil = 0;
  #lastTook = 0;

  /**
   * @param {() => Promise<boolean>} read  says whether it could be read
   * @param {AbortSignal} [signal]  when nobody looks any more
   */
  constructor(read, signal) {
    this.#read = read;
    document.addEventListener("visibilitychange", () => this.#isWanted && this.#plan(0), { signal });
    signal?.addEventListener("abort", () => this.stop());
  }

  /** Read when what comes with it has come too. */
  soon() {
    this.#isWanted = true;
    if (!this.#timer) this.#plan(Math.max(TOGETHER, this.#restsUntil - performance.now()));
  }

  /** Read at once, or when what is being read has come. */
  now() {
    this.#isWanted = true;
    this.#plan(0);
  }

  /** Read no more until it is wanted again. */
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
    // One long reading may be the first, with all there is, or one beside something else: two are a large fleet.
    const usual = Math.min(took, this.#lastTook);
    this.#lastTook = took;
    const rest = Math.max(REST, usual * (usual < LONG_READING ? REST_FACTOR : LONG_REST_FACTOR));
    this.#restsUntil = performance.now() + rest;
    if (this.#isWanted) this.#plan(isGood ? rest : RETRY);
  }
}
