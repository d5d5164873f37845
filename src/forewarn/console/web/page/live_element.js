import { render } from "./tree.js";

/** @typedef {import("./tree.js").Child} Child */

/**
 * An element that draws itself from data, and again after changes, at most once per frame.
 *
 * A subclass subscribes to changes in `opened` and describes its content in `drawn`.
 */
export class LiveElement extends HTMLElement {
  #ended = new AbortController();
  #frame = 0;

  /** Aborted when the element is removed. */
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

  /** Subscribe to changes, and load data. */
  opened() {}

  /**
   * Describe the content.
   *
   * @returns {Child}
   */
  drawn() {
    return null;
  }

  /** Draw in the next frame. */
  redraw() {
    if (this.#frame || !this.isConnected) return;
    this.#frame = requestAnimationFrame(() => {
      this.#frame = 0;
      this.#draw();
    });
  }

  /**
   * Redraw on these events of a source.
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
 * Define a custom element, once.
 *
 * @param {string} tag
 * @param {CustomElementConstructor} element
 */
export function define(tag, element) {
  if (!customElements.get(tag)) customElements.define(tag, element);
}
