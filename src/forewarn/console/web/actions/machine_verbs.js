/** What can be done to a machine. */

import { copy } from "../service/connected.js";
import { machineLink } from "../elements/links.js";
import { oneMachine } from "./touched.js";
import { flag, option, post, REASON, remove } from "./verb.js";

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("./verb.js").Verb<Machine>} MachineVerb */

/**
 * @typedef {"restart" | "redeploy" | "move" | "freeze" | "evict" | "terminate" | "start" | "recommend-rebalance"} MachineOrder
 */

/** @param {Machine} machine */
const named = (machine) => ({ path: { name: machine.name }, query: { project: machine.project } });

/**
 * Write whose machine is meant, where several projects may have the name.
 *
 * @param {string} project
 */
export const ofProject = (project) => (copy.projects.size > 1 ? ["--project", project] : []);

/** @param {Machine} machine */
const isSpot = (machine) => machine.priority === "spot";

/** Where machines may go. @param {Machine} machine */
const targets = (machine) =>
  [...(copy.hosts?.values() ?? [])]
    .filter((host) => host.state === "ok" && host.name !== machine.host && !host.bare_metal)
    .map((host) => host.name);

/**
 * Say why an order on a machine would be refused.
 *
 * @param {Machine} machine
 * @param {MachineOrder} verb
 */
function whyNot(machine, verb) {
  if (verb !== "terminate" && machine.host && copy.hosts?.get(machine.host)?.state === "failed")
    return `its host ${machine.host} is failed: it is recovered first`;
  if (verb === "start")
    return machine.state === "stopped" ? null : `it is ${machine.state}: there is nothing to start`;
  if (machine.state === "stopped" && verb !== "terminate") return "it is stopped: start it first";
  return null;
}

/**
 * An order on a machine: what all of them have in common.
 *
 * @param {MachineOrder} verb
 * @param {string} label
 * @param {Partial<MachineVerb> & { about: string }} more
 * @returns {MachineVerb}
 */
function order(verb, label, { fields = () => [REASON], ...more }) {
  const isTold = verb === "restart" || verb === "redeploy";
  return {
    verb,
    label,
    right: "run",
    question: (machine) => `${label} ${machine.name}?`,
    doing: (machine) => `${label} ${machine.name}`,
    whyNot: (machine) => whyNot(machine, verb),
    touches: (machine) => oneMachine(machine, { told: isTold }),
    fields,
    request: (machine, values) =>
      post(`/v1/machines/{name}/${verb}`, {
        ...named(machine),
        body: /** @type {any} */ ({ reason: values.reason ?? "", ...(values.now ? { now: true } : {}) }),
      }),
    command: (machine, values) => [
      "machine",
      verb,
      machine.name,
      ...ofProject(machine.project),
      ...option("--reason", values.reason),
      ...flag("--now", values.now),
    ],
    ...more,
  };
}

/** @type {MachineVerb[]} */
export const MACHINE_VERBS = [
  order("start", "Start", {
    right: "use",
    about: "Brings a machine back that was evicted.",
    isFrequent: true,
    concerns: (machine) => machine.state === "stopped",
  }),
  order("restart", "Restart", {
    right: "use",
    about: "Its guests are told, and may get ready or approve.",
    isFrequent: true,
    hurts: true,
    fields: () => [
      REASON,
      { name: "now", label: "Now", kind: "flag", hint: "Do not wait for its guests: it is wedged." },
    ],
  }),
  order("redeploy", "Redeploy", {
    right: "use",
    about: "Moves it to another host; its guests are told, and may get ready or approve.",
    isFrequent: true,
    hurts: true,
  }),
  order("move", "Move", {
    about: "Moves it to a host of your choice, or while it runs; its guests are told, and may get ready.",
    hurts: true,
    fields: (machine) => [
      {
        name: "to",
        label: "To",
        kind: "text",
        hint: "If omitted, the best host.",
        suggestions: () => targets(machine),
      },
      {
        name: "live",
        label: "Live",
        kind: "flag",
        hint: "While it runs: it is paused for seconds. Otherwise it is redeployed.",
      },
      REASON,
    ],
    request: (machine, values) =>
      post("/v1/machines/{name}/move", {
        ...named(machine),
        body: /** @type {any} */ ({
          reason: values.reason ?? "",
          to: values.to || null,
          live: Boolean(values.live),
        }),
      }),
    command: (machine, values) => [
      "machine",
      "move",
      machine.name,
      ...ofProject(machine.project),
      ...option("--to", values.to),
      ...flag("--live", values.live),
      ...option("--reason", values.reason),
    ],
  }),
  order("freeze", "Freeze", { about: "Pauses it for seconds, after notice.", hurts: true }),
  order("evict", "Evict", {
    about: "Stops a spot machine, after notice; Start brings it back.",
    hurts: true,
    concerns: isSpot,
  }),
  order("recommend-rebalance", "Recommend rebalance", {
    about: "Tells a spot machine that it may be evicted soon; nothing is done to it.",
    concerns: isSpot,
    question: (machine) => `Recommend that ${machine.name} rebalances?`,
    doing: (machine) => `Recommend it to ${machine.name}`,
  }),
  order("terminate", "Terminate", {
    right: "use",
    about: "Deletes the machine, after notice to its guests.",
    hurts: true,
  }),
  {
    verb: "delete",
    label: "Delete",
    right: "run",
    about: "Takes it out of the fleet at once, without notice to anybody. Terminate gives notice.",
    hurts: true,
    question: (machine) => `Delete ${machine.name} without notice?`,
    doing: (machine) => `Delete ${machine.name}`,
    touches: (machine) => oneMachine(machine, { told: false }),
    typed: (machine) => machine.name,
    request: (machine) => remove("/v1/machines/{name}", named(machine)),
    command: (machine) => ["machine", "delete", machine.name, ...ofProject(machine.project)],
    outcome: (_, machine) => `${machine.name} is no longer in the fleet.`,
  },
];

/** @param {Machine} machine */
export const machineOutcome = (machine) => ["Saved ", machineLink(machine.name, machine.project), "."];
