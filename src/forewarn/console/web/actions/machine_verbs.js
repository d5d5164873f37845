/** The actions on a machine. */

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
 * Write the project option. It is needed only if there are several projects.
 *
 * @param {string} project
 */
export const ofProject = (project) => (copy.projects.size > 1 ? ["--project", project] : []);

/** @param {Machine} machine */
const isSpot = (machine) => machine.priority === "spot";

/** Hosts that a machine can move to. @param {Machine} machine */
const targets = (machine) =>
  [...(copy.hosts?.values() ?? [])]
    .filter((host) => host.state === "ok" && host.name !== machine.host && !host.bare_metal)
    .map((host) => host.name);

/**
 * Explain why the server would refuse an order on a machine.
 *
 * @param {Machine} machine
 * @param {MachineOrder} verb
 */
function whyNot(machine, verb) {
  if (verb !== "terminate" && machine.host && copy.hosts?.get(machine.host)?.state === "failed")
    return `host ${machine.host} has failed: forewarn recovers its machines first`;
  if (verb === "start")
    return machine.state === "stopped" ? null : `the machine is ${machine.state}, not stopped`;
  if (machine.state === "stopped" && verb !== "terminate") return "the machine is stopped: start it first";
  return null;
}

/**
 * Declare an order on a machine.
 *
 * @param {MachineOrder} verb
 * @param {string} label
 * @param {Partial<MachineVerb> & { about: string }} more
 * @returns {MachineVerb}
 */
function order(verb, label, { fields = () => [REASON], ...more }) {
  const needsListener = verb === "restart" || verb === "redeploy";
  return {
    verb,
    label,
    right: "run",
    question: (machine) => `${label} ${machine.name}?`,
    doing: (machine) => `${label} ${machine.name}`,
    whyNot: (machine) => whyNot(machine, verb),
    touches: (machine) => oneMachine(machine, { needsListener }),
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
    about: "Starts a machine that was evicted.",
    isFrequent: true,
    concerns: (machine) => machine.state === "stopped",
  }),
  order("restart", "Restart", {
    right: "use",
    about: "Restarts the machine. Its guests get notice and can approve.",
    isFrequent: true,
    hurts: true,
    fields: () => [
      REASON,
      {
        name: "now",
        label: "Now",
        kind: "flag",
        hint: "Restart without waiting for guests, if the machine hangs.",
      },
    ],
  }),
  order("redeploy", "Redeploy", {
    right: "use",
    about: "Moves the machine to another host. Its guests get notice and can approve.",
    isFrequent: true,
    hurts: true,
  }),
  order("move", "Move", {
    about: "Moves the machine to a host of your choice, or live. Its guests get notice.",
    hurts: true,
    fields: (machine) => [
      {
        name: "to",
        label: "To",
        kind: "text",
        hint: "If omitted, forewarn chooses the best host.",
        suggestions: () => targets(machine),
      },
      {
        name: "live",
        label: "Live",
        kind: "flag",
        hint: "Move while the machine runs: it pauses for seconds. If omitted, forewarn redeploys it.",
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
  order("freeze", "Freeze", { about: "Pauses the machine for seconds, after notice.", hurts: true }),
  order("evict", "Evict", {
    about: "Stops a spot machine, after notice. Start brings it back.",
    hurts: true,
    concerns: isSpot,
  }),
  order("recommend-rebalance", "Recommend rebalance", {
    about: "Tells a spot machine that an eviction is likely. The machine keeps running.",
    concerns: isSpot,
    question: (machine) => `Recommend that ${machine.name} rebalances?`,
    doing: (machine) => `Send the recommendation to ${machine.name}`,
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
    about: "Removes the machine from the fleet at once, without notice. Terminate gives notice.",
    hurts: true,
    question: (machine) => `Delete ${machine.name} without notice?`,
    doing: (machine) => `Delete ${machine.name}`,
    touches: (machine) => oneMachine(machine, { needsListener: false }),
    typed: (machine) => machine.name,
    request: (machine) => remove("/v1/machines/{name}", named(machine)),
    command: (machine) => ["machine", "delete", machine.name, ...ofProject(machine.project)],
    outcome: (_, machine) => `${machine.name} is no longer in the fleet.`,
  },
];

/** @param {Machine} machine */
export const machineOutcome = (machine) => ["Saved ", machineLink(machine.name, machine.project), "."];
