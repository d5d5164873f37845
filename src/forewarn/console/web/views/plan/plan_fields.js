/**
 * What a rollout can be told, each declared once: its name in the address of the page, in the API and at the command
 * line. What the API learns to take gets its entry here, and the form, the address and the command have it.
 */

import { driverChoices } from "../../elements/driver_choices.js";

/**
 * @typedef {object} PlanField
 * @property {string} name  in the page's address
 * @property {string} key  in the API
 * @property {string} flag  at the command line
 * @property {"choice" | "count" | "span" | "moment" | "text" | "flag"} kind
 * @property {string} label
 * @property {string} [hint]
 * @property {string} [otherwise]  what holds if nothing is said
 * @property {{ [value: string]: string }} [choices]
 * @property {string} [warning]  shown once it is said
 * @property {string} [sent]  what a flag is in the API, if not true
 * @property {boolean} [isFurther]  whether few people need it
 */

/** @type {PlanField[]} */
export const FIELDS = [
  {
    name: "action",
    key: "action",
    flag: "--action",
    kind: "choice",
    label: "What is done to their machines",
    otherwise: "freeze",
    choices: {
      freeze: "Freeze: paused for a moment",
      reboot: "Reboot: restarted where they are",
      redeploy: "Redeploy: moved to other hosts",
      service: "Service: the hosts, once emptied",
    },
  },
  {
    name: "in-place",
    key: "mode",
    flag: "--in-place",
    sent: "in-place",
    kind: "flag",
    label: "In place",
    hint: "With service: machines stay, and restart with their host.",
  },
  {
    name: "return",
    key: "returning",
    flag: "--return",
    kind: "flag",
    label: "They come back afterwards",
    hint: "With service: a second move, with notice of its own.",
  },
  {
    name: "host_work",
    key: "host_work",
    flag: "--host-work",
    kind: "text",
    label: "Who works on the hosts themselves",
    hint: "With service; left out: the hook of the settings, or who moves the machines.",
    isFurther: true,
  },
  {
    name: "hosts_at_once",
    key: "hosts_at_once",
    flag: "--hosts-at-once",
    kind: "count",
    label: "Hosts at once",
    otherwise: "1",
    hint: "How many hosts a wave has at most.",
  },
  {
    name: "gap",
    key: "gap_seconds",
    flag: "--gap",
    kind: "span",
    label: "Gap between waves",
    otherwise: "0",
    hint: "From the end of a wave to the next announcement, such as 15m or 1h30m.",
  },
  {
    name: "deadline",
    key: "deadline",
    flag: "--deadline",
    kind: "moment",
    label: "Deadline",
    hint: "From then on windows give way, and guests cannot defer it any more.",
  },
  {
    name: "reason",
    key: "reason",
    flag: "--reason",
    kind: "text",
    label: "Reason",
    hint: "Why, for the records.",
  },
  {
    name: "takes",
    key: "expected_seconds",
    flag: "--takes",
    kind: "span",
    label: "A host takes",
    hint: "How long the work of a stage is expected to take: so much must fit into the windows of projects.",
    isFurther: true,
  },
  {
    name: "health",
    key: "health_seconds",
    flag: "--health",
    kind: "span",
    label: "Healthy within",
    otherwise: "30m",
    hint: "How long after its work a machine may take to be healthy; else the rollout pauses.",
    isFurther: true,
  },
  {
    name: "driver",
    key: "driver",
    flag: "--driver",
    kind: "choice",
    label: "Who does the work",
    otherwise: "",
    get choices() {
      return driverChoices("As each host declares it");
    },
    isFurther: true,
  },
  {
    name: "heartbeat",
    key: "heartbeat_seconds",
    flag: "--heartbeat",
    kind: "span",
    label: "Heartbeat",
    hint: "How long an external driver may be silent before it has failed.",
    isFurther: true,
  },
  {
    name: "require_poll",
    key: "require_poll",
    flag: "--require-poll",
    kind: "flag",
    label: "Machines must poll again",
    hint: "A machine that polled before is healthy when it has polled again.",
    isFurther: true,
  },
  {
    name: "canary",
    key: "canary",
    flag: "--canary",
    kind: "count",
    label: "Canaries",
    hint: "So many of the hosts come first, and apart from all others.",
    isFurther: true,
  },
  {
    name: "soak",
    key: "soak_seconds",
    flag: "--soak",
    kind: "span",
    label: "Watch canaries for",
    hint: "How long the others wait once the canaries are done.",
    isFurther: true,
  },
  {
    name: "max_failures",
    key: "max_failures",
    flag: "--max-failures",
    kind: "text",
    label: "Hosts that may fail",
    otherwise: "0",
    hint: "How many hosts are left out when they fail, before the rollout pauses: 3, or 2%.",
    isFurther: true,
  },
  {
    name: "whole",
    key: "whole",
    flag: "--whole",
    kind: "flag",
    label: "Each host in one go",
    hint: "All its machines announced and awaited together; refused if it carries two update domains of a group.",
    isFurther: true,
  },
  {
    name: "overlap",
    key: "overlap",
    flag: "--overlap",
    kind: "flag",
    label: "Overlap with another rollout",
    hint: "Begin even if another rollout has some of the hosts still to do: each waits for the other there.",
    isFurther: true,
  },
  {
    name: "together",
    key: "together",
    flag: "--together",
    kind: "text",
    label: "Two update domains together, because",
    hint: "Why a host is done in one go though it carries two update domains of a group.",
    warning:
      "This breaks a promise: groups with two update domains on a host are disturbed in both at once. It is recorded as a broken promise to them, with this reason.",
    isFurther: true,
  },
];
