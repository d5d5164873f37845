import { timeOfDay } from "../../page/formatting.js";
import { define, LiveElement } from "../../page/live_element.js";
import { preferences } from "../../page/preferences.js";
import { ticks } from "../../page/ticks.js";
import { h, svg } from "../../page/tree.js";
import { clock } from "../../service/connected.js";
import { typeAppearance } from "../../elements/event_facts.js";
import { barShapes, hatches, ROW_HEIGHT } from "../timeline/event_bar.js";
import { eventWords } from "../timeline/event_card.js";
import { barOf, drawnTo } from "../timeline/lanes.js";
import { legend } from "../timeline/legend.js";

/** @typedef {import("../../types").EventDetail} EventDetail */

const AXIS = 22;
const MARGIN = 0.06;
// The width of a tick label, in pixels.
const LABEL_ROOM = 80;

/** One event as a bar over its whole life. */
class EventStrip extends LiveElement {
  /** @type {EventDetail | null} */
  #event = null;
  #width = 800;

  get event() {
    return this.#event;
  }

  set event(value) {
    this.#event = value;
    this.redraw();
  }

  opened() {
    this.watch(clock, "tick");
    this.watch(preferences, "changed");
    const measured = new ResizeObserver(() => this.#measure());
    measured.observe(this);
    this.ended.addEventListener("abort", () => measured.disconnect());
  }

  drawn() {
    if (!this.#event) return null;
    const now = clock.now();
    const bar = barOf(this.#event, now);
    const length = Math.max(60_000, drawnTo(bar) - bar.from);
    const range = {
      from: bar.from - length * MARGIN,
      to: drawnTo(bar) + length * MARGIN * 2,
      follows: false,
    };
    const x = (/** @type {number} */ at) => ((at - range.from) * this.#width) / (range.to - range.from);
    const isSeen = now >= range.from && now <= range.to;
    return h(
      "div",
      { class: "card" },
      hatches(),
      svg(
        "svg",
        {
          class: "event-strip bar",
          "data-tone": typeAppearance(this.#event.type).tone,
          width: this.#width,
          height: AXIS + ROW_HEIGHT,
          role: "img",
          "aria-label": eventWords(this.#event, (at) => timeOfDay(at)),
        },
        ticks(range, ((range.to - range.from) * LABEL_ROOM) / Math.max(this.#width, LABEL_ROOM)).map(
          (tick) => [
            svg("path", {
              key: `line ${tick.at}`,
              class: "strip-line",
              d: `M${x(tick.at)} ${AXIS} v${ROW_HEIGHT}`,
            }),
            svg(
              "text",
              { key: tick.at, class: "tick", x: x(tick.at), y: 14, "text-anchor": "middle" },
              tick.label,
            ),
          ],
        ),
        svg("g", { transform: `translate(0 ${AXIS})` }, barShapes(bar, x, this.#width)),
        isSeen && svg("path", { class: "strip-now", d: `M${x(now)} ${AXIS} v${ROW_HEIGHT}` }),
      ),
      legend({ types: [], tone: typeAppearance(this.#event.type).tone }),
    );
  }

  #measure() {
    const width = Math.floor(this.clientWidth - 34);
    if (width <= 0 || width === this.#width) return;
    this.#width = width;
    this.redraw();
  }
}

define("fw-event-strip", EventStrip);
