/** The columns of the host list and its sort order, which is kept in the URL. */

import { ordersOn } from "./host_load.js";

/** @typedef {import("../../types").Host} Host */
/** @typedef {"name" | "state" | "driver" | "machines" | "rack" | "memory" | "reached" | "order" | "waits"} ColumnKey */
/** @typedef {{ key: ColumnKey, title: string, sort?: { first: "up" | "down", up: string, down: string } }} Column */
/** @typedef {{ key: ColumnKey, isDown: boolean }} Sort */

// Natural order: kvm2 comes before kvm10.
const IN_ORDER = new Intl.Collator("en", { numeric: true });

/** @type {readonly Column[]} */
const COLUMNS = [
  { key: "name", title: "Host", sort: { first: "up", up: "Name", down: "Name, descending" } },
  {
    key: "state",
    title: "State",
    sort: { first: "up", up: "State, worst first", down: "State, best first" },
  },
  { key: "driver", title: "Driver" },
  {
    key: "machines",
    title: "Machines",
    sort: { first: "down", up: "Fewest machines", down: "Most machines" },
  },
  { key: "rack", title: "Rack", sort: { first: "up", up: "Rack", down: "Rack, descending" } },
  {
    key: "memory",
    title: "Free memory",
    sort: { first: "down", up: "Least free memory", down: "Most free memory" },
  },
  {
    key: "reached",
    title: "Reachable",
    sort: { first: "up", up: "Unreachable first", down: "Reachable first" },
  },
  {
    key: "order",
    title: "Open order",
    sort: { first: "up", up: "With an open order first", down: "Without an open order first" },
  },
  { key: "waits", title: "Waiting for" },
];

/** Return the columns that have values. @param {readonly Host[]} hosts */
export function columnsOf(hosts) {
  const hasRack = hosts.some((host) => host.labels.rack);
  const hasMemory = hosts.some((host) => "memory" in host.free);
  const hasReached = hosts.some((host) => host.reachable !== null);
  return COLUMNS.filter(
    ({ key }) =>
      (key !== "rack" || hasRack) && (key !== "memory" || hasMemory) && (key !== "reached" || hasReached),
  );
}

/**
 * Parse the sort order in a URL: a column name, with a leading `-` for descending order.
 *
 * @param {string | null} text
 * @returns {Sort}
 */
export function sortOf(text) {
  const isDown = text?.startsWith("-") ?? false;
  const wanted = isDown ? text?.slice(1) : text;
  const column = COLUMNS.find(({ key, sort }) => sort && key === wanted);
  return column ? { key: column.key, isDown } : { key: "name", isDown: false };
}

/** @param {Sort} sort */
export const sortText = ({ key, isDown }) => (isDown ? `-${key}` : key === "name" ? null : key);

/**
 * Return the sort order after a click on a column.
 *
 * @param {Sort} sort
 * @param {Column} column
 * @returns {Sort}
 */
export function pressed(sort, column) {
  if (sort.key === column.key) return { key: sort.key, isDown: !sort.isDown };
  return { key: column.key, isDown: column.sort?.first === "down" };
}

/**
 * Return the labels of all sort orders, by their text in the URL.
 *
 * @param {readonly Column[]} columns
 * @returns {{ [text: string]: string }}
 */
export function sortChoices(columns) {
  /** @type {[string, string][]} */
  const choices = columns.flatMap(({ key, sort }) => {
    if (!sort) return [];
    return [
      [sortText({ key, isDown: false }) ?? "", sort.up],
      [sortText({ key, isDown: true }) ?? "", sort.down],
    ];
  });
  return Object.fromEntries(choices);
}

/**
 * @param {readonly Host[]} hosts
 * @param {Sort} sort
 */
export function sorted(hosts, sort) {
  const busy = new Map(hosts.map((host) => [host.name, sort.key === "order" ? orderRank(host) : 0]));
  /** @type {{ [key in ColumnKey]?: (one: Host, other: Host) => number }} */
  const compare = {
    state: (one, other) => STATES.indexOf(one.state) - STATES.indexOf(other.state),
    machines: (one, other) => one.carried - other.carried,
    memory: (one, other) => (one.free.memory ?? Infinity) - (other.free.memory ?? Infinity),
    reached: (one, other) => reachRank(one) - reachRank(other),
    order: (one, other) => (busy.get(one.name) ?? 0) - (busy.get(other.name) ?? 0),
    rack: (one, other) => IN_ORDER.compare(one.labels.rack ?? "", other.labels.rack ?? ""),
    name: (one, other) => IN_ORDER.compare(one.name, other.name),
  };
  const chosen = compare[sort.key] ?? (() => 0);
  const direction = sort.isDown ? -1 : 1;
  return hosts.toSorted(
    (one, other) =>
      unknownLast(one, other, sort.key) ||
      direction * chosen(one, other) ||
      IN_ORDER.compare(one.name, other.name),
  );
}

/** @type {readonly Host["state"][]} */
const STATES = ["failed", "lost", "degraded", "cordoned", "ok"];
const ORDER_STATES = ["failed", "started", "announced", "queued"];

/**
 * Compare so that hosts without a rack or declared memory come last in both directions.
 *
 * @param {Host} one
 * @param {Host} other
 * @param {ColumnKey} key
 */
function unknownLast(one, other, key) {
  if (key !== "rack" && key !== "memory") return 0;
  /** @param {Host} host */
  const isUnknown = (host) => Number(key === "rack" ? !host.labels.rack : !("memory" in host.free));
  return isUnknown(one) - isUnknown(other);
}

/** @param {Host} host */
const reachRank = ({ reachable }) => (reachable === false ? 0 : reachable === null ? 1 : 2);

/** @param {Host} host */
function orderRank(host) {
  const ranks = ordersOn(host.name).map((order) => ORDER_STATES.indexOf(order.state));
  return ranks.length ? Math.min(...ranks) : ORDER_STATES.length;
}
