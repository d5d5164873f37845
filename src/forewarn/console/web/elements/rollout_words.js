/** Descriptions of rollouts: state, progress and driver. */

import { count } from "../page/formatting.js";
import { badge, workAppearance } from "./appearance.js";

/** @typedef {import("../types").Rollout} Rollout */

/**
 * Return the displayed state: an aborted rollout with unfinished work is aborting.
 *
 * @param {Rollout} rollout
 */
export const rolloutState = (rollout) => (rollout.aborting ? "aborting" : rollout.state);

/** @param {Rollout} rollout */
export const rolloutBadge = (rollout) => badge(workAppearance(rolloutState(rollout)));

/** @param {Rollout} rollout */
export const isOver = (rollout) => rollout.state === "done" || rollout.state === "aborted";

/**
 * Describe how many waves are done. An aborted rollout lists only waves that began.
 *
 * @param {Rollout} rollout
 */
export function wavesDone(rollout) {
  const done = rollout.waves.filter((wave) => wave.state === "done").length;
  const knowsAll = !rollout.aborting && rollout.state !== "aborted";
  return knowsAll ? `${done} of ${count(rollout.waves.length, "wave")} done` : `${count(done, "wave")} done`;
}

/**
 * Describe how many hosts are simulated; empty if none is.
 *
 * @param {Rollout} rollout
 */
export function simulatedPart(rollout) {
  const simulated = rollout.simulated_hosts.length;
  if (!simulated) return "";
  if (simulated === rollout.hosts.length) return "simulated: no real machine is touched";
  return `${simulated} of ${count(rollout.hosts.length, "host")} simulated: no real machine is touched there`;
}

/**
 * Name the driver of a rollout.
 *
 * @param {Rollout} rollout
 */
export function doneBy(rollout) {
  if (rollout.driver === "external") return "external: another program does the work and reports it";
  return simulatedPart(rollout) || rollout.driver || "each host's own driver";
}
