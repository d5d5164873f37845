/** Links to the views of machines, hosts, groups, events, orders and rollouts. */

import { shortId } from "../page/formatting.js";
import { address } from "../page/router.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { wallTime } from "../page/typed_times.js";
import { time } from "./times.js";

/**
 * @param {string} name
 * @param {string | null} [project]
 */
export function machineLink(name, project) {
  const query = project && copy.projects.size > 1 ? { project } : {};
  return h("a", { class: "name", href: address("/machines/{name}", { name }, query) }, name);
}

/** @param {string} name */
export const hostLink = (name) => h("a", { class: "name", href: address("/hosts/{name}", { name }) }, name);

/** @param {string} name */
export const groupLink = (name) =>
  h("a", { class: "name", href: address("/fleet", {}, { group: name }) }, name);

/** @param {string} id */
export const eventLink = (id) => idLink("/events/{id}", id);

/** @param {string} id */
export const orderLink = (id) => idLink("/orders/{id}", id);

/** @param {string} id */
export const rolloutLink = (id) => idLink("/rollouts/{id}", id);

/**
 * @param {string} path
 * @param {string} id
 */
function idLink(path, id) {
  return h("a", { class: "mono", href: address(path, { id }), title: id }, shortId(id));
}

// An id, a moment, or a local time with its zone: `2027-03-02 22:00 (Europe/Berlin)`.
const ID =
  /([0-9A-F]{8}-(?:[0-9A-F]{4}-){3}[0-9A-F]{12}|\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z|\d{4}-\d\d-\d\d \d\d:\d\d \([A-Za-z][\w+/-]*\))/;
const TIME = /^\d{4}-\d\d-\d\dT/;
const WALL_TIME = /^(\d{4}-\d\d-\d\d \d\d:\d\d) \((.+)\)$/;

/**
 * Draw a sentence from the server: open orders and events become links, and times appear in the chosen zone.
 *
 * @param {string} text
 * @returns {import("../types").Child}
 */
export const linkedIds = (text) =>
  text.split(ID).map((part) => {
    if (copy.orders.has(part)) return orderLink(part);
    if (TIME.test(part)) return time(part);
    const [, wall, zone] = WALL_TIME.exec(part) ?? [];
    const at = wall && zone ? wallTime(wall, zone) : null;
    if (at) return time(at);
    return copy.events.has(part) ? eventLink(part) : part;
  });
