/** Paces the counts of the fleet: counting a large fleet is expensive, and counts may be slightly old. */

const REST_FACTOR = 30;

export class PacedCounting {
  #count;
  #countedAt = 0;
  #took = 0;
  #lastTook = 0;
  #timer = 0;

  /** @param {() => Promise<void>} count */
  constructor(count) {
    this.#count = count;
  }

  /** Count at once. */
  async now() {
    const began = performance.now();
    await this.#count();
    this.#countedAt = performance.now();
    // A single slow count may have waited for other work. Two slow counts mean a large fleet.
    const took = this.#countedAt - began;
    this.#took = Math.min(took, this.#lastTook);
    this.#lastTook = took;
  }

  /** Count now, or after the rest. */
  async rested() {
    if (this.#timer) return;
    const rest = this.#countedAt + this.#took * REST_FACTOR - performance.now();
    if (rest <= 0) {
      await this.now();
      return;
    }
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      // The next read handles a failure here.
      this.now().catch(() => {});
    }, rest);
  }

  /** Cancel the planned count. */
  stop() {
    clearTimeout(this.#timer);
    this.#timer = 0;
  }
}
