/** How a rollout is put into words: its state, how far it is, and what of it is real. */

import { count } from "../page/formatting.js";
import { badge, workAppearance } from "./appearance.js";

/** @typedef {import("../types").Rollout} Rollout */

/**
 * Return the state as people see it: one that was aborted and finishes what it has begun is aborting.
 *
 * @param {Rollout} rollout
 */
export const rolloutState = (rollout) => (rollout.aborting ? "aborting" : rollout.state);

/** @param {Rollout} rollout */
export const rolloutBadge = (rollout) => badge(workAppearance(rolloutState(rollout)));

/** @param {Rollout} rollout */
export const isOver = (rollout) => rollout.state === "done" || rollout.state === "aborted";

/**
 * Write how many waves are done; an aborted rollout knows only those that began.
 *
 * @param {Rollout} rollout
 */
export function wavesDone(rollout) {
  const done = rollout.waves.filter((wave) => wave.state === "done").length;
  const knowsAll = !rollout.aborting && rollout.state !== "aborted";
  return knowsAll ? `${done} of ${count(rollout.waves.length, "wave")} done` : `${count(done, "wave")} done`;
}

/**
 * Write on how many hosts nothing is really done; nothing if all is real.
 *
 * @param {Rollout} rollout
 */
export function simulatedPart(rollout) {
  const simulated = rollout.simulated_hosts.length;
  if (!simulated) return "";
  if (simulated === rollout.hosts.length) return "simulated: nothing is really done";
  return `simulated on ${simulated} of ${count(rollout.hosts.length, "host")}: nothing is really done there`;
}

/**
 * Name who does the work.
 *
 * @param {Rollout} rollout
 */
export function doneBy(rollout) {
  if (rollout.driver === "external") return "somebody outside, who reports";
  return simulatedPart(rollout) || rollout.driver || "as each host declares it";
}
