/** What a rollout over hosts would touch: the machines on them, their groups and projects. */

import { copy } from "../../service/connected.js";

// The machines of more hosts than this are not read for a question, in a fleet too large to be known whole.
const MOST_HOSTS = 60;

/**
 * @typedef {object} Reach
 * @property {number} hosts
 * @property {number | null} machines  null: too many to be read here
 * @property {string[] | null} groups
 * @property {string[]} projects  all, if it is not known which
 */

/**
 * Reckon what hosts carry, as far as the page knows it.
 *
 * @param {readonly string[] | null} names  null: all hosts that have not failed
 * @returns {Reach}
 */
export function reachOf(names) {
  const hosts = new Set(names ?? allHosts());
  if (!copy.machines.isWhole && (names === null || hosts.size > MOST_HOSTS))
    return unknownReach(names, hosts.size);
  const groups = new Set();
  const projects = new Set();
  let machines = 0;
  for (const machine of copy.machines.values()) {
    if (!machine.host || !hosts.has(machine.host)) continue;
    machines++;
    projects.add(machine.project);
    if (machine.group) groups.add(machine.group);
  }
  return { hosts: hosts.size, machines, groups: [...groups].sort(), projects: [...projects].sort() };
}

/**
 * Let the machines on chosen hosts be read, where not all are known.
 *
 * @param {readonly string[] | null} names
 */
export function wantReach(names) {
  if (copy.machines.isWhole || names === null || names.length > MOST_HOSTS) return;
  for (const host of names) {
    // What cannot be read is not counted; the plan says the rest.
    if (copy.hosts?.has(host)) copy.machines.want({ host }).catch(() => {});
  }
}

/** List the hosts that `all` means. */
export function allHosts() {
  return [...(copy.hosts?.values() ?? [])].filter((host) => host.state !== "failed").map((host) => host.name);
}

/**
 * @param {readonly string[] | null} names
 * @param {number} hosts
 * @returns {Reach}
 */
function unknownReach(names, hosts) {
  const projects = [...copy.projects.keys()].sort();
  if (names !== null) return { hosts, machines: null, groups: null, projects };
  return {
    hosts,
    machines: copy.summary?.machines ?? null,
    groups: [...copy.groups.keys()].sort(),
    projects,
  };
}
