/** What a host has and what of it is left, where it is, and how its machines can leave it. */

import { fact } from "../../elements/fact.js";
import { machineLink } from "../../elements/links.js";
import { sourceWords } from "../../elements/sources.js";
import { count } from "../../page/formatting.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../types").Host} Host */
/** @typedef {import("../../types").Machine} Machine */

const NAMES_SHOWN = 8;

/** How machines leave; one that says nothing is cold. @type {readonly [mobility: string, label: string][]} */
const WAYS = [
  ["live", "Move live"],
  ["live-only", "Move live or stay"],
  ["cold", "Restart elsewhere"],
  ["none", "Stay, and restart with it"],
];

/**
 * @param {Host} host
 * @param {readonly Machine[]} machines
 * @param {readonly Machine[]} coming
 */
export function hostMeans(host, machines, coming) {
  const labels = Object.entries(host.labels);
  const resources = Object.entries(host.resources);
  const taking = [...new Set([...machines, ...coming])];
  return h(
    "dl",
    { class: "facts", key: "means" },
    fact("Source", sourceWords(host.source)),
    host.bare_metal && fact("Bare metal", "it is itself the one machine that it carries"),
    labels.length > 0 && fact("Labels", labels.map(([name, value]) => `${name}=${value}`).join(", ")),
    resources.map(([name, resource]) =>
      fact(name, host.bare_metal ? number(resource.amount) : left(name, resource, taking)),
    ),
    coming.length > 0 && fact("On their way", named(coming)),
    !host.bare_metal && WAYS.map(([mobility, label]) => fact(label, names(machines, mobility))),
  );
}

/**
 * Say how much of a resource is not taken by the machines that are there, or on their way.
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
