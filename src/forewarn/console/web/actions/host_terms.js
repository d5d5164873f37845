/** The terms that all work on hosts shares: their fields, the values for the request and the options of the command. */

import { driverChoices } from "../elements/driver_choices.js";
import { momentFromField, parseSpan } from "../page/typed_times.js";
import { flag, option } from "./verb.js";

/** @typedef {import("./verb.js").Field} Field */
/** @typedef {import("./verb.js").Values} Values */

/** @type {Field[]} */
export const TERMS = [
  {
    name: "deadline",
    label: "Deadline",
    kind: "instant",
    hint: "After this time, the work no longer waits for the windows of projects.",
    isRare: true,
  },
  {
    name: "expected",
    label: "Expected duration",
    kind: "duration",
    hint: "How long a stage takes, such as 30m. forewarn starts a stage only if it fits into the windows.",
    isRare: true,
  },
];

/** @type {Field[]} */
export const EMERGENCY = [
  {
    name: "emergency",
    label: "Emergency because",
    kind: "text",
    hint: "The work starts without notice. forewarn records a broken promise for each affected group.",
    isRare: true,
  },
  {
    name: "notice",
    label: "Emergency notice",
    kind: "duration",
    hint: "Such as 2m. If omitted, none.",
    when: (values) => Boolean(values.emergency),
    isRare: true,
  },
  {
    name: "despite_hold",
    label: "Ignore holds",
    kind: "flag",
    hint: "The work starts even under a hold.",
    when: (values) => Boolean(values.emergency),
    isRare: true,
  },
];

/** @type {Field[]} */
export const EXCEPTIONS = [
  {
    name: "together",
    label: "Treat update domains together because",
    kind: "text",
    hint: "Disturbs two update domains of a group at once. forewarn records a broken promise.",
    isRare: true,
  },
  {
    name: "driver",
    label: "Driver",
    kind: "choice",
    get choices() {
      return driverChoices("Default: the host's driver");
    },
    isRare: true,
  },
  {
    name: "heartbeat",
    label: "Heartbeat",
    kind: "duration",
    hint: "The longest time between two reports of an external driver, such as 10m.",
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

/** Return the terms for the request. @param {Values} values */
export const terms = (values) => ({
  reason: values.reason ?? "",
  deadline: values.deadline ? momentFromField(values.deadline) : null,
  expected_seconds: secondsOrNull(values.expected),
  together: values.together || null,
  ...emergencyTerms(values),
  driver: values.driver || null,
  heartbeat_seconds: isDoneOutside(values) ? secondsOrNull(values.heartbeat) : null,
});

/** Return the terms as options of the command. @param {Values} values */
export const options = (values) => [
  ...option("--reason", values.reason),
  ...option("--deadline", values.deadline && momentFromField(values.deadline)),
  ...option("--takes", values.expected),
  ...option("--together", values.together),
  ...option("--driver", values.driver),
  ...option("--heartbeat", isDoneOutside(values) ? values.heartbeat : ""),
  ...emergencyOptions(values),
];
