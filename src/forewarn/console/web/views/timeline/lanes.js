/**
 * In which lane and row each bar is: a lane for each update domain of a group, one for the coming waves of each rollout,
 * rows where bars overlap.
 */

/** @typedef {import("../../elements/event_facts.js").AnyEvent} AnyEvent */
/** @typedef {import("./time_range.js").TimeRange} TimeRange */

/**
 * What has a place in a lane.
 *
 * @typedef {object} Placed
 * @property {string} key
 * @property {number} from  when it is announced, in milliseconds
 * @property {number} notBefore
 * @property {number} to  when it leaves, or now, or NotBefore if that is to come
 * @property {boolean} isOpen  whether it is not over
 * @property {number} row
 * @property {number} room  until the next bar of its row, in milliseconds
 */

/** @typedef {Placed & { event: AnyEvent, started: number | null }} Bar */

/**
 * @template {Placed} Kind
 * @typedef {object} Packed
 * @property {Kind[]} bars
 * @property {number} rows
 * @property {number} hidden  bars that are in rows beyond those shown
 */

/**
 * Of an update domain; without a group, of standalone machines.
 *
 * @typedef {Packed<Bar> & { key: string, group: string | null, project: string | null, domain: number, isFirst: boolean }} Lane
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
  const isOpen = ended === null;
  return { key: event.id, event, from, notBefore, started, to, isOpen, row: 0, room: Infinity };
}

/**
 * Sort the bars into lanes, and pack each lane.
 *
 * @param {Bar[]} bars
 * @param {number} gap  what must be free between two bars of a row, in milliseconds
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
 * Put each bar into the first row that is free.
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

/** Until when notice is promised: what is over promises nothing beyond its end. @param {Placed} bar */
export const promisedTo = (bar) => (bar.isOpen ? bar.notBefore : Math.min(bar.notBefore, bar.to));

/** How far a bar reaches with the notice that it promises. @param {Placed} bar */
export const drawnTo = (bar) => Math.max(bar.to, promisedTo(bar));

/**
 * Keep what is seen of a range, in the order of time.
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
