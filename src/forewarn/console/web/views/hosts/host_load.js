/** The machines, orders and holds of hosts, for several views. */

import { copy } from "../../service/connected.js";
import { groupKey } from "../../service/machine_shelf.js";

/** @typedef {import("../../types").Machine} Machine */
/** @typedef {import("../../types").Order} Order */
/** @typedef {{ key: string, group: string | null, project: string, domains: Map<number, Machine[]>, machines: Machine[] }} Carried */

/**
 * Group machines by group and update domain. Standalone machines come last.
 *
 * @param {readonly Machine[]} machines
 * @returns {Carried[]}
 */
export function carried(machines) {
  const groups = Map.groupBy(machines, (machine) => groupKey(machine.group, machine.project));
  const found = [...groups].map(([key, members]) => {
    const first = /** @type {Machine} */ (members[0]);
    const domains = Map.groupBy(members, (machine) => machine.update_domain);
    const inOrder = new Map([...domains].sort(([one], [other]) => one - other));
    return { key, group: first.group, project: first.project, domains: inOrder, machines: members };
  });
  return found.sort(
    (one, other) =>
      Number(one.group === null) - Number(other.group === null) || one.key.localeCompare(other.key),
  );
}

/**
 * Return the number of stages of maintenance. A stage has at most one update domain of any group.
 *
 * @param {readonly Carried[]} groups
 */
export const stagesOf = (groups) =>
  Math.max(0, ...groups.map((each) => (each.group === null ? 1 : each.domains.size)));

/**
 * List the open orders of a host.
 *
 * @param {string} host
 * @returns {Order[]}
 */
export const ordersOn = (host) => [...copy.orders.values()].filter((order) => order.host === host);

/**
 * List the holds that apply to a host, including those of the whole fleet.
 *
 * @param {string} host
 */
export const holdsOn = (host) =>
  (copy.holds ?? []).filter((hold) => hold.host === host || (hold.host === null && hold.project === null));
