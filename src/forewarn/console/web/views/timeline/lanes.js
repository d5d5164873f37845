/** In which lane and row each event's bar is: a lane for each update domain of a group, rows where bars overlap. */

/** @typedef {import("../../elements/event_facts.js").AnyEvent} AnyEvent */
/** @typedef {import("./time_range.js").TimeRange} TimeRange */

/**
 * @typedef {object} Bar
 * @property {AnyEvent} event
 * @property {number} from  when it was announced, in milliseconds
 * @property {number} notBefore
 * @property {number | null} started
 * @property {number} to  when it left, or now, or NotBefore if that is to come
 * @property {boolean} isOpen
 * @property {number} row
 * @property {number} room  until the next bar of its row, in milliseconds
 */

/**
 * @typedef {object} Lane
 * @property {string} key
 * @property {string | null} group  null: standalone machines
 * @property {string | null} project
 * @property {number} domain
 * @property {boolean} isFirst  of its group
 * @property {Bar[]} bars
 * @property {number} rows
 * @property {number} hidden  bars that are in rows beyond those shown
 */

// A lane with more rows than that is folded until somebody opens it.
export const ROWS_OF_FOLDED = 8;
// So many lanes are shown before somebody asks for all.
export const LANES_SHOWN = 40;

const names = new Intl.Collator("en", { numeric: true });

/** @typedef {{ from: number, notBefore: number, started: number | null, ended: number | null }} Times */

/** Times are parsed once for each event that was read. @type {WeakMap<AnyEvent, Times>} */
const parsed = new WeakMap();

/**
 * @param {AnyEvent} event
 * @returns {Times}
 */
function timesOf(event) {
  let times = parsed.get(event);
  if (!times) {
    times = {
      from: Date.parse(event.announced_at),
      notBefore: Date.parse(event.not_before),
      started: event.started_at ? Date.parse(event.started_at) : null,
      ended: event.ended_at ? Date.parse(event.ended_at) : null,
    };
    parsed.set(event, times);
  }
  return times;
}

/**
 * Say what is drawn of an event.
 *
 * @param {AnyEvent} event
 * @param {number} now
 * @returns {Bar}
 */
export function barOf(event, now) {
  const { from, notBefore, started, ended } = timesOf(event);
  const to = ended ?? (started === null ? Math.max(now, notBefore) : Math.max(now, started));
  return { event, from, notBefore, started, to, isOpen: ended === null, row: 0, room: Infinity };
}

/**
 * Sort the bars that are in range into lanes, and pack each lane.
 *
 * @param {Bar[]} bars
 * @param {TimeRange} range
 * @param {number} gap  what must be free between two bars of a row, in milliseconds
 * @param {Set<string>} opened  lanes that show all their rows
 * @returns {Lane[]}
 */
export function lanesOf(bars, range, gap, opened) {
  /** @type {Map<string, Bar[]>} */
  const found = new Map();
  for (const bar of bars) {
    if (bar.from > range.to || Math.max(bar.to, bar.notBefore) < range.from) continue;
    const key = laneKey(bar.event);
    const lane = found.get(key);
    if (lane) lane.push(bar);
    else found.set(key, [bar]);
  }
  const keys = [...found.keys()].sort(names.compare);
  let group = "";
  return keys.map((key) => {
    const lane = packed(key, /** @type {Bar[]} */ (found.get(key)), gap, opened.has(key));
    const of = `${lane.project}/${lane.group}`;
    lane.isFirst = of !== group;
    group = of;
    return lane;
  });
}

/**
 * Put each bar into the first row that is free.
 *
 * @param {string} key
 * @param {Bar[]} bars
 * @param {number} gap
 * @param {boolean} isOpened
 * @returns {Lane}
 */
function packed(key, bars, gap, isOpened) {
  bars.sort((one, other) => one.from - other.from || (one.event.id < other.event.id ? -1 : 1));
  /** @type {(Bar | undefined)[]} the last bar of each row */
  const last = [];
  const most = isOpened ? Infinity : ROWS_OF_FOLDED;
  const shown = [];
  for (const bar of bars) {
    let row = last.findIndex((before) => before && drawnTo(before) + gap <= bar.from);
    if (row < 0) row = last.length;
    if (row >= most) continue;
    const before = last[row];
    if (before) before.room = bar.from - drawnTo(before);
    bar.row = row;
    bar.room = Infinity;
    last[row] = bar;
    shown.push(bar);
  }
  const event = /** @type {Bar} */ (bars[0]).event;
  return {
    key,
    group: event.group,
    project: event.project,
    domain: event.update_domain,
    isFirst: false,
    bars: shown,
    rows: last.length,
    hidden: bars.length - shown.length,
  };
}

/** How far a bar reaches with the mark of its NotBefore. @param {Bar} bar */
export const drawnTo = (bar) => Math.max(bar.to, bar.notBefore);

/** @param {AnyEvent} event */
const laneKey = (event) =>
  `${event.group === null ? 1 : 0} ${event.project}/${event.group ?? ""}/${event.group === null ? 0 : event.update_domain}`;
