/** The actions on an open rollout. */

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
const whyNot = (rollout) => (rollout.aborting ? `the rollout is being aborted: ${rollout.why}` : null);

/** @param {Rollout} rollout */
const idOf = (rollout) => rollout.id ?? "";

/**
 * Describe which work stops and which work finishes when a rollout is paused or aborted.
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
      ? `Running steps finish on: ${listed(finished)}. `
      : "No host has started work that must finish. ",
    withdrawn.length
      ? `Announcements are withdrawn for: ${listed(withdrawn)}. `
      : "No announcement is withdrawn. ",
    rest ? `Not begun: ${count(rest, "host")}. ` : "",
    verb === "abort" ? "These hosts stay undone:" : "These hosts remain to do:",
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
    question: (rollout) => `${label} rollout ${shortId(idOf(rollout))}?`,
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
    about: "Withdraws announced work that has not started. Started work finishes.",
    concerns: (rollout) => isOpen(rollout) && rollout.state !== "paused",
    outcome: (_, rollout) => ["Rollout ", rolloutLink(idOf(rollout)), " is paused."],
  }),
  {
    verb: "resume",
    label: "Resume",
    right: "run",
    isFrequent: true,
    about: "Continues the rollout. Withdrawn work is announced again, with full notice.",
    concerns: (rollout) => isOpen(rollout) && rollout.state === "paused",
    whyNot,
    question: (rollout) => `Resume rollout ${shortId(idOf(rollout))}?`,
    doing: () => "Resume",
    touches: (rollout) => ({
      summary: `${rollout.why ? `Paused because: ${rollout.why}. ` : ""}${count(rollout.hosts_not_done.length, "host")} to go:`,
      names: rollout.hosts_not_done,
    }),
    request: (rollout) =>
      post("/v1/rollouts/{id}/resume", { path: { id: idOf(rollout) }, body: { version: rollout.version } }),
    command: (rollout) => ["rollout", "resume", shortId(idOf(rollout))],
    outcome: (_, rollout) => ["Rollout ", rolloutLink(idOf(rollout)), " continues."],
  },
  stop("abort", "Abort", {
    about: "Finishes the started work and skips the rest. An aborted rollout cannot be resumed.",
    hurts: true,
    outcome: (_, rollout) => ["Rollout ", rolloutLink(idOf(rollout)), " is aborted."],
  }),
];

/**
 * @typedef {object} Plan  a dry run that the operator has reviewed
 * @property {Rollout} plan
 * @property {import("../types").RolloutBody} body
 * @property {string[]} command
 * @property {{ machines: number | null, groups: string[] | null, projects: string[] }} reach
 * @property {() => boolean} isCurrent  whether a new plan would give the same result
 */

/** @type {import("./verb.js").Verb<Plan>} */
export const START_ROLLOUT = {
  verb: "start",
  label: "Start this rollout",
  right: "run",
  hurts: true,
  about: "Starts now. Guests of the first wave get notice, unless something delays the wave.",
  question: ({ plan }) => {
    const hosts = count(plan.hosts.length, "host");
    return plan.action === "service"
      ? `Start service on ${hosts}?`
      : `${capital(plan.action)} the machines of ${hosts}?`;
  },
  doing: ({ plan }) => `Start on ${count(plan.hosts.length, "host")}`,
  touches: ({ plan, reach }) => ({ summary: touchedBy(plan, reach), names: plan.hosts }),
  request: ({ body, isCurrent }) => {
    if (!isCurrent())
      throw new Error("The fleet has changed since this plan was made. Review the new plan, then start it.");
    return post("/v1/rollouts", { body });
  },
  command: ({ command }) => command,
  outcome: (answer) => ["Rollout ", rolloutLink(answer.rollout.id), " has started."],
  leadsTo: (answer) => address("/rollouts/{id}", { id: answer.rollout.id }),
};

/**
 * @param {Rollout} plan
 * @param {Plan["reach"]} reach
 */
function touchedBy(plan, { machines, groups, projects }) {
  const ofGroups = groups?.length ? ` of ${groups.length === 1 ? "group" : "groups"} ${listed(groups)}` : "";
  const inProjects = `${projects.length === 1 ? "project" : "projects"} ${listed(projects) || "none"}`;
  return [
    line(
      `${machines === null ? "All machines on them" : count(machines, "machine")}${ofGroups}, ${inProjects}.`,
    ),
    line(
      `${capital(count(plan.waves.length, "wave"))}`,
      plan.ends_at ? [", until about ", time(plan.ends_at)] : ", with no predicted end",
      ".",
    ),
    plan.together &&
      line(
        h("strong", null, `Update domains are disturbed together, which breaks a promise: ${plan.together}`),
      ),
    plan.simulated_hosts.length === plan.hosts.length &&
      line("All hosts are simulated: no real machine is touched."),
    plan.warnings.map((warning) => line(`Warning: ${warning}`)),
    line("Hosts:"),
  ];
}

/** @param {...import("../types").Child} words */
const line = (...words) => h("span", { class: "touched-line" }, words);

/** @param {string} word */
const capital = (word) => word.charAt(0).toUpperCase() + word.slice(1);
