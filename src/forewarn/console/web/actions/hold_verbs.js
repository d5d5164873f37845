/** Set and release holds on the fleet, a project or a host. A hold stops new announcements and starts. */

import { hostLink } from "../elements/links.js";
import { shortId } from "../page/formatting.js";
import { copy } from "../service/connected.js";
import { NEEDED_REASON, option, post } from "./verb.js";

/** @typedef {import("./verb.js").Values} Values */
/** @typedef {import("../types").Hold} Hold */

const ABOUT = "Stops new announcements and starts. Started work finishes; polls and approvals continue.";

/**
 * @param {string | undefined} project
 * @param {string | undefined} host
 */
const announcedNow = (project, host) => {
  const events = [...copy.events.values()].filter(
    (event) => event.status === "Scheduled" && (!project || event.project === project),
  );
  const orders = new Set(
    [...copy.orders.values()].filter((order) => order.host === host).map((order) => order.id),
  );
  return host ? events.filter((event) => orders.has(event.order)) : events;
};

/**
 * @param {string | undefined} project
 * @param {string | undefined} host
 */
function heldBack(project, host) {
  const events = announcedNow(project, host);
  return events.length
    ? {
        summary: "These announced machines will not start:",
        names: events.flatMap((event) => event.resources),
      }
    : { summary: "No announced event is affected now." };
}

/**
 * @param {{ project?: string, host?: string }} reach
 * @param {Values} values
 */
const request = ({ project, host }, values) =>
  post("/v1/holds", {
    body: {
      reason: values.reason ?? "",
      project: project ?? null,
      host: host ?? null,
      abort: Boolean(values.abort),
    },
  });

/** Read the holds again for a hold that only exists in memory: the stream has no record of it. @param {any} answer */
const after = (answer) => {
  if (answer.hold && !answer.hold.saved) void copy.readHolds();
};

/** @param {any} answer */
const caution = (answer) => (answer.hold?.note ? ` The hold is ${answer.hold.note}.` : "");

/**
 * @param {{ project?: string, host?: string }} reach
 * @param {Values} values
 */
const command = ({ project, host }, values) => [
  "hold",
  "set",
  ...option("--project", project),
  ...option("--host", host),
  ...option("--reason", values.reason || "REASON"),
  ...(values.abort ? ["--abort"] : []),
];

/** @type {import("./verb.js").Field} */
const ABORT = {
  name: "abort",
  label: "Also stop running work",
  kind: "flag",
  hint: "forewarn asks the drivers to cancel, and lists the work that cannot stop.",
};

/** The reach of a hold, from the form. @param {Values} values */
const reachOf = (values) => ({
  ...(values.reach === "project" ? { project: values.project ?? "" } : {}),
  ...(values.reach === "host" ? { host: values.host ?? "" } : {}),
});

/** @type {import("./verb.js").Verb<any>} */
export const HOLD = {
  verb: "hold",
  label: "Hold",
  right: "run",
  about: ABOUT,
  isFrequent: true,
  hurts: true,
  question: () => "Hold all new work?",
  doing: () => "Hold",
  touches: () => heldBack(undefined, undefined),
  fields: () => [
    {
      name: "reach",
      label: "Reach",
      kind: "choice",
      value: "all",
      choices: { all: "Whole fleet", project: "One project", host: "One host" },
    },
    {
      name: "project",
      label: "Project",
      kind: "choice",
      value: [...copy.projects.keys()][0] ?? "default",
      choices: Object.fromEntries([...copy.projects.keys()].map((name) => [name, name])),
      when: (values) => values.reach === "project",
    },
    {
      name: "host",
      label: "Host",
      kind: "text",
      isNeeded: true,
      suggestions: () => copy.hosts?.keys() ?? [],
      when: (values) => values.reach === "host",
    },
    NEEDED_REASON,
    ABORT,
  ],
  request: (_, values) => request(reachOf(values), values),
  command: (_, values) => command(reachOf(values), values),
  after,
  outcome: (answer) => `Held: ${answer.hold?.reach ?? answer.reach}.${caution(answer)}`,
};

/** @type {import("./verb.js").Verb<{ name: string }>} */
export const HOLD_HOST = {
  verb: "hold",
  label: "Hold",
  right: "run",
  about: ABOUT,
  hurts: true,
  concerns: (host) => !copy.holds?.some((hold) => hold.host === host.name),
  question: (host) => `Hold ${host.name}?`,
  doing: (host) => `Hold ${host.name}`,
  touches: (host) => heldBack(undefined, host.name),
  fields: () => [NEEDED_REASON, ABORT],
  request: (host, values) => request({ host: host.name }, values),
  command: (host, values) => command({ host: host.name }, values),
  after,
  outcome: (answer, host) => ["Held: ", hostLink(host.name), `.${caution(answer)}`],
};

/** @type {import("./verb.js").Verb<{ name: string }>} */
export const HOLD_PROJECT = {
  ...HOLD_HOST,
  concerns: (project) => !copy.holds?.some((hold) => hold.project === project.name),
  question: (project) => `Hold project ${project.name}?`,
  doing: (project) => `Hold ${project.name}`,
  touches: (project) => heldBack(project.name, undefined),
  request: (project, values) => request({ project: project.name }, values),
  command: (project, values) => command({ project: project.name }, values),
  outcome: (answer, project) => `Held: project ${project.name}.${caution(answer)}`,
};

/** @type {import("./verb.js").Verb<Hold>} */
export const RELEASE = {
  verb: "release",
  label: "Release",
  right: "run",
  about: "Lets waiting work continue. Work that missed its start is announced again, with full notice.",
  isFrequent: true,
  question: (hold) => `Release the hold on ${hold.reach}?`,
  doing: () => "Release",
  touches: (hold) => ({
    summary: hold.refused ? `This hold has no effect: ${hold.refused}` : `Held by ${hold.by}: ${hold.reason}`,
  }),
  request: (hold) => post("/v1/holds/{id}/release", { path: { id: hold.id } }),
  after,
  command: (hold) => ["release", shortId(hold.id)],
  outcome: (_, hold) => `Released: ${hold.reach}.`,
};
