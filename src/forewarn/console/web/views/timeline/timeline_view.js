/** The timeline: events as bars from announcement to end, with promised and delivered notice. */

import { count } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { preferences } from "../../page/preferences.js";
import { router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { clock } from "../../service/connected.js";
import { BarFocus } from "./bar_focus.js";
import { comingWaveTable } from "./coming_wave_table.js";
import { ComingWaves, waveMatches } from "./coming_waves.js";
import { eventTable } from "./event_table.js";
import { Gestures } from "./gestures.js";
import { HoverCard } from "./hover_card.js";
import { barOf, inRange, LANES_SHOWN, lanesOf } from "./lanes.js";
import { VisibleLanes } from "./visible_lanes.js";
import { legend } from "./legend.js";
import { rolloutLanesOf } from "./rollout_lanes.js";
import { eventMatches, EventRange } from "./event_range.js";
import { ShownRange } from "./shown_range.js";
import { chart } from "./timeline_chart.js";
import { emptyRange, missingEvents, sameAsCommand } from "./timeline_notes.js";
import { STEP, timelineTools, ZOOM } from "./timeline_tools.js";

/** @typedef {import("./coming_waves.js").WaveBar} WaveBar */
/** @typedef {import("./lanes.js").Bar} Bar */
/** @typedef {import("./time_range.js").TimeRange} TimeRange */

// The gap between two bars of a row, in pixels.
const GAP = 6;
// With a fast clock, the interval between redraws in milliseconds, if a redraw takes less than a tenth of it.
const FRAME = 100;

class TimelineView extends View {
  /** @type {ShownRange | null} */
  #range = null;
  #width = 800;
  /** @type {EventRange | null} */
  #events = null;
  /** @type {ComingWaves | null} */
  #waves = null;
  /** @type {Set<string>} */
  #opened = new Set();
  #showsAllLanes = false;
  #focus = new BarFocus();
  #card = new HoverCard();
  #drawnIn = 0;
  #visibleLanes = new VisibleLanes();
  #gestures = new Gestures({
    pan: (pixels) => this.#range?.step(pixels / this.#width),
    zoom: (factor, x) => this.#range?.zoom(factor, x / this.#width),
  });

  opened() {
    super.opened();
    const range = (this.#range = new ShownRange(this.ended));
    range.addEventListener("changed", () => this.#card.hide());
    this.watch(range, "changed");
    this.#events = new EventRange(this.ended);
    this.#waves = new ComingWaves(this.ended);
    this.watch(this.#events, "changed");
    this.watch(this.#waves, "changed");
    this.watch(this.#card, "changed");
    this.watch(clock, "tick");
    this.watch(preferences, "changed");
    const frames = setInterval(() => this.#moveNow(), FRAME);
    this.ended.addEventListener("abort", () => {
      clearInterval(frames);
      this.#visibleLanes.end();
    });
    this.watch(this.#visibleLanes, "changed");
    this.#gestures.listenToWheel(this, this.ended);
    requestAnimationFrame(() => this.#measureAlways());
  }

  drawn() {
    const began = performance.now();
    const [shown, events] = [this.#range, this.#events];
    if (!shown || !events) return null;
    const range = shown.value;
    events.want(range.from);
    const bars = this.#bars(range);
    const waves = this.#comingWaves(range);
    const isTable = this.query.get("as") === "table";
    const described = [
      h("h1", null, "Timeline"),
      timelineTools(shown, this.query),
      missingEvents(events),
      isTable
        ? [eventTable(bars.toReversed().map((bar) => bar.event)), comingWaveTable(waves)]
        : this.#chart(bars, waves, range),
      !bars.length && !waves.length && emptyRange(events, this.#wanted),
      !isTable && legend({ hasWaves: waves.length > 0 }),
      sameAsCommand(range),
    ];
    this.#drawnIn = performance.now() - began;
    return described;
  }

  /**
   * @param {Bar[]} bars
   * @param {WaveBar[]} waves
   * @param {TimeRange} range
   */
  #chart(bars, waves, range) {
    const timeOf = (/** @type {number} */ pixels) => (pixels * (range.to - range.from)) / this.#width;
    const lanes = lanesOf(bars, timeOf(GAP), this.#opened);
    const rollouts = rolloutLanesOf(waves, timeOf, this.#opened);
    const shown = this.#showsAllLanes ? lanes : lanes.slice(0, LANES_SHOWN);
    this.#focus.take([...rollouts.flatMap((lane) => lane.bars), ...shown.flatMap((lane) => lane.bars)]);
    requestAnimationFrame(() => this.#visibleLanes.watch(this.querySelectorAll(".lane")));
    const picture = {
      range,
      now: clock.now(),
      width: this.#width,
      rollouts,
      lanes,
      showsAllLanes: this.#showsAllLanes,
      isSeen: (/** @type {string} */ key) => this.#visibleLanes.has(key),
      current: this.#focus.reachable,
      card: this.#card.among((key) => [...bars, ...waves].find((bar) => bar.key === key)),
    };
    const seen = [count(bars.length, "event"), waves.length && count(waves.length, "coming wave")];
    return h(
      "div",
      {
        class: "timeline card",
        "aria-busy": this.#events?.isFirstReading ? "true" : null,
        tabindex: 0,
        role: "region",
        "aria-label": `Timeline with ${seen.filter((each) => each).join(" and ")}. Arrow keys move in time, plus and minus zoom, N returns to now. Tab moves to the bars.`,
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
        onpointerover: (/** @type {PointerEvent} */ event) => this.#card.point(linkAt(event.target)),
        onpointerleave: () => this.#card.hide(),
        onfocusin: (/** @type {FocusEvent} */ event) => this.#focused(linkAt(event.target)),
        onfocusout: () => this.#card.hide(),
        ...this.#gestures.listeners,
        onclick: (/** @type {MouseEvent} */ event) => this.#click(event),
      },
      chart(picture, {
        unfold: (key) => {
          this.#opened.add(key);
          this.redraw();
        },
        showAllLanes: () => {
          this.#showsAllLanes = true;
          this.redraw();
        },
      }),
    );
  }

  /** @param {TimeRange} range */
  #bars(range) {
    const now = clock.now();
    const events = this.#events?.values() ?? [];
    const wanted = this.#wanted;
    return inRange(
      events.filter((event) => !wanted || eventMatches(event, wanted)).map((event) => barOf(event, now)),
      range,
    );
  }

  /** @param {TimeRange} range */
  #comingWaves(range) {
    const waves = this.#waves?.values() ?? [];
    const wanted = this.#wanted;
    return inRange(
      waves.filter((wave) => !wanted || waveMatches(wave, wanted)),
      range,
    );
  }

  get #wanted() {
    return (this.query.get("q") ?? "").trim().toLowerCase();
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const range = this.#range;
    const from = linkAt(event.target)?.getAttribute("data-bar");
    const next = from && !event.shiftKey ? this.#focus.after(from, event.key) : undefined;
    if (event.key === "+" || event.key === "=") range?.zoom(1 / ZOOM);
    else if (event.key === "-") range?.zoom(ZOOM);
    else if (event.key === "n" || event.key === "N") range?.follow();
    else if (event.key === "Escape" && this.#card.isShown) this.#card.hide();
    else if (next) this.#focusOn(next);
    else if (next === undefined && event.key === "ArrowLeft") range?.step(-STEP);
    else if (next === undefined && event.key === "ArrowRight") range?.step(STEP);
    else if (next === undefined) return;
    event.preventDefault();
  }

  /** @param {string} key */
  #focusOn(key) {
    this.#focus.current = key;
    this.redraw();
    // A bar outside the viewport must be drawn first.
    requestAnimationFrame(() => {
      const bar = this.querySelector(`.bar a[data-bar="${CSS.escape(key)}"]`);
      /** @type {HTMLElement | null} */ (bar)?.focus();
    });
  }

  /** @param {Element | null} link */
  #focused(link) {
    if (!link) return;
    this.#focus.current = link.getAttribute("data-bar");
    if (link.matches(":focus-visible")) this.#card.point(link);
    else this.redraw();
  }

  /** @param {MouseEvent} event */
  #click(event) {
    this.#gestures.listeners.onclick(event);
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const link = linkAt(event.target);
    if (!link) return;
    event.preventDefault();
    router.go(link.getAttribute("href") ?? "");
  }

  /** Move the line of now between two ticks of a fast clock. */
  #moveNow() {
    if (document.hidden || clock.speed <= 1 || this.#drawnIn > FRAME / 10) return;
    if (matchMedia("(prefers-reduced-motion: reduce)").matches) return;
    this.redraw();
  }

  #measureAlways() {
    const measured = new ResizeObserver(() => this.#measure());
    measured.observe(this);
    this.ended.addEventListener("abort", () => measured.disconnect());
    this.#measure();
  }

  #measure() {
    const width = Math.floor(this.querySelector(".timeline-grid")?.clientWidth ?? 0);
    if (!width || width === this.#width) return;
    this.#width = width;
    this.redraw();
  }
}

/** The link of a bar. @param {EventTarget | null} target */
const linkAt = (target) => /** @type {Element | null} */ (target)?.closest?.(".bar a") ?? null;

define("fw-timeline-view", TimelineView);
