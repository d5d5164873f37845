/** The chart of the timeline: lanes with bars, an axis and the line of now. */

import { groupLink, rolloutLink } from "../../elements/links.js";
import { count, dateTime } from "../../page/formatting.js";
import { preferences } from "../../page/preferences.js";
import { address } from "../../page/router.js";
import { h, svg } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import { typeAppearance } from "../../elements/event_facts.js";
import { barShapes, hatches, labelOf, labelShape, ROW_HEIGHT } from "./event_bar.js";
import { eventWords } from "./event_card.js";
import { cardAt } from "./hover_card.js";
import { LANES_SHOWN } from "./lanes.js";
import { grid, scale } from "./timeline_grid.js";
import { waveLink } from "./wave_bar.js";

/** @typedef {import("./lanes.js").Lane} Lane */
/** @typedef {import("./lanes.js").Bar} Bar */
/** @typedef {import("./rollout_lanes.js").RolloutLane} RolloutLane */
/** @typedef {import("./time_range.js").TimeRange} TimeRange */
/** @typedef {import("../../page/tree.js").Described} Described */
/** @typedef {import("../../types").Child} Child */

/**
 * @typedef {object} Picture
 * @property {TimeRange} range
 * @property {number} now
 * @property {number} width  of the plot, in pixels
 * @property {RolloutLane[]} rollouts
 * @property {Lane[]} lanes
 * @property {boolean} showsAllLanes
 * @property {(key: string) => boolean} isSeen  whether a lane is in or near the viewport
 * @property {string | null} current  the bar that Tab reaches
 * @property {import("./hover_card.js").Card | null} card
 */

/**
 * @typedef {object} ChartActions
 * @property {(key: string) => void} unfold
 * @property {() => void} showAllLanes
 */

/**
 * @param {Picture} picture
 * @param {ChartActions} actions
 */
export function chart(picture, actions) {
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
        "aria-label": "Events by group and update domain, below the coming waves of rollouts",
      },
      picture.rollouts.map((lane) => rolloutLane(lane, picture, x, actions)),
      lanes.map((lane) => groupLane(lane, picture, x, actions)),
    ),
    left.length > 0 &&
      h(
        "button",
        { type: "button", class: "quiet timeline-more", onclick: actions.showAllLanes },
        `Show ${count(left.length, "more lane")} with ${count(
          left.reduce((sum, lane) => sum + lane.bars.length + lane.hidden, 0),
          "event",
        )}`,
      ),
    picture.card && cardAt(picture.card, picture.width),
  ];
}

/**
 * @param {Lane} lane
 * @param {Picture} picture
 * @param {(at: number) => number} x
 * @param {ChartActions} actions
 */
function groupLane(lane, picture, x, actions) {
  return drawnLane(lane, picture, actions, {
    isFirst: lane.isFirst,
    noun: "event",
    name: [
      h("span", { class: lane.isFirst ? "lane-group" : "lane-group again" }, groupName(lane)),
      lane.group !== null && h("span", { class: "small muted" }, `domain ${lane.domain}`),
    ],
    bars: () => lane.bars.map((bar) => cachedBar(bar, picture, x)),
  });
}

/**
 * @param {RolloutLane} lane
 * @param {Picture} picture
 * @param {(at: number) => number} x
 * @param {ChartActions} actions
 */
function rolloutLane(lane, picture, x, actions) {
  return drawnLane(lane, picture, actions, {
    isFirst: true,
    noun: "wave",
    name: [
      h("span", { class: "lane-group" }, "rollout ", rolloutLink(lane.rollout.id ?? "")),
      h("span", { class: "small muted" }, `${lane.rollout.action}, expected`),
    ],
    bars: () => lane.bars.map((bar) => waveLink(bar, picture, x)),
  });
}

/**
 * @param {Lane | RolloutLane} lane
 * @param {Picture} picture
 * @param {ChartActions} actions
 * @param {{ isFirst: boolean, noun: string, name: Child, bars: () => Child }} parts
 */
function drawnLane(lane, picture, actions, { isFirst, noun, name, bars }) {
  const isDrawn = picture.isSeen(lane.key) || lane.bars.some((bar) => bar.key === picture.current);
  return h(
    "div",
    { key: lane.key, class: isFirst ? "lane first" : "lane", "data-lane": lane.key },
    h("div", { class: "lane-name" }, name),
    h(
      "div",
      { class: "lane-plot" },
      svg(
        "svg",
        { width: picture.width, height: lane.rows * ROW_HEIGHT, class: "lane-bars" },
        isDrawn && bars(),
      ),
      lane.hidden > 0 &&
        h(
          "button",
          { type: "button", class: "quiet small", onclick: () => actions.unfold(lane.key) },
          `${count(lane.hidden, `more ${noun}`)} in this lane`,
        ),
    ),
  );
}

/** @param {Lane} lane */
function groupName(lane) {
  const of =
    copy.projects.size > 1 && lane.project
      ? h("span", { class: "small muted name" }, ` ${lane.project}`)
      : null;
  return [lane.group === null ? "standalone" : groupLink(lane.group), of];
}

/** A cache of drawn bars: most stay the same while the line of now moves. @type {WeakMap<Bar["event"], { key: string, described: Described }>} */
const barCache = new WeakMap();

/**
 * @param {Bar} bar
 * @param {Picture} picture
 * @param {(at: number) => number} x
 */
function cachedBar(bar, picture, x) {
  const { range, width, current, card } = picture;
  const { id } = bar.event;
  const key = [
    ...[range.from, range.to, width, bar.to, bar.row, bar.room],
    ...[current === id, card?.bar.key === id, preferences.zone],
  ].join(" ");
  const kept = barCache.get(bar.event);
  if (kept?.key === key) return kept.described;
  const described = barLink(bar, picture, x);
  barCache.set(bar.event, { key, described });
  return described;
}

/** @type {WeakMap<Bar["event"], { zone: string, words: string }>} */
const descriptions = new WeakMap();

/** @param {Bar["event"]} event */
function descriptionOf(event) {
  const known = descriptions.get(event);
  if (known?.zone === preferences.zone) return known.words;
  const words = eventWords(event, (at) => dateTime(at));
  descriptions.set(event, { zone: preferences.zone, words });
  return words;
}

/**
 * @param {Bar} bar
 * @param {Picture} picture
 * @param {(at: number) => number} x
 */
function barLink(bar, picture, x) {
  const { event } = bar;
  const isShown = picture.card?.bar.key === event.id;
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
        "data-bar": event.id,
        href: address("/events/{id}", { id: event.id }),
        tabindex: picture.current === event.id ? 0 : -1,
        "aria-label": descriptionOf(event),
        "aria-describedby": isShown ? "bar-card" : null,
      },
      barShapes(bar, x, picture.width, label),
    ),
    labelShape(label),
  );
}
