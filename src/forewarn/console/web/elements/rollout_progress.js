/** The progress of a rollout as a bar: hosts done, under way, skipped, and still to do. */

import { count } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { progressOf } from "./host_progress.js";
import { isOver } from "./rollout_words.js";

/** @typedef {import("../types").Rollout} Rollout */
/** @typedef {{ done: number, underWay: number, givenUp: number, left: number }} Shares */

/**
 * Count the hosts of a rollout by progress.
 *
 * @param {Rollout} rollout
 * @returns {Shares}
 */
function sharesOf(rollout) {
  const progress = [...progressOf(rollout).values()];
  const done = progress.filter((each) => each === "done").length;
  const givenUp = rollout.given_up.length;
  const underWay = progress.filter((each) => !["planned", "done", "leftOut"].includes(each)).length;
  return { done, underWay, givenUp, left: rollout.hosts.length - done - underWay - givenUp };
}

/** @param {Rollout} rollout */
export function rolloutProgress(rollout) {
  const shares = sharesOf(rollout);
  /** @type {[string, number][]} */
  const parts = [
    ["done", shares.done],
    ["under-way", shares.underWay],
    ["given-up", shares.givenUp],
  ];
  return h(
    "div",
    {
      class: "rollout-progress",
      role: "progressbar",
      "aria-label": "Hosts done",
      "aria-valuemin": "0",
      "aria-valuemax": rollout.hosts.length,
      "aria-valuenow": shares.done,
      "aria-valuetext": hostsDone(rollout, shares),
    },
    parts
      .filter(([, number]) => number)
      .map(([kind, number]) =>
        h("i", {
          key: kind,
          "data-kind": kind,
          style: { "inline-size": `${((100 * number) / Math.max(1, rollout.hosts.length)).toFixed(2)}%` },
        }),
      ),
  );
}

/** Describe the progress in words. @param {Rollout} rollout */
export function progressWords(rollout) {
  const shares = sharesOf(rollout);
  const { underWay, givenUp, left } = shares;
  return [
    hostsDone(rollout, shares),
    underWay && `${underWay} under way`,
    givenUp && `${givenUp} skipped`,
    left && (isOver(rollout) ? `${count(left, "host")} not done` : `${left} still to do`),
  ]
    .filter(Boolean)
    .join(", ");
}

/**
 * @param {Rollout} rollout
 * @param {Shares} shares
 */
const hostsDone = (rollout, { done }) => `${done} of ${count(rollout.hosts.length, "host")} done`;
