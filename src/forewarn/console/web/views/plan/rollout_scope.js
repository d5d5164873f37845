/** The scope of a rollout: the machines on its hosts, their groups and projects. */

import { copy } from "../../service/connected.js";

// In a fleet too large for the page, the machines of at most this many hosts are loaded.
const MOST_HOSTS = 60;

/**
 * @typedef {object} Scope
 * @property {number} hosts
 * @property {number | null} machines  null if there are too many to load
 * @property {string[] | null} groups
 * @property {string[]} projects  all projects if unknown
 */

/**
 * Return the scope of a rollout, as far as the page knows the machines.
 *
 * @param {readonly string[] | null} names  null: all hosts that have not failed
 * @returns {Scope}
 */
export function scopeOf(names) {
  const hosts = new Set(names ?? allHosts());
  if (!copy.machines.isWhole && (names === null || hosts.size > MOST_HOSTS))
    return unknownScope(names, hosts.size);
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
 * Load the machines on the selected hosts if the page does not hold all machines.
 *
 * @param {readonly string[] | null} names
 */
export function loadScope(names) {
  if (copy.machines.isWhole || names === null || names.length > MOST_HOSTS) return;
  for (const host of names) {
    // On an error these machines are not counted. The dry run is still complete.
    if (copy.hosts?.has(host)) copy.machines.want({ host }).catch(() => {});
  }
}

/** List the hosts that `all` includes. */
export function allHosts() {
  return [...(copy.hosts?.values() ?? [])].filter((host) => host.state !== "failed").map((host) => host.name);
}

/**
 * @param {readonly string[] | null} names
 * @param {number} hosts
 * @returns {Scope}
 */
function unknownScope(names, hosts) {
  const projects = [...copy.projects.keys()].sort();
  if (names !== null) return { hosts, machines: null, groups: null, projects };
  return {
    hosts,
    machines: copy.summary?.machines ?? null,
    groups: [...copy.groups.keys()].sort(),
    projects,
  };
}
