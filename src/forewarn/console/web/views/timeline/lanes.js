/**
 * The lane and row of each bar. Each update domain of a group has a lane, and so has each rollout with coming waves.
 * Overlapping bars have rows of their own.
 */

/** @typedef {import("../../elements/event_facts.js").AnyEvent} AnyEvent */
/** @typedef {import("./time_range.js").TimeRange} TimeRange */

/**
 * An item in a lane.
 *
 * @typedef {object} Placed
 * @property {string} key
 * @property {number} from  when it is announced, in milliseconds
 * @property {number} notBefore
 * @property {number} to  its end; of an open item the later of now and NotBefore
 * @property {boolean} isOpen
 * @property {number} row
 * @property {number} room  the gap to the next bar of its row, in milliseconds
 */

/** @typedef {Placed & { event: AnyEvent, started: number | null }} Bar */

/**
 * @template {Placed} Kind
 * @typedef {object} Packed
 * @property {Kind[]} bars
 * @property {number} rows
 * @property {number} hidden  the number of bars in hidden rows
 */

/**
 * The lane of an update domain, or of standalone machines if it has no group.
 *
 * @typedef {Packed<Bar> & { key: string, group: string | null, project: string | null, domain: number, isFirst: boolean }} Lane
 */

// A lane with more rows than this starts folded.
export const ROWS_OF_FOLDED = 8;
// The number of lanes to show at first.
export const LANES_SHOWN = 40;

const names = new Intl.Collator("en", { numeric: true });

/** @typedef {{ from: number, notBefore: number, started: number | null, ended: number | null }} Times */

/** A cache of the parsed times of each event. @type {WeakMap<AnyEvent, Times>} */
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
 * Return the bar of an event.
 *
 * @param {AnyEvent} event
 * @param {number} now
 * @returns {Bar}
 */
export function barOf(event, now) {
  const { from, notBefore, started, ended } = timesOf(event);
  const to = ended ?? (started === null ? Math.max(now, notBefore) : Math.max(now, started));
  const isOpen = ended === null;
  return { key: event.id, event, from, notBefore, started, to, isOpen, row: 0, room: Infinity };
}

/**
 * Sort the bars into lanes, and pack each lane.
 *
 * @param {Bar[]} bars
 * @param {number} gap  the minimum gap between two bars of a row, in milliseconds
 * @param {Set<string>} opened  lanes that show all their rows
 * @returns {Lane[]}
 */
export function lanesOf(bars, gap, opened) {
  /** @type {Map<string, Bar[]>} */
  const found = new Map();
  for (const bar of bars) {
    const key = laneKey(bar.event);
    const lane = found.get(key);
    if (lane) lane.push(bar);
    else found.set(key, [bar]);
  }
  const keys = [...found.keys()].sort(names.compare);
  let before = "";
  return keys.map((key) => {
    const inLane = found.get(key) ?? [];
    const { project, group, update_domain: domain } = /** @type {Bar} */ (inLane[0]).event;
    const isFirst = `${project}/${group}` !== before;
    before = `${project}/${group}`;
    return { key, group, project, domain, isFirst, ...packed(inLane, gap, opened.has(key)) };
  });
}

/**
 * Put each bar into the first free row.
 *
 * @template {Placed} Kind
 * @param {Kind[]} bars  in the order of time
 * @param {number} gap
 * @param {boolean} isOpened
 * @returns {Packed<Kind>}
 */
export function packed(bars, gap, isOpened) {
  /** The last bar of each row. @type {Kind[]} */
  const last = [];
  const most = isOpened ? Infinity : ROWS_OF_FOLDED;
  const shown = [];
  for (const bar of bars) {
    let row = last.findIndex((before) => drawnTo(before) + gap <= bar.from);
    if (row < 0) row = last.length;
    if (row >= most) continue;
    const before = last[row];
    if (before) before.room = bar.from - drawnTo(before);
    bar.row = row;
    bar.room = Infinity;
    last[row] = bar;
    shown.push(bar);
  }
  return { bars: shown, rows: last.length, hidden: bars.length - shown.length };
}

/** Return the end of the promised notice: NotBefore, or the end of an event that ended earlier. @param {Placed} bar */
export const promisedTo = (bar) => (bar.isOpen ? bar.notBefore : Math.min(bar.notBefore, bar.to));

/** Return the end of a bar, including its promised notice. @param {Placed} bar */
export const drawnTo = (bar) => Math.max(bar.to, promisedTo(bar));

/**
 * Return the bars of a range, by time.
 *
 * @template {Placed} Kind
 * @param {Kind[]} bars
 * @param {TimeRange} range
 * @returns {Kind[]}
 */
export const inRange = (bars, range) =>
  bars
    .filter((bar) => bar.from <= range.to && drawnTo(bar) >= range.from)
    .sort((one, other) => one.from - other.from || (one.key < other.key ? -1 : 1));

/** @param {AnyEvent} event */
const laneKey = (event) =>
  `${event.group === null ? 1 : 0} ${event.project}/${event.group ?? ""}/${event.group === null ? 0 : event.update_domain}`;
