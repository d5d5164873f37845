/** The card of the bar that has the pointer or the focus. */

import { h } from "../../page/tree.js";
import { eventFacts } from "./event_card.js";
import { waveFacts } from "./wave_card.js";

/** @typedef {import("./lanes.js").Bar} Bar */
/** @typedef {import("./coming_waves.js").WaveBar} WaveBar */
/** @typedef {{ bar: Bar | WaveBar, left: number, top: number }} Card  pixels in the timeline */

// The width of a card, in pixels.
const WIDTH = 320;

/** Dispatches `changed`. */
export class HoverCard extends EventTarget {
  /** @type {{ key: string, left: number, top: number } | null} */
  #shown = null;

  get isShown() {
    return this.#shown !== null;
  }

  /**
   * Return the card to draw, or null if its bar is gone.
   *
   * @param {(key: string) => Bar | WaveBar | undefined} find
   * @returns {Card | null}
   */
  among(find) {
    const bar = this.#shown && find(this.#shown.key);
    return bar && this.#shown ? { bar, left: this.#shown.left, top: this.#shown.top } : null;
  }

  /**
   * Show the card of a link, below it.
   *
   * @param {Element | null} link
   */
  point(link) {
    if (!link) return this.hide();
    const key = link.getAttribute("data-bar") ?? "";
    if (this.#shown?.key === key) return;
    const box = link.closest(".timeline")?.getBoundingClientRect();
    const plot = link.closest(".lane-plot")?.getBoundingClientRect();
    if (!box || !plot) return;
    const { left, bottom } = link.getBoundingClientRect();
    this.#shown = { key, left: Math.max(left, plot.left) - box.left, top: bottom - box.top + 4 };
    this.dispatchEvent(new Event("changed"));
  }

  hide() {
    if (!this.#shown) return;
    this.#shown = null;
    this.dispatchEvent(new Event("changed"));
  }
}

/**
 * @param {Card} card
 * @param {number} width  of the plot
 */
export function cardAt({ bar, left, top }, width) {
  const room = Math.max(0, width - WIDTH);
  const style = { left: `${Math.max(0, Math.min(left, room))}px`, top: `${top}px` };
  return h(
    "div",
    { class: "bar-card", role: "tooltip", id: "bar-card", style },
    "event" in bar ? eventFacts(bar.event) : waveFacts(bar),
  );
}
