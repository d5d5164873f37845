/** What a host has and what of it is left, where it is, and how its machines can leave it. */

import { fact } from "../../elements/fact.js";
import { machineLink } from "../../elements/links.js";
import { count } from "../../page/formatting.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../types").Host} Host */
/** @typedef {import("../../types").Machine} Machine */

const NAMES_SHOWN = 8;

/** How machines leave; one that says nothing is cold. @type {readonly [mobility: string, label: string][]} */
const WAYS = [
  ["live", "Move live"],
  ["cold", "Restart elsewhere"],
  ["none", "Stay, and restart with it"],
];

/**
 * @param {Host} host
 * @param {readonly Machine[]} machines
 */
export function hostMeans(host, machines) {
  const labels = Object.entries(host.labels);
  const resources = Object.entries(host.resources);
  return h(
    "dl",
    { class: "facts", key: "means" },
    host.bare_metal && fact("Bare metal", "it is itself the one machine that it carries"),
    labels.length > 0 && fact("Labels", labels.map(([name, value]) => `${name}=${value}`).join(", ")),
    resources.map(([name, resource]) =>
      fact(name, host.bare_metal ? number(resource.amount) : left(name, resource, machines)),
    ),
    !host.bare_metal && WAYS.map(([mobility, label]) => fact(label, names(machines, mobility))),
  );
}

/**
 * Say how much of a resource is not taken by the machines that the host carries now.
 *
 * @param {string} name
 * @param {Host["resources"][string]} resource
 * @param {readonly Machine[]} machines
 */
function left(name, { amount, ratio }, machines) {
  const whole = amount * ratio;
  const taken = machines.reduce((sum, machine) => sum + (machine.resources[name] ?? 0), 0);
  const times = ratio === 1 ? "" : ` (${number(amount)} × ${number(ratio)})`;
  return `${number(whole - taken)} left of ${number(whole)}${times}`;
}

/** @param {number} value */
const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });

/**
 * @param {readonly Machine[]} machines
 * @param {string} mobility
 */
function names(machines, mobility) {
  const found = machines.filter((machine) => (machine.mobility ?? "cold") === mobility);
  if (!found.length) return null;
  const shown = found.slice(0, NAMES_SHOWN);
  return [
    `${count(found.length, "machine")}: `,
    shown.map((machine, place) => [place > 0 && ", ", machineLink(machine.name, machine.project)]),
    found.length > shown.length && ` and ${found.length - shown.length} more`,
  ];
}
