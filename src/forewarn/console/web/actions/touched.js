/** The effect of an action on machines. The dialog shows it before the action runs. */

import { count, listed } from "../page/formatting.js";
import { api, copy } from "../service/connected.js";

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("./verb.js").Touched} Touched */

/**
 * List the machines of a host, and count their groups and projects.
 *
 * @param {string} host
 * @returns {Promise<Touched & { machines: Machine[] }>}
 */
export async function machinesOn(host) {
  const machines = await api.all("/v1/machines", "machines", { host });
  if (!machines.length) return { summary: `${host} carries no machine.`, names: [], machines };
  return {
    summary: `${host} carries ${counted(machines)}:`,
    names: machines.map((machine) => machine.name),
    machines,
  };
}

/**
 * Count machines, their groups and their projects.
 *
 * @param {Machine[]} machines
 */
function counted(machines) {
  const groups = new Set(machines.flatMap((machine) => machine.group ?? []));
  const alone = machines.filter((machine) => !machine.group).length;
  const projects = new Set(machines.map((machine) => machine.project));
  const of = projects.size === 1 ? `project ${[...projects][0]}` : `${count(projects.size, "project")}`;
  const where = [groups.size ? `of ${count(groups.size, "group")}` : "", alone ? `${alone} standalone` : ""];
  return `${count(machines.length, "machine")} (${where.filter(Boolean).join(", ")}) in ${of}`;
}

/**
 * Describe where a machine belongs, and whether its guests would get notice.
 *
 * @param {Machine} machine
 * @param {{ needsListener: boolean }} how  whether the action gives notice only if the group polls for events
 * @returns {Touched}
 */
export function oneMachine(machine, { needsListener }) {
  const where = machine.group
    ? `group ${machine.group}, update domain ${machine.update_domain}`
    : "standalone";
  const host = machine.host ? `, on ${machine.host}` : "";
  const project = copy.projects.size > 1 ? `, project ${machine.project}` : "";
  const events = copy.eventsOf(machine);
  const announced = events.length ? ` The machine already has ${count(events.length, "open event")}.` : "";
  const silence =
    needsListener && !machine.enabled
      ? " No guest of its group polls for events: the action starts at once, without notice."
      : "";
  return { summary: `${machine.name}: ${where}${host}${project}.${announced}${silence}` };
}

/**
 * List the open events of an order and their machines.
 *
 * @param {string} order
 * @returns {Promise<Touched>}
 */
export async function eventsOfOrder(order) {
  const { events } = await api.get("/v1/orders/{id}", { path: { id: order } });
  const open = events.filter((event) => !event.ended_at);
  if (!open.length) return { summary: "No event of this order is announced yet." };
  const groups = new Set(open.map((event) => event.group ?? listed(event.resources)));
  return {
    summary: `${count(open.length, "event")} to ${count(groups.size, "group")} (${listed([...groups])}), for:`,
    names: open.flatMap((event) => event.resources),
  };
}
