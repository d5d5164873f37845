/** Gestures on the timeline: drag to pan, Ctrl and wheel or two fingers to zoom. */

// A pointer that moves less than this clicks, in pixels.
const CLICK = 5;

/**
 * @typedef {object} GestureHandlers
 * @property {(pixels: number) => void} pan
 * @property {(factor: number, x: number) => void} zoom  around a position in the plot
 */

/** Tracks the pointers over one element. */
export class Gestures {
  /** @type {Map<number, number>} the position of each pointer */
  #pointers = new Map();
  #began = 0;
  #isDragging = false;
  #handlers;

  /** @param {GestureHandlers} handlers */
  constructor(handlers) {
    this.#handlers = handlers;
  }

  /** The event listeners of the element, as props for `h`. */
  get listeners() {
    return {
      onpointerdown: (/** @type {PointerEvent} */ event) => this.#down(event),
      onpointermove: (/** @type {PointerEvent} */ event) => this.#move(event),
      onpointerup: (/** @type {PointerEvent} */ event) => this.#up(event),
      onpointercancel: (/** @type {PointerEvent} */ event) => this.#up(event),
      ondragstart: (/** @type {Event} */ event) => event.preventDefault(),
      onclick: (/** @type {Event} */ event) => this.#click(event),
    };
  }

  /**
   * Listen to the wheel. The listener is not passive, so that it can keep Ctrl and wheel from zooming the page.
   *
   * @param {HTMLElement} element
   * @param {AbortSignal} signal
   */
  listenToWheel(element, signal) {
    element.addEventListener("wheel", (event) => this.#wheel(event), { passive: false, signal });
  }

  /** @param {PointerEvent} event */
  #down(event) {
    if (event.button) return;
    this.#pointers.set(event.pointerId, event.clientX);
    if (this.#pointers.size > 1) return;
    this.#began = event.clientX;
    this.#isDragging = false;
  }

  /** @param {PointerEvent} event */
  #move(event) {
    const before = this.#pointers.get(event.pointerId);
    if (before === undefined) return;
    if (this.#pointers.size === 2) this.#pinch(event, before);
    else if (this.#isDragging || Math.abs(event.clientX - this.#began) > CLICK) {
      if (!this.#isDragging)
        /** @type {Element} */ (event.currentTarget)?.setPointerCapture?.(event.pointerId);
      this.#isDragging = true;
      this.#handlers.pan(before - event.clientX);
      this.#pointers.set(event.pointerId, event.clientX);
    }
  }

  /**
   * @param {PointerEvent} event
   * @param {number} before
   */
  #pinch(event, before) {
    const other = [...this.#pointers].find(([id]) => id !== event.pointerId)?.[1] ?? before;
    this.#pointers.set(event.pointerId, event.clientX);
    this.#isDragging = true;
    const apart = Math.max(20, Math.abs(event.clientX - other));
    const factor = Math.max(20, Math.abs(before - other)) / apart;
    this.#handlers.zoom(factor, placeIn(event, (event.clientX + other) / 2));
  }

  /** @param {PointerEvent} event */
  #up(event) {
    this.#pointers.delete(event.pointerId);
  }

  /** Suppress the click at the end of a drag. @param {Event} event */
  #click(event) {
    if (!this.#isDragging) return;
    this.#isDragging = false;
    event.preventDefault();
    event.stopPropagation();
  }

  /** @param {WheelEvent} event */
  #wheel(event) {
    if (event.ctrlKey || event.metaKey) {
      event.preventDefault();
      this.#handlers.zoom(Math.exp(event.deltaY / 300), placeIn(event, event.clientX));
    } else if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      event.preventDefault();
      this.#handlers.pan(event.deltaX || event.deltaY);
    }
  }
}

/**
 * Return a position in the plot, from its left edge.
 *
 * @param {MouseEvent} event
 * @param {number} clientX
 */
function placeIn(event, clientX) {
  const element = /** @type {Element} */ (event.currentTarget ?? event.target);
  const plot = element.querySelector(".timeline-grid") ?? element;
  return clientX - plot.getBoundingClientRect().left;
}
