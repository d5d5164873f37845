/** One event as a bar: hatched notice, solid impact, and the promised and delivered notice below. */

import { noticeOf, promiseAppearance, shortSubject, typeAppearance } from "../../elements/event_facts.js";
import { shortened } from "../../page/formatting.js";
import { svg } from "../../page/tree.js";
import { drawnTo, promisedTo } from "./lanes.js";

/** @typedef {import("./lanes.js").Bar} Bar */
/** @typedef {import("./lanes.js").Placed} Placed */
/** @typedef {(at: number) => number} Scale */

export const ROW_HEIGHT = 32;
export const TOP = 5;
export const HEIGHT = 14;
const STRIP_TOP = TOP + HEIGHT + 2;
const STRIP_HEIGHT = 5;
const MIDDLE = TOP + HEIGHT / 2;
// The approximate width of a letter, in pixels.
const LETTER = 7.2;
const SHORTEST_LABEL = 5;
// The free space after a shortened label, in pixels: its end must be visible.
const SPARE = 24;
// Bars are clipped this far outside the plot. A week at a range of one hour would be 2 million pixels wide.
export const OUTSIDE = 40;

/**
 * Draw the shapes of a bar, without its link.
 *
 * @param {Bar} bar
 * @param {Scale} x
 * @param {number} width  of the whole plot
 * @param {Label | null} [label]  part of the clickable area
 */
export function barShapes(bar, x, width, label = null) {
  const { tone } = typeAppearance(bar.event.type);
  /** @param {number} at */
  const cut = (at) => Math.min(width + OUTSIDE, Math.max(-OUTSIDE, x(at)));
  const from = cut(bar.from);
  const started = bar.started === null ? null : cut(bar.started);
  const to = Math.max(cut(bar.to), from + 5);
  const notBefore = cut(promisedTo(bar));
  const noticeTo = started ?? notBefore;
  return [
    svg("rect", {
      class: "bar-hit",
      x: from - 3,
      y: 0,
      width: Math.max(to, notBefore, label?.to ?? 0) - from + 6,
      height: ROW_HEIGHT,
    }),
    noticeTo > from && rect("bar-notice", from, TOP, noticeTo - from, HEIGHT, `url(#hatch-${tone})`),
    started !== null && rect("bar-impact", started, TOP, Math.max(3, to - started), HEIGHT),
    started === null && to > notBefore && rect("bar-overdue", notBefore, TOP, to - notBefore, HEIGHT),
    strip(bar, from, notBefore, started, x),
    hasNotBefore(bar) &&
      mark("mark-not-before", `M${notBefore} 1 v${STRIP_TOP + STRIP_HEIGHT} M${notBefore} 1 h6 l-6 4 z`),
    approvals(bar, cut),
    deferral(bar, cut),
  ];
}

/**
 * Draw the promised notice as an outline and the delivered notice as its filling.
 *
 * @param {Bar} bar
 * @param {number} from
 * @param {number} notBefore
 * @param {number | null} started
 * @param {Scale} x
 */
function strip(bar, from, notBefore, started, x) {
  const appearance = promiseAppearance(bar.event);
  const notice = noticeOf(bar.event);
  const least = notice && !notice.never ? notice.least_seconds : 0;
  const delivered = started !== null && bar.started !== null && least ? x(bar.started - least * 1000) : null;
  return [
    notBefore > from &&
      svg("rect", {
        class: "bar-promised",
        "data-tone": appearance.tone === "danger" ? "danger" : "idle",
        x: from,
        y: STRIP_TOP,
        width: notBefore - from,
        height: STRIP_HEIGHT,
        rx: 2,
      }),
    started !== null &&
      delivered !== null &&
      svg("rect", {
        class: "bar-delivered",
        "data-tone": appearance.tone,
        x: Math.max(from, delivered),
        y: STRIP_TOP,
        width: Math.max(1, started - Math.max(from, delivered)),
        height: STRIP_HEIGHT,
      }),
  ];
}

/** Whether NotBefore is marked. It is not if the event ended before. @param {Bar} bar */
const hasNotBefore = (bar) => bar.notBefore > bar.from && promisedTo(bar) === bar.notBefore;

/** @typedef {{ text: string, x: number, to: number }} Label */

/** Return the width of a label, in pixels. @param {number} letters */
export const labelRoom = (letters) => letters * LETTER + 12;

/**
 * Return the first text that fits beside a bar or on it, or null.
 *
 * @param {readonly string[]} texts
 * @param {Placed} bar
 * @param {Scale} x
 * @param {number} width
 * @returns {Label | null}
 */
export function labelBeside(texts, bar, x, width) {
  const to = x(bar.to);
  const free = Math.min(width - to, bar.room === Infinity ? width : x(bar.room) - x(0));
  const beside = to >= 0 && texts.find((each) => labelRoom(each.length) <= free);
  if (beside) return { text: beside, x: to + 6, to: to + labelRoom(beside.length) };
  const from = Math.max(0, x(bar.from));
  const on = texts.find((each) => labelRoom(each.length) <= Math.min(width, to) - from);
  return on ? { text: on, x: from + 6, to } : null;
}

/**
 * Return the label of an event, shortened to fit beside its bar or on it, or null.
 *
 * @param {Bar} bar
 * @param {Scale} x
 * @param {number} width
 * @returns {Label | null}
 */
export function labelOf(bar, x, width) {
  const text = labelText(bar);
  const from = Math.max(2, x(bar.from));
  const to = Math.max(x(drawnTo(bar)), from + 5);
  const needed = labelRoom(text.length);
  const free = Math.min(width, bar.room === Infinity ? width : to + (x(bar.room) - x(0))) - to;
  const inside = widestGap(from, Math.min(width, to), marksOf(bar, x));
  const isBeside = free >= needed || (inside.width < needed && free > inside.width);
  const most = Math.min(needed, isBeside ? free : inside.width);
  const letters = most === needed ? text.length : Math.floor((most - SPARE) / LETTER);
  if (letters < SHORTEST_LABEL) return null;
  return {
    text: shortened(text, letters),
    x: isBeside ? to + 10 : inside.from + 6,
    to: isBeside ? to + most : to,
  };
}

// The space to the left and right of a mark, in pixels: a circle or a diamond, and the flag of NotBefore.
const MARK = 6;
const FLAG = 8;

/**
 * Return the positions of the marks on a bar, in order.
 *
 * @param {Bar} bar
 * @param {Scale} x
 */
function marksOf(bar, x) {
  const moments = bar.event.approvals.map((approval) => approval.at);
  if (bar.event.deferred) moments.push(bar.event.deferred.at);
  const marks = moments.map((at) => ({ from: x(Date.parse(at)) - MARK, to: x(Date.parse(at)) + MARK }));
  if (hasNotBefore(bar)) marks.push({ from: x(bar.notBefore) - 1, to: x(bar.notBefore) + FLAG });
  return marks.sort((one, other) => one.from - other.from);
}

/**
 * Return the widest gap between marks, so that no mark covers the label.
 *
 * @param {number} from
 * @param {number} to
 * @param {{ from: number, to: number }[]} marks  in order
 */
function widestGap(from, to, marks) {
  let widest = { from, width: 0 };
  let begin = from;
  for (const mark of [...marks, { from: to, to }]) {
    const width = Math.min(mark.from, to) - begin;
    if (width > widest.width) widest = { from: begin, width };
    begin = Math.max(begin, mark.to);
  }
  return widest;
}

/**
 * Draw a label. It is not part of the link, which has a longer accessible name.
 *
 * @param {Label | null} label
 */
export const labelShape = (label) =>
  label && svg("text", { class: "bar-label", x: label.x, y: MIDDLE + 4, "aria-hidden": "true" }, label.text);

/** Return the text of a label. A broken promise comes first, so that shortening keeps its sign. @param {Bar} bar */
function labelText(bar) {
  const promise = promiseAppearance(bar.event);
  const subject = shortSubject(bar.event);
  if (promise.tone === "danger") return `${promise.glyph} ${subject} · ${promise.label}`;
  return `${typeAppearance(bar.event.type).glyph} ${subject}`;
}

/**
 * Draw each approval as a circle.
 *
 * @param {Bar} bar
 * @param {Scale} x
 */
function approvals(bar, x) {
  return bar.event.approvals.map((approval, place) =>
    svg("circle", {
      key: `approval ${place}`,
      class: "mark-approval",
      cx: x(Date.parse(approval.at)),
      cy: MIDDLE,
      r: 4,
    }),
  );
}

/**
 * Draw a deferral as a diamond.
 *
 * @param {Bar} bar
 * @param {Scale} x
 */
function deferral(bar, x) {
  const deferred = bar.event.deferred;
  if (!deferred) return null;
  return mark("mark-deferral", `M${x(Date.parse(deferred.at))} ${MIDDLE - 5} l5 5 l-5 5 l-5 -5 z`);
}

/**
 * @param {string} name
 * @param {string} d
 */
const mark = (name, d) => svg("path", { class: name, d });

/**
 * @param {string} name
 * @param {number} x
 * @param {number} y
 * @param {number} width
 * @param {number} height
 * @param {string} [fill]
 */
function rect(name, x, y, width, height, fill) {
  return svg("rect", { class: name, x, y, width: Math.max(0, width), height, rx: 2, fill });
}

/** The hatch patterns of notice, one for each tone. */
export function hatches() {
  return svg(
    "svg",
    { class: "timeline-patterns", "aria-hidden": "true", width: 0, height: 0 },
    svg(
      "defs",
      null,
      ["calm", "warn", "danger", "info", "restart", "move", "idle"].map((tone) =>
        svg(
          "pattern",
          { id: `hatch-${tone}`, "data-tone": tone, width: 6, height: 6, patternUnits: "userSpaceOnUse" },
          svg("rect", { class: "hatch-ground", width: 6, height: 6 }),
          svg("path", { class: "hatch-lines", d: "M-1 7 L7 -1 M-1 1 L1 -1 M5 7 L7 5" }),
        ),
      ),
    ),
  );
}
