/**
 * What a verb is: everything that can be done is declared once, as data, in the tables of `*_verbs.js`. Buttons, menus,
 * dialogs and commands are made of it, so that a new verb of the API is one more entry.
 */

import { parseSpan } from "../page/typed_times.js";

/** @typedef {import("../types").Child} Child */
/** @typedef {import("../types").Right} Right */
/** @typedef {{ [name: string]: string }} Values  what is typed or chosen; a flag is "yes" or "" */
/**
 * @typedef {{ method: "POST" | "PUT" | "DELETE", path: string, given: any, headers?: { [name: string]: string } }} Request
 */
/** @typedef {{ label: string, before: string, after: string, consequence: string }} Difference  of one field */

/**
 * @typedef {object} Field
 * @property {string} name
 * @property {string} label
 * @property {"text" | "duration" | "flag" | "choice" | "instant" | "number" | "lines"} kind
 * @property {string} [hint]
 * @property {string} [value]  what it says at first
 * @property {boolean} [isNeeded]
 * @property {boolean} [isRare]  under "More"
 * @property {{ [value: string]: string }} [choices]
 * @property {() => Iterable<string>} [suggestions]
 * @property {(values: Values) => boolean} [when]  whether it is asked at all
 */

/**
 * @typedef {object} Touched  what would be concerned
 * @property {Child} summary  a sentence
 * @property {readonly string[]} [names]  all of them
 */

/**
 * @template S
 * @typedef {object} Verb
 * @property {string} verb  as the API and the command call it
 * @property {string} label  what its button says
 * @property {Right} right
 * @property {string} about  what it does, in a sentence
 * @property {(subject: S) => string} question
 * @property {(subject: S) => string} doing  what the button says that does it
 * @property {(subject: S, values: Values) => Request} request
 * @property {(subject: S, values: Values) => string[]} command  without `forewarn`
 * @property {boolean} [isFrequent]  has a button of its own
 * @property {boolean} [hurts]  somebody's work is disturbed, or cannot be had back
 * @property {(subject: S) => boolean} [concerns]  whether it makes sense for such a thing at all
 * @property {(subject: S) => string | null} [whyNot]  why it would be refused in the present state
 * @property {(subject: S) => Promise<Touched> | Touched} [touches]
 * @property {(subject: S) => Field[]} [fields]
 * @property {(subject: S) => Promise<{ subject: S, tag: string }>} [load]  reads the present values for the form; the
 *   change is refused if another person has changed them since
 * @property {(subject: S, values: Values) => Difference[]} [differences]  what would be changed
 * @property {(values: Values) => string} [existing]  the address of what has the name already
 * @property {(subject: S, values: Values) => string | null} [typed]  what must be typed first: only for the worst
 * @property {(answer: any) => string} [leadsTo]  the address that is shown afterwards
 * @property {(answer: any) => void} [after]  what the page does once it is done, beside following the stream
 * @property {(answer: any, subject: S) => Child} [shown]  what the dialog shows in the end, such as a secret
 * @property {boolean} [isQuiet]  the dialog shows the outcome, and no other part of the page
 * @property {(answer: any, subject: S) => Child} [outcome]  what happened, where the answer has no order
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
 * Add something; refused if it exists already.
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
export const REASON = { name: "reason", label: "Reason", kind: "text", hint: "Why, for the records." };

/** @type {Field} */
export const NEEDED_REASON = { ...REASON, hint: "Why, shown everywhere.", isNeeded: true };

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
 * Say what is wrong with what was typed.
 *
 * @param {Field} field
 * @param {string} value
 * @returns {string}
 */
export function wrong(field, value) {
  if (!value.trim()) return field.isNeeded ? `${field.label} is needed` : "";
  if (field.kind === "duration" && parseSpan(value) === null)
    return "Expected as 90 (seconds), 15m, 1h30m or 7d";
  if (field.kind === "number" && !/^\d+$/.test(value.trim())) return "Expected a whole number";
  return "";
}
