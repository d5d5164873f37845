/**
 * The declaration of actions. Each action of the API is one entry in a table of `*_verbs.js`; buttons, menus, dialogs
 * and commands are built from it. To support a new API call, add an entry.
 */

import { parseSpan } from "../page/typed_times.js";

/** @typedef {import("../types").Child} Child */
/** @typedef {import("../types").Right} Right */
/** @typedef {{ [name: string]: string }} Values  typed or chosen values; a flag is "yes" or "" */
/**
 * @typedef {{ method: "POST" | "PUT" | "DELETE", path: string, given: any, headers?: { [name: string]: string } }} Request
 */
/** @typedef {{ label: string, before: string, after: string, consequence: string }} Difference  the change of one field */

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {"text" | "duration" | "flag" | "choice" | "instant" | "number" | "lines"} kind
 * @property {string} [hint]
 * @property {string} [value]  the initial value
 * @property {boolean} [isNeeded]
 * @property {boolean} [isRare]  shown under "More"
 * @property {{ [value: string]: string }} [choices]
 * @property {() => Iterable<string>} [suggestions]
 * @property {(values: Values) => boolean} [when]  whether the field is shown
 */

/**
 * @typedef {object} Touched  what the action affects
 * @property {Child} summary  a sentence
 * @property {readonly string[]} [names]  the names of all affected machines or hosts
 */

/**
 * @template S
 * @typedef {object} Verb
 * @property {string} verb  the name in the API and the command
 * @property {string} label  the text of the button that opens the dialog
 * @property {Right} right
 * @property {string} about  the effect, in a sentence
 * @property {(subject: S) => string} question
 * @property {(subject: S) => string} doing  the text of the button that confirms
 * @property {(subject: S, values: Values) => Request} request
 * @property {(subject: S, values: Values) => string[]} command  the arguments after `forewarn`
 * @property {boolean} [isFrequent]  has its own button
 * @property {boolean} [hurts]  disturbs running work, or cannot be undone
 * @property {(subject: S) => boolean} [concerns]  whether the action applies to the subject
 * @property {(subject: S) => string | null} [whyNot]  why the server would refuse the action now
 * @property {(subject: S) => Promise<Touched> | Touched} [touches]
 * @property {(subject: S) => Field[]} [fields]
 * @property {(subject: S) => Promise<{ subject: S, tag: string }>} [load]  reads the current values for the form; the
 *   server refuses the change if another person has saved one since
 * @property {(subject: S, values: Values) => Difference[]} [differences]  the changes that saving would make
 * @property {(values: Values) => string} [existing]  the address of an existing thing with the same name
 * @property {(subject: S, values: Values) => string | null} [typed]  the name to type as confirmation, for the most
 *   destructive actions
 * @property {(answer: any) => string} [leadsTo]  the address to open afterwards
 * @property {(answer: any) => void} [after]  runs after the action, for changes that the stream does not report
 * @property {(answer: any, subject: S) => Child} [shown]  the final content of the dialog, such as a secret
 * @property {boolean} [isQuiet]  the outcome appears only in the dialog
 * @property {(answer: any, subject: S) => Child} [outcome]  describes the outcome, if the answer has no order
 */

/**
 * @template {import("../types").PathWith<"post">} P
 * @param {P} path
 * @param {import("../types").Arguments<P, "post">} [given]
 * @returns {Request}
 */
export const post = (path, given) => ({ method: "POST", path, given });

/**
 * @template {import("../types").PathWith<"put">} P
 * @param {P} path
 * @param {import("../types").Arguments<P, "put">} [given]
 * @returns {Request}
 */
export const put = (path, given) => ({ method: "PUT", path, given });

/**
 * Create a thing. The server refuses the request if it already exists.
 *
 * @template {import("../types").PathWith<"put">} P
 * @param {P} path
 * @param {import("../types").Arguments<P, "put">} [given]
 * @returns {Request}
 */
export const putNew = (path, given) => ({ ...put(path, given), headers: { "If-None-Match": "*" } });

/**
 * @template {import("../types").PathWith<"delete">} P
 * @param {P} path
 * @param {import("../types").Arguments<P, "delete">} [given]
 * @returns {Request}
 */
export const remove = (path, given) => ({ method: "DELETE", path, given });

/** @type {Field} */
export const REASON = { name: "reason", label: "Reason", kind: "text", hint: "Kept in the history." };

/** @type {Field} */
export const NEEDED_REASON = { ...REASON, hint: "Shown to all users of the console.", isNeeded: true };

/**
 * Write an option of a command, if it has a value.
 *
 * @param {string} name
 * @param {string | undefined} value
 */
export const option = (name, value) => (value ? [name, value] : []);

/**
 * @param {string} name
 * @param {string | undefined} value
 */
export const flag = (name, value) => (value ? [name] : []);

/**
 * Describe the problem with a typed value, or return an empty string.
 *
 * @param {Field} field
 * @param {string} value
 * @returns {string}
 */
export function problemWith(field, value) {
  if (!value.trim()) return field.isNeeded ? `Enter a value for ${field.label}` : "";
  if (field.kind === "duration" && parseSpan(value) === null)
    return "Enter a duration such as 90 (seconds), 15m, 1h30m or 7d";
  if (field.kind === "number" && !/^\d+$/.test(value.trim())) return "Enter a whole number";
  return "";
}
