/** The timeline as a picture: lanes with bars, an axis, and the line of now. */

import { groupLink } from "../../elements/links.js";
import { count, dateTime, timeOfDay } from "../../page/formatting.js";
import { preferences } from "../../page/preferences.js";
import { address } from "../../page/router.js";
import { ticks } from "../../page/ticks.js";
import { h, svg } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import { typeAppearance } from "../../elements/event_facts.js";
import { barShapes, hatches, labelOf, labelShape, ROW_HEIGHT } from "./event_bar.js";
import { eventCard, eventWords } from "./event_card.js";
import { LANES_SHOWN } from "./lanes.js";

/** @typedef {import("./lanes.js").Lane} Lane */
/** @typedef {import("./lanes.js").Bar} Bar */
/** @typedef {import("./time_range.js").TimeRange} TimeRange */
/** @typedef {import("../../page/tree.js").Described} Described */

/**
 * @typedef {object} Picture
 * @property {TimeRange} range
 * @property {number} now
 * @property {number} width  of the plot, in pixels
 * @property {Lane[]} lanes
 * @property {boolean} showsAllLanes
 * @property {(key: string) => boolean} isSeen  whether a lane is on the screen or near it
 * @property {string | null} current  the event whose bar the tab key reaches
 * @property {{ bar: Bar, left: number, top: number } | null} card
 */

/**
 * @typedef {object} Deeds
 * @property {(key: string) => void} unfold
 * @property {() => void} showAllLanes
 */

/**
 * @param {Picture} picture
 * @param {Deeds} deeds
 */
export function chart(picture, deeds) {
  const x = scale(picture);
  const lanes = picture.showsAllLanes ? picture.lanes : picture.lanes.slice(0, LANES_SHOWN);
  const left = picture.lanes.slice(lanes.length);
  return [
    hatches(),
    grid(picture, x),
    h(
      "div",
      {
        class: "timeline-lanes",
        role: "group",
        "aria-label": "Events as bars, in lanes by group and update domain",
      },
      lanes.map((lane) => laneOf(lane, picture, x, deeds)),
    ),
    left.length > 0 &&
      h(
        "button",
        { type: "button", class: "quiet timeline-more", onclick: deeds.showAllLanes },
        `Show ${count(left.length, "more lane")} with ${count(
          left.reduce((sum, lane) => sum + lane.bars.length + lane.hidden, 0),
          "event",
        )}`,
      ),
    picture.card && cardAt(picture.card, picture.width),
  ];
}

/** @param {{ range: TimeRange, width: number }} picture */
export function scale({ range, width }) {
  const perMillisecond = width / (range.to - range.from);
  return (/** @type {number} */ at) => Math.round((at - range.from) * perMillisecond * 10) / 10;
}

/**
 * @param {Picture} picture
 * @param {(at: number) => number} x
 */
function grid({ range, now, width }, x) {
  const isSeen = now >= range.from && now <= range.to;
  return h(
    "div",
    { class: "timeline-grid", "aria-hidden": "true" },
    svg(
      "svg",
      { class: "timeline-axis", width, height: 28 },
      ticks(range, apart(range, width)).map((tick) =>
        svg(
          "text",
          {
            key: tick.at,
            class: tick.isDay ? "tick day" : "tick",
            x: x(tick.at),
            y: 18,
            "text-anchor": "middle",
          },
          tick.label,
        ),
      ),
    ),
    h(
      "div",
      { class: "timeline-lines" },
      ticks(range, apart(range, width)).map((tick) =>
        h("i", { key: tick.at, class: tick.isDay ? "line day" : "line", style: { left: `${x(tick.at)}px` } }),
      ),
      isSeen &&
        h(
          "i",
          { key: "now", class: "line now", style: { left: `${x(now)}px` } },
          h("b", null, `now ${timeOfDay(now)}`),
        ),
    ),
  );
}

/**
 * @param {Lane} lane
 * @param {Picture} picture
 * @param {(at: number) => number} x
 * @param {Deeds} deeds
 */
function laneOf(lane, picture, x, deeds) {
  return h(
    "div",
    { key: lane.key, class: lane.isFirst ? "lane first" : "lane", "data-lane": lane.key },
    h(
      "div",
      { class: "lane-name" },
      h("span", { class: lane.isFirst ? "lane-group" : "lane-group again" }, groupName(lane)),
      lane.group !== null && h("span", { class: "small muted" }, `domain ${lane.domain}`),
    ),
    h(
      "div",
      { class: "lane-plot" },
      svg(
        "svg",
        { width: picture.width, height: lane.rows * ROW_HEIGHT, class: "lane-bars" },
        isDrawn(lane, picture) && lane.bars.map((bar) => keptBar(bar, picture, x)),
      ),
      lane.hidden > 0 &&
        h(
          "button",
          { type: "button", class: "quiet small", onclick: () => deeds.unfold(lane.key) },
          `${count(lane.hidden, "more event")} in this lane`,
        ),
    ),
  );
}

/**
 * @param {Lane} lane
 * @param {Picture} picture
 */
const isDrawn = (lane, picture) =>
  picture.isSeen(lane.key) || lane.bars.some((bar) => bar.event.id === picture.current);

/** @param {Lane} lane */
function groupName(lane) {
  const of =
    copy.projects.size > 1 && lane.project
      ? h("span", { class: "small muted name" }, ` ${lane.project}`)
      : null;
  return [lane.group === null ? "standalone" : groupLink(lane.group), of];
}

/** How each event's bar was drawn last: most are the same when only the line of now has moved. @type {WeakMap<Bar["event"], { key: string, described: Described }>} */
const drawnBars = new WeakMap();

/**
 * @param {Bar} bar
 * @param {Picture} picture
 * @param {(at: number) => number} x
 */
function keptBar(bar, picture, x) {
  const { range, width, current, card } = picture;
  const { id } = bar.event;
  const key = [
    ...[range.from, range.to, width, bar.to, bar.row, bar.room],
    ...[current === id, card?.bar.event.id === id, preferences.zone],
  ].join(" ");
  const kept = drawnBars.get(bar.event);
  if (kept?.key === key) return kept.described;
  const described = barLink(bar, picture, x);
  drawnBars.set(bar.event, { key, described });
  return described;
}

/** @type {WeakMap<Bar["event"], { zone: string, words: string }>} */
const spoken = new WeakMap();

/** @param {Bar["event"]} event */
function wordsOf(event) {
  const known = spoken.get(event);
  if (known?.zone === preferences.zone) return known.words;
  const words = eventWords(event, (at) => dateTime(at));
  spoken.set(event, { zone: preferences.zone, words });
  return words;
}

/**
 * @param {Bar} bar
 * @param {Picture} picture
 * @param {(at: number) => number} x
 */
function barLink(bar, picture, x) {
  const { event } = bar;
  const isShown = picture.card?.bar.event.id === event.id;
  const label = labelOf(bar, x, picture.width);
  return svg(
    "g",
    {
      key: event.id,
      class: `bar${bar.isOpen ? "" : " past"}${event.started_at || bar.isOpen ? "" : " called-off"}`,
      "data-tone": typeAppearance(event.type).tone,
      transform: `translate(0 ${bar.row * ROW_HEIGHT})`,
    },
    svg(
      "a",
      {
        "data-event": event.id,
        href: address("/events/{id}", { id: event.id }),
        tabindex: picture.current === event.id ? 0 : -1,
        "aria-label": wordsOf(event),
        "aria-describedby": isShown ? "event-card" : null,
      },
      barShapes(bar, x, picture.width, label),
    ),
    labelShape(label),
  );
}

/**
 * @param {{ bar: Bar, left: number, top: number }} card
 * @param {number} width
 */
function cardAt({ bar, left, top }, width) {
  const room = Math.max(0, width - 320);
  return eventCard(bar.event, { left: `${Math.max(0, Math.min(left, room))}px`, top: `${top}px` });
}

// As many pixels does a label need.
const ROOM = 80;

/**
 * Return how far the lines of the axis are apart at least, in milliseconds.
 *
 * @param {{ from: number, to: number }} range
 * @param {number} width  pixels
 */
const apart = (range, width) => ((range.to - range.from) * ROOM) / Math.max(width, ROOM);
