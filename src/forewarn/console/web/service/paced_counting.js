/** When the fleet is counted again: to count a large one takes the server a while, and nobody reads counts so often. */

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
    // One that takes long may have waited for something else: two are a large fleet.
    const took = this.#countedAt - began;
    this.#took = Math.min(took, this.#lastTook);
    this.#lastTook = took;
  }

  /** Count now, or when counting has rested. */
  async rested() {
    if (this.#timer) return;
    const rest = this.#countedAt + this.#took * REST_FACTOR - performance.now();
    if (rest <= 0) {
      await this.now();
      return;
    }
    this.#timer = setTimeout(() => {
      this.#timer = 0;
      // What is refused or lost here is found by the next reading too.
      this.now().catch(() => {});
    }, rest);
  }

  /** Count no more until it is asked for again. */
  stop() {
    clearTimeout(this.#timer);
    this.#timer = 0;
  }
}
