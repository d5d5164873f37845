// Lanes this close to the viewport are drawn in advance.
const NEAR = "600px 0px";

/** The lanes in or near the viewport. Only their bars are drawn. Dispatches `changed`. */
export class VisibleLanes extends EventTarget {
  /** @type {Set<string>} */
  #seen = new Set();
  #observer = new IntersectionObserver((entries) => this.#look(entries), { rootMargin: NEAR });
  /** @type {Set<Element>} */
  #watched = new Set();

  /** @param {string} key */
  has(key) {
    return this.#seen.has(key);
  }

  /**
   * Watch the current lanes of the page.
   *
   * @param {Iterable<Element>} lanes
   */
  watch(lanes) {
    const wanted = new Set(lanes);
    for (const lane of this.#watched) {
      if (wanted.has(lane)) continue;
      this.#observer.unobserve(lane);
      this.#watched.delete(lane);
    }
    for (const lane of wanted) {
      if (this.#watched.has(lane)) continue;
      this.#observer.observe(lane);
      this.#watched.add(lane);
    }
  }

  end() {
    this.#observer.disconnect();
    this.#watched.clear();
  }

  /** @param {IntersectionObserverEntry[]} entries */
  #look(entries) {
    for (const entry of entries) {
      const key = /** @type {HTMLElement} */ (entry.target).dataset.lane ?? "";
      if (entry.isIntersecting) this.#seen.add(key);
      else this.#seen.delete(key);
    }
    this.dispatchEvent(new Event("changed"));
  }
}
