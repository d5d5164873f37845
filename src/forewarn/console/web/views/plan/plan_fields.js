/**
 * The options of a rollout, each declared once: its name in the URL, in the API and on the command line. The form, the
 * request and the command are built from these declarations.
 */

import { driverChoices } from "../../elements/driver_choices.js";

/**
 * @typedef {object} PlanField
 * @property {string} name  in the URL
 * @property {string} key  in the API
 * @property {string} flag  on the command line
 * @property {"choice" | "count" | "span" | "moment" | "text" | "flag"} kind
 * @property {string} label
 * @property {string} [hint]
 * @property {string} [defaultValue]  the default
 * @property {{ [value: string]: string }} [choices]
 * @property {string} [warning]  shown once the field has a value
 * @property {string} [apiValue]  the API value of a flag, if not true
 * @property {boolean} [isAdvanced]  whether the field is under "More options"
 * @property {(query: URLSearchParams) => boolean} [when]  whether the option applies; by default always
 */

/** @param {URLSearchParams} query */
const isService = (query) => query.get("action") === "service";

/** @type {PlanField[]} */
export const FIELDS = [
  {
    name: "action",
    key: "action",
    flag: "--action",
    kind: "choice",
    label: "Action",
    defaultValue: "freeze",
    choices: {
      freeze: "Freeze: pause the machines briefly",
      reboot: "Reboot: restart the machines in place",
      redeploy: "Redeploy: move the machines to other hosts",
      service: "Service: work on the hosts themselves",
    },
  },
  {
    name: "in-place",
    key: "mode",
    flag: "--in-place",
    apiValue: "in-place",
    kind: "flag",
    label: "In place",
    hint: "The machines stay, and restart with their host.",
    when: isService,
  },
  {
    name: "return",
    key: "returning",
    flag: "--return",
    kind: "flag",
    label: "Move machines back afterwards",
    hint: "The second move has its own notice.",
    when: (query) => isService(query) && !query.get("in-place"),
  },
  {
    name: "host_work",
    key: "host_work",
    flag: "--host-work",
    kind: "text",
    label: "Driver for the host itself",
    hint: "Default: the configured hook, or the driver of its machines.",
    isAdvanced: true,
    when: isService,
  },
  {
    name: "hosts_at_once",
    key: "hosts_at_once",
    flag: "--hosts-at-once",
    kind: "count",
    label: "Hosts at once",
    defaultValue: "1",
    hint: "Maximum number of hosts in a wave.",
  },
  {
    name: "gap",
    key: "gap_seconds",
    flag: "--gap",
    kind: "span",
    label: "Gap between waves",
    defaultValue: "0",
    hint: "From the end of a wave to the next announcement, such as 15m or 1h30m.",
  },
  {
    name: "deadline",
    key: "deadline",
    flag: "--deadline",
    kind: "moment",
    label: "Deadline",
    hint: "After the deadline, maintenance windows and deferrals no longer apply.",
  },
  {
    name: "reason",
    key: "reason",
    flag: "--reason",
    kind: "text",
    label: "Reason",
    hint: "Shown in the history.",
  },
  {
    name: "takes",
    key: "expected_seconds",
    flag: "--takes",
    kind: "span",
    label: "Expected duration",
    hint: "How long a stage takes, such as 30m. forewarn starts a stage only if it fits into the windows.",
    isAdvanced: true,
  },
  {
    name: "health",
    key: "health_seconds",
    flag: "--health",
    kind: "span",
    label: "Health timeout",
    defaultValue: "30m",
    hint: "The rollout pauses if a machine is not healthy this long after its work.",
    isAdvanced: true,
  },
  {
    name: "driver",
    key: "driver",
    flag: "--driver",
    kind: "choice",
    label: "Driver",
    defaultValue: "",
    get choices() {
      return driverChoices("Default: each host's driver");
    },
    isAdvanced: true,
  },
  {
    name: "heartbeat",
    key: "heartbeat_seconds",
    flag: "--heartbeat",
    kind: "span",
    label: "Heartbeat",
    hint: "The work fails if an external driver sends no report for this long.",
    isAdvanced: true,
  },
  {
    name: "require_poll",
    key: "require_poll",
    flag: "--require-poll",
    kind: "flag",
    label: "Require a poll",
    hint: "A machine that polled before is healthy only after it polls again.",
    isAdvanced: true,
  },
  {
    name: "canary",
    key: "canary",
    flag: "--canary",
    kind: "count",
    label: "Canary hosts",
    hint: "This many hosts come first, in waves of their own.",
    isAdvanced: true,
  },
  {
    name: "soak",
    key: "soak_seconds",
    flag: "--soak",
    kind: "span",
    label: "Canary soak time",
    hint: "How long the other hosts wait after the canaries are done.",
    isAdvanced: true,
  },
  {
    name: "max_failures",
    key: "max_failures",
    flag: "--max-failures",
    kind: "text",
    label: "Allowed failures",
    defaultValue: "0",
    hint: "The rollout pauses when more hosts fail than this, such as 3 or 2%.",
    isAdvanced: true,
  },
  {
    name: "whole",
    key: "whole",
    flag: "--whole",
    kind: "flag",
    label: "Whole host at once",
    hint: "All machines of a host share one stage. The server refuses a host with two update domains of a group.",
    isAdvanced: true,
    when: (query) => !isService(query),
  },
  {
    name: "overlap",
    key: "overlap",
    flag: "--overlap",
    kind: "flag",
    label: "Overlap another rollout",
    hint: "Start even if another open rollout includes some of these hosts. On a shared host, one waits for the other.",
    isAdvanced: true,
  },
  {
    name: "together",
    key: "together",
    flag: "--together",
    kind: "text",
    label: "Treat update domains together because",
    hint: "With a reason, a host with two update domains of a group is done at once.",
    warning:
      "This breaks a promise: two update domains of a group are disturbed together. The history records a broken promise with this reason.",
    isAdvanced: true,
  },
];

/**
 * Return the options that apply to the chosen action.
 *
 * @param {URLSearchParams} query
 */
export const applicableFields = (query) => FIELDS.filter((field) => field.when?.(query) ?? true);
