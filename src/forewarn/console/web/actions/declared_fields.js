/** The form of a declaration. Only changed fields are sent, and written as options of the command. */

import { parseSpan, typedSpan } from "../page/typed_times.js";

/** @typedef {import("./verb.js").Field} Field */
/** @typedef {import("./verb.js").Values} Values */

/**
 * @typedef {object} Declaring
 * @property {string} [within]  the object of the declaration that has the field
 * @property {boolean} [mayBeNull]  an empty field is sent as null
 * @property {(value: any) => string} [written]  formats a declared value for the form
 * @property {(text: string) => unknown} [read]  parses the form's text for the request
 * @property {(text: string) => string[]} [options]  writes the form's text as options of the command
 * @property {(text: string, thing: any) => string} [consequence]  describes the effect of a new value in a sentence
 */
/** @typedef {Field & Declaring} DeclaredField */

/**
 * Declare a field with one NAME=VALUE pair per line.
 *
 * @param {Field} field
 * @param {string} flag  the option that takes one pair
 * @param {{ read?: (value: string) => unknown, written?: (value: any) => string }} [how]  how to parse and format values
 * @returns {DeclaredField}
 */
export const pairsField = (field, flag, { read = (value) => value, written = String } = {}) => ({
  ...field,
  written: (pairs) =>
    Object.entries(pairs ?? {})
      .map(([name, value]) => `${name}=${written(value)}`)
      .join("\n"),
  read: (text) => Object.fromEntries(linesOf(text).map((line) => pair(line, read))),
  options: (text) => linesOf(text).flatMap((line) => [flag, line]),
});

/**
 * @param {string} line
 * @param {(value: string) => unknown} read
 */
function pair(line, read) {
  const at = line.indexOf("=");
  return at < 0 ? [line, ""] : [line.slice(0, at), read(line.slice(at + 1))];
}

/** Parse a number. Other text is returned unchanged, so that the server explains the error. @param {string} text */
export const numberOr = (text) => (text && !isNaN(Number(text)) ? Number(text) : text);

/** @param {string} text */
export const linesOf = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line);

/**
 * Fill a form with the declared values, or with the defaults for a new thing.
 *
 * @param {readonly DeclaredField[]} fields
 * @param {any} thing  null for a new thing
 * @returns {Field[]}
 */
export const filled = (fields, thing) =>
  fields.map((field) => (thing ? { ...field, value: present(field, thing) } : field));

/**
 * @param {DeclaredField} field
 * @param {any} thing
 */
function present(field, thing) {
  if (!thing) return field.value ?? "";
  const value = (field.within ? thing[field.within] : thing)?.[field.name];
  if (field.written) return field.written(value);
  if (field.kind === "flag") return value ? "yes" : "";
  if (value === null || value === undefined) return "";
  return field.kind === "duration" ? typedSpan(value) : String(value);
}

/**
 * Return the fields that differ from the declaration.
 *
 * @param {readonly DeclaredField[]} fields
 * @param {any} thing
 * @param {Values} values
 */
const changed = (fields, thing, values) =>
  fields.filter((field) => {
    const typed = values[field.name];
    return typed !== undefined && typed.trim() !== present(field, thing);
  });

/**
 * List the changes that these values would make.
 *
 * @param {readonly DeclaredField[]} fields
 * @param {any} thing
 * @param {Values} values
 * @returns {import("./verb.js").Difference[]}
 */
export const differences = (fields, thing, values) =>
  changed(fields, thing, values).map((field) => {
    const text = (values[field.name] ?? "").trim();
    return {
      label: field.label,
      before: displayed(field, present(field, thing)),
      after: displayed(field, text),
      consequence: field.consequence?.(text, thing) ?? "",
    };
  });

/**
 * @param {DeclaredField} field
 * @param {string} text
 */
function displayed(field, text) {
  if (field.kind === "flag") return text ? "yes" : "no";
  if (field.kind === "choice") return field.choices?.[text] ?? (text || "not set");
  return linesOf(text).join(", ") || "not set";
}

/**
 * @param {readonly DeclaredField[]} fields
 * @param {any} thing  null for a new thing
 * @param {Values} values
 * @returns {any}
 */
export function body(fields, thing, values) {
  /** @type {any} */
  const sent = {};
  for (const field of changed(fields, thing, values)) {
    const part = field.within ? (sent[field.within] ??= {}) : sent;
    part[field.name] = read(field, (values[field.name] ?? "").trim());
  }
  return sent;
}

/**
 * @param {DeclaredField} field
 * @param {string} text
 */
function read(field, text) {
  if (field.read) return field.read(text);
  if (field.kind === "flag") return text === "yes";
  if (!text && (field.mayBeNull || field.kind === "number")) return null;
  if (field.kind === "duration") return parseSpan(text) ?? text;
  return field.kind === "number" ? Number(text) : text;
}

/**
 * @param {readonly DeclaredField[]} fields
 * @param {any} thing  null for a new thing
 * @param {Values} values
 */
export const options = (fields, thing, values) =>
  changed(fields, thing, values).flatMap((field) => {
    const text = (values[field.name] ?? "").trim();
    const name = field.name.replaceAll("_", "-");
    if (field.options) return field.options(text);
    if (field.kind === "flag") return [text ? `--${name}` : `--no-${name}`];
    return [`--${name}`, text];
  });

/** The name of a new thing. @type {Field} */
export const NAME = {
  name: "name",
  label: "Name",
  kind: "text",
  isNeeded: true,
  hint: "Letters, digits, dots, underscores and hyphens.",
};

/** @param {Values} values */
export const typedName = (values) => (values.name ?? "").trim();
