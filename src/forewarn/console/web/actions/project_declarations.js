/** Add, change and delete projects. */

import { dayRanges } from "../page/day_ranges.js";
import { typedSpan } from "../page/typed_times.js";
import { api, copy } from "../service/connected.js";
import { body, differences, filled, linesOf, NAME, options, typedName } from "./declared_fields.js";
import { put, putNew, remove } from "./verb.js";

/** @typedef {import("../types").Project} Project */
/** @typedef {import("./declared_fields.js").DeclaredField} DeclaredField */

const DAYS_OF_WEEK = 7;

/** @type {DeclaredField[]} */
const DECLARED = [
  {
    name: "time_zone",
    label: "Time zone",
    kind: "text",
    hint: "For the windows below, such as Europe/Berlin. If omitted, UTC.",
  },
  {
    name: "windows",
    label: "Maintenance windows",
    kind: "lines",
    hint: "Times for maintenance, one per line, such as sat,sun 22:00 4h or 22:00 4h. If omitted, any time.",
    written: (windows) => windows.map(windowLine).join("\n"),
    read: (text) => linesOf(text).map(readWindow),
    options: (text) => linesOf(text).flatMap((line) => ["--window", line]),
  },
  {
    name: "blackout",
    label: "Days without maintenance",
    kind: "lines",
    hint: "One per line, such as 2026-12-24 or 2026-12-24/2027-01-01.",
    written: (days) =>
      dayRanges(days)
        .map(([first, last]) => (first === last ? first : `${first}/${last}`))
        .join("\n"),
    read: linesOf,
    options: (text) => linesOf(text).flatMap((line) => ["--blackout", line]),
  },
  { name: "rehearsal", label: "Rehearsals", kind: "flag", hint: "Allow scenarios to run on this project." },
  {
    name: "sees_hosts",
    label: "Sees hosts",
    kind: "flag",
    hint: "Users of the project see the names of hosts and operators.",
  },
];

/** @param {Project["windows"][number]} window */
export const windowLine = ({ days, start, length }) =>
  [...(days.length === DAYS_OF_WEEK ? [] : [days.join(",")]), start, typedSpan(length)].join(" ");

/** Parse a window. Missing parts are omitted: the server explains what it expects. @param {string} line */
function readWindow(line) {
  const words = line.split(/\s+/);
  const length = words.pop();
  const start = words.pop();
  return {
    ...(words.length ? { days: words.join(",").split(",") } : {}),
    ...(start === undefined ? { start: length } : { start, length }),
  };
}

/** @param {Project} project */
const saved = (project) => `Saved project ${project.name}.`;

/** @type {import("./verb.js").Verb<null>} */
export const ADD_PROJECT = {
  verb: "put",
  label: "Add a project",
  right: "run",
  about: "Adds a tenant. Only its own users and operators see its groups and machines.",
  question: () => "Add a project?",
  doing: () => "Add",
  fields: () => [NAME, ...filled(DECLARED, null)],
  request: (_, values) =>
    putNew("/v1/projects/{name}", { path: { name: typedName(values) }, body: body(DECLARED, null, values) }),
  command: (_, values) => [
    "project",
    "put",
    typedName(values) || "NAME",
    "--new",
    ...options(DECLARED, null, values),
  ],
  outcome: (answer) => saved(answer.project),
};

/** @type {import("./verb.js").Verb<Project>} */
export const CHANGE_PROJECT = {
  verb: "put",
  label: "Change",
  right: "run",
  about: "Changes the project's declaration. Events that are already announced keep their time.",
  question: (project) => `Change project ${project.name}?`,
  doing: () => "Save",
  load: async (project) => {
    const { answer, tag } = await api.getTagged("/v1/projects/{name}", { path: { name: project.name } });
    return { subject: answer.project, tag };
  },
  differences: (project, values) => differences(DECLARED, project, values),
  fields: (project) => filled(DECLARED, project),
  request: (project, values) =>
    put("/v1/projects/{name}", { path: { name: project.name }, body: body(DECLARED, project, values) }),
  command: (project, values) => ["project", "put", project.name, ...options(DECLARED, project, values)],
  outcome: (answer) => saved(answer.project),
};

/** @type {import("./verb.js").Verb<Project>} */
export const DELETE_PROJECT = {
  verb: "delete",
  label: "Delete",
  right: "run",
  about: "Removes an empty project from the fleet, with its tokens and webhooks.",
  hurts: true,
  question: (project) => `Delete project ${project.name}?`,
  doing: (project) => `Delete ${project.name}`,
  whyNot: (project) =>
    copy.summary?.groups.some((each) => each.project === project.name)
      ? "the project has groups or machines: delete them first"
      : null,
  typed: (project) => project.name,
  request: (project) => remove("/v1/projects/{name}", { path: { name: project.name } }),
  command: (project) => ["project", "delete", project.name],
  outcome: (_, project) => `${project.name} is no longer in the fleet.`,
};
