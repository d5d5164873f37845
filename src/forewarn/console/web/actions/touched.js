/** Whom an action would concern, said before it is done. */

import { count, listed } from "../page/formatting.js";
import { api, copy } from "../service/connected.js";

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("./verb.js").Touched} Touched */

/**
 * Name the machines that a host carries, their groups and their projects.
 *
 * @param {string} host
 * @returns {Promise<Touched & { machines: Machine[] }>}
 */
export async function machinesOn(host) {
  const machines = await api.all("/v1/machines", "machines", { host });
  if (!machines.length) return { summary: "It carries no machine.", names: [], machines };
  return {
    summary: `It carries ${reckoned(machines)}:`,
    names: machines.map((machine) => machine.name),
    machines,
  };
}

/**
 * Count machines, their groups and their projects.
 *
 * @param {Machine[]} machines
 */
function reckoned(machines) {
  const groups = new Set(machines.flatMap((machine) => machine.group ?? []));
  const alone = machines.filter((machine) => !machine.group).length;
  const projects = new Set(machines.map((machine) => machine.project));
  const of = projects.size === 1 ? `project ${[...projects][0]}` : `${count(projects.size, "project")}`;
  const where = [groups.size ? `of ${count(groups.size, "group")}` : "", alone ? `${alone} standalone` : ""];
  return `${count(machines.length, "machine")} (${where.filter(Boolean).join(", ")}) in ${of}`;
}

/**
 * Say where a machine stands, and whether its guests would be told.
 *
 * @param {Machine} machine
 * @param {{ told: boolean }} how  whether only guests that listen are waited for
 * @returns {Touched}
 */
export function oneMachine(machine, { told }) {
  const where = machine.group
    ? `group ${machine.group}, update domain ${machine.update_domain}`
    : "standalone";
  const host = machine.host ? `, on ${machine.host}` : "";
  const project = copy.projects.size > 1 ? `, project ${machine.project}` : "";
  const events = copy.eventsOf(machine);
  const announced = events.length ? ` It has ${count(events.length, "open event")} already.` : "";
  const silence =
    told && !machine.enabled
      ? " No guest of its group has ever asked for events: it happens at once, without notice."
      : "";
  return { summary: `${machine.name}: ${where}${host}${project}.${announced}${silence}` };
}

/**
 * Name the events of an order and their machines.
 *
 * @param {string} order
 * @returns {Promise<Touched>}
 */
export async function eventsOfOrder(order) {
  const { events } = await api.get("/v1/orders/{id}", { path: { id: order } });
  const open = events.filter((event) => !event.ended_at);
  if (!open.length) return { summary: "Nothing of it is announced yet." };
  const groups = new Set(open.map((event) => event.group ?? listed(event.resources)));
  return {
    summary: `${count(open.length, "event")} to ${count(groups.size, "group")} (${listed([...groups])}), for:`,
    names: open.flatMap((event) => event.resources),
  };
}
