/** The timeline: events as bars from announced to gone, with what was promised and what was delivered. */

import { commandText } from "../../elements/command_text.js";
import { count, dateTime } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { preferences } from "../../page/preferences.js";
import { router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { clock } from "../../service/connected.js";
import { chart, scale } from "./timeline_chart.js";
import { eventTable } from "./event_table.js";
import { Gestures } from "./gestures.js";
import { barOf, drawnTo, LANES_SHOWN, lanesOf } from "./lanes.js";
import { LanesInSight } from "./lanes_in_sight.js";
import { legend } from "./legend.js";
import { SeenEvents } from "./seen_events.js";
import { following, moved, queryOf, instant, rangeOf, SPANS, zoomed } from "./time_range.js";

/** @typedef {import("./lanes.js").Bar} Bar */
/** @typedef {import("./time_range.js").TimeRange} TimeRange */

const ZOOM = 1.5;
const STEP = 0.2;
// What is free between two bars of a row, in pixels.
const GAP = 6;
// The address is written when the hand rests: browsers refuse pages that do it in every frame.
const REST = 250;
// A fast clock moves the line of now so often, if drawing takes less than a tenth of that time.
const FRAME = 100;

class TimelineView extends View {
  /** What is shown while somebody drags; else the address says it. @type {TimeRange | null} */
  #range = null;
  #width = 800;
  /** @type {SeenEvents | null} */
  #events = null;
  /** @type {Set<string>} */
  #opened = new Set();
  #showsAllLanes = false;
  /** @type {string | null} */
  #current = null;
  /** @type {{ id: string, left: number, top: number } | null} */
  #card = null;
  #timer = 0;
  #drawnIn = 0;
  #inSight = new LanesInSight();
  /** Those that are in a lane, row by row. @type {Bar[]} */
  #laid = [];
  /** In the order of time. @type {Bar[]} */
  #bars = [];
  #gestures = new Gestures({
    pan: (pixels) => this.#show(moved(this.#shown(), (pixels * this.#length()) / this.#width)),
    zoom: (factor, x) => this.#show(zoomed(this.#shown(), factor, clock.now(), this.#timeAt(x))),
  });

  opened() {
    super.opened();
    this.#events = new SeenEvents(this.ended);
    this.watch(this.#events, "changed");
    this.watch(clock, "tick");
    this.watch(preferences, "changed");
    router.addEventListener("query", () => (this.#range = null), { signal: this.ended });
    const frames = setInterval(() => this.#moveNow(), FRAME);
    this.ended.addEventListener("abort", () => {
      clearInterval(frames);
      clearTimeout(this.#timer);
      this.#inSight.end();
    });
    this.watch(this.#inSight, "changed");
    this.#gestures.listenToWheel(this, this.ended);
    requestAnimationFrame(() => this.#measureAlways());
  }

  drawn() {
    const began = performance.now();
    const range = this.#shown();
    this.#events?.want(range.from);
    const bars = this.#inRange(range);
    const isTable = this.query.get("as") === "table";
    const described = [
      h("h1", null, "Timeline"),
      this.#toolbar(range),
      this.#trouble(),
      isTable ? eventTable(bars.toReversed().map((bar) => bar.event)) : this.#chart(bars, range),
      !bars.length && this.#empty(),
      !isTable && legend(),
      commandText([
        "event",
        "list",
        "--all",
        "--notices",
        "--since",
        instant(range.from),
        "--until",
        instant(range.to),
      ]),
    ];
    this.#drawnIn = performance.now() - began;
    return described;
  }

  /** @param {TimeRange} range */
  #toolbar(range) {
    const isTable = this.query.get("as") === "table";
    const length = range.to - range.from;
    return h(
      "div",
      { class: "timeline-tools row" },
      h(
        "div",
        { class: "joined", role: "group", "aria-label": "Range" },
        SPANS.map((span) =>
          button(span.label, () => this.#show(following(span.length, clock.now()), true), {
            key: span.name,
            "aria-pressed": String(range.follows && length === span.length),
          }),
        ),
      ),
      h(
        "div",
        { class: "joined", role: "group", "aria-label": "Zoom and move" },
        button("◀", () => this.#step(-STEP), { "aria-label": "Earlier", key: "earlier" }),
        button("−", () => this.#zoom(ZOOM), { "aria-label": "Zoom out", key: "out" }),
        button("+", () => this.#zoom(1 / ZOOM), { "aria-label": "Zoom in", key: "in" }),
        button("▶", () => this.#step(STEP), { "aria-label": "Later", key: "later" }),
      ),
      button("Now", () => this.#show(following(length, clock.now()), true), {
        "aria-pressed": String(range.follows),
        title: "Go with the clock",
      }),
      h("input", {
        type: "search",
        "aria-label": "Only events that name",
        placeholder: "machine, group, type …",
        ".value": this.query.get("q") ?? "",
        oninput: (/** @type {any} */ input) => router.setQuery({ q: input.target.value }),
      }),
      button(isTable ? "Show as bars" : "Show as a table", () =>
        router.setQuery({ as: isTable ? null : "table" }),
      ),
      h(
        "span",
        { class: "small muted number timeline-range" },
        `${dateTime(range.from)} – ${dateTime(range.to)}`,
      ),
    );
  }

  #trouble() {
    const events = this.#events;
    if (events?.trouble) {
      return h(
        "p",
        { class: "notice", "data-tone": "danger", role: "alert" },
        `Past events cannot be read: ${events.trouble}`,
      );
    }
    if (events?.isCut) {
      return h(
        "p",
        { class: "notice", "data-tone": "warn" },
        "There are more past events in this range than can be drawn; the newest are shown. Choose a shorter range.",
      );
    }
    return null;
  }

  #empty() {
    if (this.#events?.isReading) return h("p", { class: "muted", role: "status" }, "Reading past events …");
    return h(
      "div",
      { class: "empty" },
      h("h2", null, "Nothing is announced in this range"),
      h("p", null, "Choose a longer range, or announce something, for instance:"),
      commandText(["host", "maintenance", "HOST", "--action", "freeze"]),
    );
  }

  /**
   * @param {Bar[]} bars
   * @param {TimeRange} range
   */
  #chart(bars, range) {
    const gap = (GAP * (range.to - range.from)) / this.#width;
    const lanes = lanesOf(bars, range, gap, this.#opened);
    this.#laid = (this.#showsAllLanes ? lanes : lanes.slice(0, LANES_SHOWN)).flatMap((lane) => lane.bars);
    requestAnimationFrame(() => this.#inSight.watch(this.querySelectorAll(".lane")));
    const card = this.#card && bars.find((bar) => bar.event.id === this.#card?.id);
    const picture = {
      range,
      now: clock.now(),
      width: this.#width,
      lanes,
      showsAllLanes: this.#showsAllLanes,
      isSeen: (/** @type {string} */ key) => this.#inSight.has(key),
      current: this.#reachable(bars),
      card: card && this.#card ? { bar: card, left: this.#card.left, top: this.#card.top } : null,
    };
    return h(
      "div",
      {
        class: "timeline card",
        "aria-busy": this.#events?.isFirstReading ? "true" : null,
        tabindex: 0,
        role: "region",
        "aria-label": `Timeline with ${count(bars.length, "event")}. Arrow keys move in time, plus and minus zoom, N is now; tab reaches the bars.`,
        onkeydown: (/** @type {KeyboardEvent} */ event) => this.#key(event),
        onpointerover: (/** @type {PointerEvent} */ event) => this.#point(event.target),
        onpointerleave: () => this.#hideCard(),
        onfocusin: (/** @type {FocusEvent} */ event) => this.#focused(event),
        onfocusout: () => this.#hideCard(),
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
  #inRange(range) {
    const now = clock.now();
    const wanted = (this.query.get("q") ?? "").trim().toLowerCase();
    this.#bars = (this.#events?.values() ?? [])
      .filter((event) => !wanted || matches(event, wanted))
      .map((event) => barOf(event, now))
      .filter((bar) => bar.from <= range.to && drawnTo(bar) >= range.from)
      .sort((one, other) => one.from - other.from || (one.event.id < other.event.id ? -1 : 1));
    return this.#bars;
  }

  /** The bar that the tab key reaches: the one that had the focus, or the next that is not over. @param {Bar[]} bars */
  #reachable(bars) {
    if (bars.some((bar) => bar.event.id === this.#current)) return this.#current;
    return (bars.find((bar) => bar.isOpen) ?? bars[0])?.event.id ?? null;
  }

  #shown() {
    const now = clock.now();
    if (this.#range && !this.#range.follows) return this.#range;
    if (this.#range) return following(this.#range.to - this.#range.from, now);
    return rangeOf(this.query, now);
  }

  #length() {
    const range = this.#shown();
    return range.to - range.from;
  }

  /** @param {number} x */
  #timeAt(x) {
    return this.#shown().from + (x * this.#length()) / this.#width;
  }

  /**
   * @param {TimeRange} range
   * @param {boolean} [atOnce]
   */
  #show(range, atOnce = false) {
    this.#range = range;
    this.#card = null;
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => router.setQuery(queryOf(range)), atOnce ? 0 : REST);
    this.redraw();
  }

  /** @param {number} part  of what is shown */
  #step(part) {
    this.#show(moved(this.#shown(), part * this.#length()));
  }

  /** @param {number} factor */
  #zoom(factor) {
    this.#show(zoomed(this.#shown(), factor, clock.now()));
  }

  /** @param {KeyboardEvent} event */
  #key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const bar = /** @type {Element} */ (event.target).closest(".bar a");
    const id = bar?.getAttribute("data-event");
    if (event.key === "+" || event.key === "=") this.#zoom(1 / ZOOM);
    else if (event.key === "-") this.#zoom(ZOOM);
    else if (event.key === "n" || event.key === "N") this.#show(following(this.#length(), clock.now()), true);
    else if (event.key === "Escape" && this.#card) this.#hideCard();
    else if (id && !event.shiftKey && this.#between(id, event.key)) void 0;
    else if (event.key === "ArrowLeft") this.#step(-STEP);
    else if (event.key === "ArrowRight") this.#step(STEP);
    else return;
    event.preventDefault();
  }

  /**
   * Move the focus between bars: left and right in the order of time, up and down between rows.
   *
   * @param {string} id
   * @param {string} key
   */
  #between(id, key) {
    const laid = this.#laid.map((bar) => bar.event.id);
    const known = new Set(laid);
    const inTime = this.#bars.map((bar) => bar.event.id).filter((each) => known.has(each));
    const wanted = {
      ArrowLeft: () => inTime[inTime.indexOf(id) - 1],
      ArrowRight: () => inTime[inTime.indexOf(id) + 1],
      Home: () => inTime[0],
      End: () => inTime.at(-1),
      ArrowUp: () => laid[laid.indexOf(id) - 1],
      ArrowDown: () => laid[laid.indexOf(id) + 1],
    }[key];
    if (!wanted) return false;
    const next = wanted();
    if (next) this.#focus(next);
    return true;
  }

  /** @param {string} id */
  #focus(id) {
    this.#current = id;
    this.redraw();
    // A bar that was out of sight is drawn first.
    requestAnimationFrame(() => {
      const bar = this.querySelector(`.bar a[data-event="${CSS.escape(id)}"]`);
      /** @type {HTMLElement | null} */ (bar)?.focus();
    });
  }

  /** @param {FocusEvent} event */
  #focused(event) {
    const bar = /** @type {Element} */ (event.target).closest(".bar a");
    if (!bar) return;
    this.#current = bar.getAttribute("data-event");
    if (bar.matches(":focus-visible")) this.#point(bar);
    else this.redraw();
  }

  /** Show the card of what the pointer or the focus is on. @param {EventTarget | null} target */
  #point(target) {
    const bar = /** @type {Element | null} */ (target)?.closest?.(".bar a");
    if (!bar) return this.#hideCard();
    const id = bar.getAttribute("data-event") ?? "";
    if (this.#card?.id === id) return;
    const found = this.#bars.find((each) => each.event.id === id);
    const box = this.querySelector(".timeline")?.getBoundingClientRect();
    const plot = this.querySelector(".timeline-grid")?.getBoundingClientRect();
    if (!found || !box || !plot) return;
    const x = scale({ range: this.#shown(), width: this.#width });
    const left = plot.left - box.left + Math.max(0, x(found.from));
    this.#card = { id, left, top: bar.getBoundingClientRect().bottom - box.top + 4 };
    this.redraw();
  }

  #hideCard() {
    if (!this.#card) return;
    this.#card = null;
    this.redraw();
  }

  /** @param {MouseEvent} event */
  #click(event) {
    this.#gestures.listeners.onclick(event);
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.shiftKey) return;
    const bar = /** @type {Element} */ (event.target).closest(".bar a");
    if (!bar) return;
    event.preventDefault();
    router.go(bar.getAttribute("href") ?? "");
  }

  /** Between two ticks a fast clock goes on. */
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

/**
 * @param {import("../../elements/event_facts.js").AnyEvent} event
 * @param {string} wanted
 */
function matches(event, wanted) {
  const words = [
    event.type,
    event.group ?? "standalone",
    event.project ?? "",
    event.id,
    event.order,
    ...event.resources,
  ];
  return words.some((word) => word.toLowerCase().includes(wanted));
}

/**
 * @param {string} label
 * @param {() => void} onclick
 * @param {{ [name: string]: any }} [props]
 */
const button = (label, onclick, props = {}) => h("button", { type: "button", onclick, ...props }, label);

define("fw-timeline-view", TimelineView);
