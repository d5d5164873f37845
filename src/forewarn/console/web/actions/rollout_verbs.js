/** What can be done with a rollout that is not over. */

import { rolloutLink } from "../elements/links.js";
import { count, shortId } from "../page/formatting.js";
import { option, post, REASON } from "./verb.js";

/** @typedef {import("../types").Rollout} Rollout */
/** @typedef {import("./verb.js").Verb<Rollout>} RolloutVerb */

/** @param {Rollout} rollout */
const isOpen = (rollout) => Boolean(rollout.id) && !rollout.ended_at;

/** @param {Rollout} rollout */
const whyNot = (rollout) => (rollout.aborting ? `it is being aborted: ${rollout.why}` : null);

/** @param {Rollout} rollout */
const idOf = (rollout) => rollout.id ?? "";

/**
 * @param {"pause" | "abort"} verb
 * @param {string} label
 * @param {Partial<RolloutVerb> & { about: string }} more
 * @returns {RolloutVerb}
 */
function stop(verb, label, more) {
  return {
    verb,
    label,
    right: "run",
    isFrequent: true,
    question: (rollout) => `${label} the rollout ${shortId(idOf(rollout))}?`,
    doing: () => label,
    concerns: isOpen,
    whyNot,
    touches: (rollout) => ({
      summary: `${count(rollout.hosts_done.length, "host")} done, ${rollout.hosts_not_done.length} not:`,
      names: rollout.hosts_not_done,
    }),
    fields: () => [REASON],
    request: (rollout, values) =>
      post(`/v1/rollouts/{id}/${verb}`, {
        path: { id: idOf(rollout) },
        body: { reason: values.reason ?? "", version: rollout.version },
      }),
    command: (rollout, values) => [
      "rollout",
      verb,
      shortId(idOf(rollout)),
      ...option("--reason", values.reason),
    ],
    ...more,
  };
}

/** @type {RolloutVerb[]} */
export const ROLLOUT_VERBS = [
  stop("pause", "Pause", {
    about: "What is announced and not started is withdrawn; what has started is finished.",
    concerns: (rollout) => isOpen(rollout) && rollout.state !== "paused",
    outcome: (_, rollout) => ["Rollout ", rolloutLink(idOf(rollout)), " is paused."],
  }),
  {
    verb: "resume",
    label: "Resume",
    right: "run",
    isFrequent: true,
    about: "It goes on; what was withdrawn is announced anew, with full notice.",
    concerns: (rollout) => isOpen(rollout) && rollout.state === "paused",
    whyNot,
    question: (rollout) => `Resume the rollout ${shortId(idOf(rollout))}?`,
    doing: () => "Resume",
    touches: (rollout) => ({
      summary: `${rollout.why ? `It was paused: ${rollout.why}. ` : ""}${count(rollout.hosts_not_done.length, "host")} to go:`,
      names: rollout.hosts_not_done,
    }),
    request: (rollout) =>
      post("/v1/rollouts/{id}/resume", { path: { id: idOf(rollout) }, body: { version: rollout.version } }),
    command: (rollout) => ["rollout", "resume", shortId(idOf(rollout))],
    outcome: (_, rollout) => ["Rollout ", rolloutLink(idOf(rollout)), " goes on."],
  },
  stop("abort", "Abort", {
    about: "What has started is finished, the rest is not done, and it cannot be resumed.",
    hurts: true,
    outcome: (_, rollout) => ["Rollout ", rolloutLink(idOf(rollout)), " is aborted."],
  }),
];
