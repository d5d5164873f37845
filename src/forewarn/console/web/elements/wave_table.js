/** The waves of a plan or a rollout, as a table with a bar for each wave on a shared time axis. */

import { brieflyAt, dateTime, span } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { badge, workAppearance } from "./appearance.js";
import { momentsOf, partsOf } from "./wave_parts.js";

/** @typedef {import("../types").Wave} Wave */
/** @typedef {import("../types").Child} Child */
/** @typedef {import("./time_axis.js").TimeAxis} TimeAxis */

// With more rows, vertical lines through all of them would hide the bars.
const MOST_RULED = 80;

/**
 * @typedef {object} Shown
 * @property {readonly Wave[]} waves
 * @property {TimeAxis | null} axis  null if no times are known
 * @property {number} now
 * @property {boolean} isPlan
 * @property {(wave: Wave) => Child} hosts  draws the hosts of a wave
 * @property {(wave: Wave) => string | null} [notBefore]
 * @property {string} caption
 * @property {number} [first]  how many earlier waves are not shown
 * @property {string} [noun]  the name of a row; default: Wave
 * @property {string} [subject]  the heading of the second column; default: Hosts
 */

/** @param {Shown} shown */
export function waveTable(shown) {
  const heads = shown.isPlan ? ["Announced", "Starts by", "Ends about"] : ["Announced", "Started", "Ended"];
  return h(
    "table",
    { class: "waves", "data-plan": shown.isPlan },
    h("caption", { class: "visually-hidden" }, shown.caption),
    h(
      "thead",
      null,
      h(
        "tr",
        null,
        h("th", { scope: "col" }, shown.noun ?? "Wave"),
        !shown.isPlan && h("th", { scope: "col", key: "state" }, "State"),
        h("th", { scope: "col" }, shown.subject ?? "Hosts"),
        heads.map((head) => h("th", { scope: "col", key: head }, head)),
        shown.axis && h("th", { scope: "col", class: "wave-axis", key: "axis" }, axisHead(shown.axis)),
      ),
    ),
    h(
      "tbody",
      null,
      shown.waves.map((wave, index) => row(shown, wave, (shown.first ?? 0) + index + 1, heads)),
    ),
  );
}

/**
 * @param {Shown} shown
 * @param {Wave} wave
 * @param {number} number
 * @param {readonly string[]} heads
 */
function row(shown, wave, number, heads) {
  const { real, expected } = momentsOf(wave, shown.notBefore?.(wave));
  const names = /** @type {const} */ (["announced", "started", "ended"]);
  return h(
    "tr",
    { key: number, "data-state": wave.state },
    h(
      "th",
      { scope: "row", class: "number" },
      h("span", { class: "wave-head" }, `${shown.noun ?? "Wave"} `),
      number,
    ),
    !shown.isPlan && h("td", { key: "state" }, badge(workAppearance(wave.state))),
    h("td", { class: "wave-hosts" }, shown.hosts(wave)),
    names.map((name, index) =>
      h(
        "td",
        { class: "number wave-time", key: name },
        h("span", { class: "wave-head" }, `${heads[index]} `),
        moment(real[name], expected[name], shown),
      ),
    ),
    shown.axis && h("td", { class: "wave-bars", key: "axis" }, bars(shown, shown.axis, wave)),
  );
}

/**
 * @param {string | null} real
 * @param {string | null} expected
 * @param {Shown} shown
 */
function moment(real, expected, { now, isPlan }) {
  const at = real ?? expected;
  if (!at) return h("span", { class: "muted" }, "—");
  const about = !real && !isPlan;
  return h(
    "time",
    {
      datetime: at,
      title: `${about ? "expected " : ""}${dateTime(at)}`,
      class: about ? "wave-expected" : null,
    },
    about && h("span", { "aria-hidden": "true" }, "~ "),
    about && h("span", { class: "visually-hidden" }, "expected "),
    brieflyAt(at, now),
  );
}

/** @param {TimeAxis} axis */
function axisHead(axis) {
  const labels = readableTicks(axis);
  let last = -1;
  const isFree = (/** @type {number} */ middle) => {
    const [begin, end] = [middle - FOLD_LABEL / 2, middle + FOLD_LABEL / 2];
    const isApart = begin > last && labels.every(({ share }) => end < share || begin > share + LABEL);
    if (isApart) last = end;
    return isApart;
  };
  return [
    h("span", { class: "visually-hidden" }, "Timeline"),
    axis.folds
      .map((fold) => ({ ...fold, middle: (fold.begin + fold.end) / 2 }))
      .filter(({ middle }) => isFree(middle))
      .map(({ middle, seconds }) =>
        h(
          "span",
          {
            key: `fold ${middle}`,
            class: "wave-fold-label",
            "aria-hidden": "true",
            title: `${span(seconds)} without work`,
            style: { "inset-inline-start": percent(middle) },
          },
          "⋯",
        ),
      ),
    labels.map(({ at, label, share }) =>
      h(
        "span",
        {
          key: at,
          class: "wave-tick-label",
          "aria-hidden": "true",
          style: { "inset-inline-start": percent(share) },
        },
        label,
      ),
    ),
  ];
}

// The widths of labels, as shares of the narrowest axis (14rem).
const LABEL = 0.2;
const FOLD_LABEL = 0.08;

/**
 * List the ticks whose labels do not overlap.
 *
 * @param {TimeAxis} axis
 */
function readableTicks(axis) {
  let free = 0;
  return axis
    .ticks()
    .map((tick) => ({ ...tick, share: axis.share(tick.at) }))
    .filter(({ share }) => {
      const hasRoom = share >= free && share + LABEL <= 1;
      if (hasRoom) free = share + LABEL;
      return hasRoom;
    });
}

/**
 * @param {Shown} shown
 * @param {TimeAxis} axis
 * @param {Wave} wave
 */
function bars({ waves, now, isPlan, notBefore }, axis, wave) {
  const parts = partsOf(wave, now, notBefore?.(wave));
  if (isPlan && !parts.length) return h("span", { class: "muted small" }, "no work");
  return h(
    "div",
    { class: "wave-line", "aria-hidden": "true" },
    waves.length <= MOST_RULED &&
      axis.ticks().map(({ at }) =>
        h("i", {
          key: `tick ${at}`,
          class: "wave-tick",
          style: { "inset-inline-start": percent(axis.share(at)) },
        }),
      ),
    axis.folds.map((fold, index) =>
      h("i", {
        key: `fold ${index}`,
        class: "wave-fold",
        style: {
          "inset-inline-start": percent(fold.begin),
          "inline-size": percent(fold.end - fold.begin),
        },
      }),
    ),
    parts.map((part, index) =>
      h("i", {
        key: `part ${index}`,
        class: "wave-bar",
        "data-kind": part.kind,
        "data-expected": part.isExpected,
        style: {
          "inset-inline-start": percent(axis.share(part.from)),
          "inline-size": percent(axis.share(part.to) - axis.share(part.from)),
        },
      }),
    ),
    now >= axis.from &&
      now <= axis.to &&
      h("i", { key: "now", class: "wave-now", style: { "inset-inline-start": percent(axis.share(now)) } }),
  );
}

/** @param {number} share */
const percent = (share) => `${(share * 100).toFixed(3)}%`;

/** The legend of the bars. @param {boolean} isPlan */
export function waveLegend(isPlan) {
  /** @type {[string, string, boolean][]} */
  const entries = isPlan
    ? [
        ["notice", "notice", true],
        ["work", "work", true],
      ]
    : [
        ["notice", "notice given", false],
        ["work", "work done", false],
        ["notice", "notice expected", true],
        ["work", "work expected", true],
      ];
  return h(
    "ul",
    { class: "wave-legend small muted", "data-plan": isPlan },
    entries.map(([kind, label, isExpected]) =>
      h(
        "li",
        { key: label },
        h("i", { class: "wave-bar", "data-kind": kind, "data-expected": isExpected }),
        label,
      ),
    ),
    h("li", { key: "now" }, h("i", { class: "wave-now" }), "now"),
  );
}
