/** On what terms a host is worked on: the same of all work, as fields, in the request and as options of the command. */

import { driverChoices } from "../elements/driver_choices.js";
import { momentFromField, parseSpan } from "../page/typed_times.js";
import { flag, option } from "./verb.js";

/** @typedef {import("./verb.js").Field} Field */
/** @typedef {import("./verb.js").Values} Values */

/** How long work takes, until when it is done, and by whom: the same for all work on a host. @type {Field[]} */
export const TERMS = [
  {
    name: "deadline",
    label: "Deadline",
    kind: "instant",
    hint: "From then on the windows of projects give way.",
    isRare: true,
  },
  {
    name: "expected",
    label: "Takes",
    kind: "duration",
    hint: "How long the work of a stage is expected to take, as 30m: so much must fit into the windows.",
    isRare: true,
  },
];

/** @type {Field[]} */
export const EMERGENCY = [
  {
    name: "emergency",
    label: "Emergency, because",
    kind: "text",
    hint: "No notice is given: recorded as a broken promise to everybody concerned.",
    isRare: true,
  },
  {
    name: "notice",
    label: "Notice of the emergency",
    kind: "duration",
    hint: "As 2m; left out: none.",
    when: (values) => Boolean(values.emergency),
    isRare: true,
  },
  {
    name: "despite_hold",
    label: "Despite holds",
    kind: "flag",
    hint: "No hold stops it.",
    when: (values) => Boolean(values.emergency),
    isRare: true,
  },
];

/** @type {Field[]} */
export const EXCEPTIONS = [
  {
    name: "together",
    label: "In one go all the same, because",
    kind: "text",
    hint: "Two update domains of a group are disturbed together: recorded as a broken promise.",
    isRare: true,
  },
  {
    name: "driver",
    label: "Who does the work",
    kind: "choice",
    get choices() {
      return driverChoices("As the host declares it");
    },
    isRare: true,
  },
  {
    name: "heartbeat",
    label: "Heartbeat",
    kind: "duration",
    hint: "How long an external driver may be silent, as 10m.",
    when: (values) => isDoneOutside(values),
    isRare: true,
  },
  ...EMERGENCY,
];

/** @param {Values} values */
const isDoneOutside = (values) => values.driver === "external" || values.host_work === "external";

/** @param {string | undefined} text */
const secondsOrNull = (text) => (text ? parseSpan(text) : null);

/** @param {Values} values */
export const emergencyTerms = (values) => ({
  emergency: values.emergency || null,
  notice_seconds: values.emergency ? secondsOrNull(values.notice) : null,
  despite_hold: Boolean(values.emergency && values.despite_hold),
});

/** @param {Values} values */
export const emergencyOptions = (values) => [
  ...option("--emergency", values.emergency),
  ...option("--notice", values.emergency ? values.notice : ""),
  ...flag("--despite-hold", values.emergency && values.despite_hold),
];

/** What is asked for of any work on a host. @param {Values} values */
export const terms = (values) => ({
  reason: values.reason ?? "",
  deadline: values.deadline ? momentFromField(values.deadline) : null,
  expected_seconds: secondsOrNull(values.expected),
  together: values.together || null,
  ...emergencyTerms(values),
  driver: values.driver || null,
  heartbeat_seconds: isDoneOutside(values) ? secondsOrNull(values.heartbeat) : null,
});

/** The same as options of the command. @param {Values} values */
export const options = (values) => [
  ...option("--reason", values.reason),
  ...option("--deadline", values.deadline && momentFromField(values.deadline)),
  ...option("--takes", values.expected),
  ...option("--together", values.together),
  ...option("--driver", values.driver),
  ...option("--heartbeat", isDoneOutside(values) ? values.heartbeat : ""),
  ...emergencyOptions(values),
];
