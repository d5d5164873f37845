/** What can be done with a rollout that is not over. */

import { rolloutLink } from "../elements/links.js";
import { time } from "../elements/times.js";
import { count, listed, shortId } from "../page/formatting.js";
import { address } from "../page/router.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
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
 * Say what is withdrawn and what is finished when a rollout is stopped.
 *
 * @param {Rollout} rollout
 * @param {"pause" | "abort"} verb
 */
function stopped(rollout, verb) {
  const done = new Set(rollout.hosts_done);
  const begun = rollout.waves
    .flatMap((wave) =>
      wave.hosts.map((host, place) => ({ host, order: copy.orders.get(wave.orders[place] ?? "") })),
    )
    .filter(({ host, order }) => order && !done.has(host));
  /** @param {(state: string) => boolean} isMeant */
  const those = (isMeant) => begun.filter(({ order }) => isMeant(order?.state ?? "")).map(({ host }) => host);
  const finished = those((state) => state === "started" || state === "failed");
  const withdrawn = those((state) => state === "announced" || state === "queued");
  const rest = rollout.hosts_not_done.length - finished.length - withdrawn.length;
  return [
    `${count(done.size, "host")} done. `,
    finished.length
      ? `Started, so the steps that run are finished: ${listed(finished)}. `
      : "Nothing has started that must be finished. ",
    withdrawn.length ? `Announced, and withdrawn: ${listed(withdrawn)}. ` : "Nothing is announced. ",
    rest ? `Not begun: ${count(rest, "host")}. ` : "",
    verb === "abort" ? "Not done are then:" : "Still to do are:",
  ].join("");
}

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
    touches: (rollout) => ({ summary: stopped(rollout, verb), names: rollout.hosts_not_done }),
    fields: () => [REASON],
    request: (rollout, values) =>
      post(`/v1/rollouts/{id}/${verb}`, {
        path: { id: idOf(rollout) },
        body: { reason: values.reason ?? "" },
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

/**
 * @typedef {object} Plan  a dry run that somebody has looked at
 * @property {Rollout} plan
 * @property {import("../types").RolloutBody} body
 * @property {string[]} command
 * @property {{ machines: number | null, groups: string[] | null, projects: string[] }} reach
 * @property {() => boolean} isCurrent  whether the fleet would still be done in this way
 */

/** @type {import("./verb.js").Verb<Plan>} */
export const START_ROLLOUT = {
  verb: "start",
  label: "Start this rollout",
  right: "run",
  hurts: true,
  about: "It begins at once: the guests of the first wave are told where nothing is in the way.",
  question: ({ plan }) => {
    const hosts = count(plan.hosts.length, "host");
    return plan.action === "service"
      ? `Service ${hosts}?`
      : `${capital(plan.action)} the machines of ${hosts}?`;
  },
  doing: ({ plan }) => `Start on ${count(plan.hosts.length, "host")}`,
  touches: ({ plan, reach }) => ({ summary: touchedBy(plan, reach), names: plan.hosts }),
  request: ({ body, isCurrent }) => {
    if (!isCurrent())
      throw new Error("The fleet has changed, and the plan with it: look at the new one first.");
    return post("/v1/rollouts", { body });
  },
  command: ({ command }) => command,
  outcome: (answer) => ["Rollout ", rolloutLink(answer.rollout.id), " has begun."],
  leadsTo: (answer) => address("/rollouts/{id}", { id: answer.rollout.id }),
};

/**
 * @param {Rollout} plan
 * @param {Plan["reach"]} reach
 */
function touchedBy(plan, { machines, groups, projects }) {
  const of = groups?.length ? ` of ${groups.length === 1 ? "group" : "groups"} ${listed(groups)}` : "";
  const whose = `${projects.length === 1 ? "project" : "projects"} ${listed(projects) || "none"}`;
  return [
    line(`${machines === null ? "All machines on them" : count(machines, "machine")}${of}, ${whose}.`),
    line(
      `${capital(count(plan.waves.length, "wave"))}`,
      plan.ends_at ? [", until about ", time(plan.ends_at)] : ", of which nobody can say when they end",
      ".",
    ),
    plan.together &&
      line(h("strong", null, `Update domains are disturbed together, a broken promise: ${plan.together}`)),
    plan.simulated_hosts.length === plan.hosts.length && line("Simulated: nothing is really done."),
    plan.warnings.map((warning) => line(`Warning: ${warning}`)),
    line("Hosts:"),
  ];
}

/** @param {...import("../types").Child} words */
const line = (...words) => h("span", { class: "touched-line" }, words);

/** @param {string} word */
const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);
