import { render } from "./tree.js";

/** @typedef {import("./tree.js").Child} Child */

/**
 * An element that draws itself from data, again whenever that has changed, at most once a frame.
 *
 * A subclass says in `opened` what it watches, and in `drawn` what it shows.
 */
export class LiveElement extends HTMLElement {
  #ended = new AbortController();
  #frame = 0;

  /** Aborted when the element leaves the page. */
  get ended() {
    return this.#ended.signal;
  }

  connectedCallback() {
    this.#ended = new AbortController();
    this.opened();
    this.#draw();
  }

  disconnectedCallback() {
    cancelAnimationFrame(this.#frame);
    this.#frame = 0;
    this.#ended.abort();
  }

  /** Begin to watch, and to load what is needed. */
  opened() {}

  /**
   * Describe the content.
   *
   * @returns {Child}
   */
  drawn() {
    return null;
  }

  /** Draw with the next frame. */
  redraw() {
    if (this.#frame || !this.isConnected) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  /**
   * Draw again whenever something happens to what is shown.
   *
   * @param {EventTarget} source
   * @param {...string} types
   */
  watch(source, ...types) {
    for (const type of types) source.addEventListener(type, () => this.redraw(), { signal: this.ended });
  }

  #draw() {
    if (this.isConnected) render(this, this.drawn());
  }
}

/**
 * Give an element its tag; once, however often its module is loaded.
 *
 * @param {string} tag
 * @param {CustomElementConstructor} element
 */
export function define(tag, element) {
  if (!customElements.get(tag)) customElements.define(tag, element);
}
