/** The labels and resources of a host, and how its machines can leave it. */

import { fact } from "../../elements/fact.js";
import { machineLink } from "../../elements/links.js";
import { sourceWords } from "../../elements/sources.js";
import { count } from "../../page/formatting.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../types").Host} Host */
/** @typedef {import("../../types").Machine} Machine */

const NAMES_SHOWN = 8;

/** The ways in which machines leave a host. The default is cold. @type {readonly [mobility: string, label: string][]} */
const WAYS = [
  ["live", "Live migration"],
  ["live-only", "Live migration only"],
  ["cold", "Restart on another host"],
  ["none", "Restart with the host"],
];

/**
 * @param {Host} host
 * @param {readonly Machine[]} machines
 * @param {readonly Machine[]} coming
 */
export function hostCapacity(host, machines, coming) {
  const labels = Object.entries(host.labels);
  const resources = Object.entries(host.resources);
  const taking = [...new Set([...machines, ...coming])];
  return h(
    "dl",
    { class: "facts", key: "means" },
    fact("Source", sourceWords(host.source)),
    host.bare_metal && fact("Bare metal", "the host is also its only machine"),
    labels.length > 0 && fact("Labels", labels.map(([name, value]) => `${name}=${value}`).join(", ")),
    resources.map(([name, resource]) =>
      fact(name, host.bare_metal ? number(resource.amount) : left(name, resource, taking)),
    ),
    coming.length > 0 && fact("Incoming machines", named(coming)),
    !host.bare_metal && WAYS.map(([mobility, label]) => fact(label, names(machines, mobility))),
  );
}

/**
 * Return how much of a resource is free, after the machines on the host and the incoming ones.
 *
 * @param {string} name
 * @param {Host["resources"][string]} resource
 * @param {readonly Machine[]} machines
 */
function left(name, { amount, ratio }, machines) {
  const whole = amount * ratio;
  const taken = machines.reduce((sum, machine) => sum + (machine.resources[name] ?? 0), 0);
  const times = ratio === 1 ? "" : ` (${number(amount)} × ${number(ratio)})`;
  return `${number(whole - taken)} free of ${number(whole)}${times}`;
}

/** @param {number} value */
const number = (value) => value.toLocaleString("en", { maximumFractionDigits: 2 });

/**
 * @param {readonly Machine[]} machines
 * @param {string} mobility
 */
function names(machines, mobility) {
  const found = machines.filter((machine) => (machine.mobility ?? "cold") === mobility);
  return found.length ? named(found) : null;
}

/** @param {readonly Machine[]} found */
function named(found) {
  const shown = found.slice(0, NAMES_SHOWN);
  return [
    `${count(found.length, "machine")}: `,
    shown.map((machine, place) => [place > 0 && ", ", machineLink(machine.name, machine.project)]),
    found.length > shown.length && ` and ${found.length - shown.length} more`,
  ];
}
