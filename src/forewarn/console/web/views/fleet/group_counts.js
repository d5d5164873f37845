/** Machine counts by appearance: from the machines if the page holds all of them, otherwise from the summary. */

import { MACHINE_LOOKS, machineAppearance } from "../../elements/appearance.js";
import { copy } from "../../service/connected.js";

/** @typedef {import("./fleet_filter.js").GroupSummary} GroupSummary */
/** @typedef {import("../../elements/appearance.js").Appearance} Appearance */
/** @typedef {{ look: Appearance, number: number }} Counted */

/**
 * Count the machines of update domains by appearance. The summary does not distinguish announced and approved.
 *
 * @param {GroupSummary["update_domains"]} domains
 * @returns {Counted[]}
 */
export function countedLooks(domains) {
  /** @type {{ [label: string]: number }} */
  const numbers = { announced: 0, started: 0 };
  for (const { states, scheduled, started } of domains) {
    for (const [state, number] of Object.entries(states)) numbers[state] = (numbers[state] ?? 0) + number;
    // A machine of a started event that is frozen, restarting or moving is shown in that state.
    const working = (states.frozen ?? 0) + (states.restarting ?? 0) + (states.moving ?? 0);
    const waiting = Math.max(0, started - working);
    numbers.announced = (numbers.announced ?? 0) + scheduled;
    numbers.started = (numbers.started ?? 0) + waiting;
    numbers.running = Math.max(0, (numbers.running ?? 0) - scheduled - waiting);
  }
  return inOrder(numbers);
}

/**
 * Count all visible machines.
 *
 * @param {readonly GroupSummary[]} groups
 * @returns {Counted[]}
 */
export function fleetLooks(groups) {
  if (!copy.machines.isWhole) return countedLooks(groups.flatMap((group) => group.update_domains));
  /** @type {{ [label: string]: number }} */
  const numbers = {};
  for (const machine of copy.machines.values()) {
    const { label } = machineAppearance(machine, copy.eventsOf(machine));
    numbers[label] = (numbers[label] ?? 0) + 1;
  }
  return inOrder(numbers);
}

/** @param {{ [label: string]: number }} numbers */
function inOrder(numbers) {
  return MACHINE_LOOKS.map((look) => ({ look, number: numbers[look.label] ?? 0 })).filter(
    ({ number }) => number,
  );
}
