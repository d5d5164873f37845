/** How far a rollout is, as a bar: hosts done, under way, given up, and still to do. */

import { count } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { hostsDone, isOver } from "./rollout_words.js";

/** @typedef {import("../types").Rollout} Rollout */
/** @typedef {{ done: number, underWay: number, givenUp: number, left: number }} Shares */

/**
 * Count the hosts of a rollout by how far they are.
 *
 * @param {Rollout} rollout
 * @returns {Shares}
 */
function sharesOf(rollout) {
  const open = rollout.waves.filter((wave) => wave.state !== "done" && wave.state !== "planned");
  const done = new Set(rollout.hosts_done);
  const givenUp = rollout.given_up.length;
  const underWay = open
    .flatMap((wave) => wave.hosts)
    .filter((host) => !done.has(host) && !rollout.given_up.includes(host)).length;
  return { done: done.size, underWay, givenUp, left: rollout.hosts.length - done.size - underWay - givenUp };
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
      "aria-valuetext": hostsDone(rollout),
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

/** Write the shares in words. @param {Rollout} rollout */
export function progressWords(rollout) {
  const { underWay, givenUp, left } = sharesOf(rollout);
  return [
    hostsDone(rollout),
    underWay && `${underWay} under way`,
    givenUp && `${givenUp} given up`,
    left && (isOver(rollout) ? `${count(left, "host")} not done` : `${left} still to do`),
  ]
    .filter(Boolean)
    .join(", ");
}
