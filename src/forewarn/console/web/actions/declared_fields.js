/** What is declared of something, as a form has it: only what differs from what is there is sent, and said as options. */

import { parseSpan, typedSpan } from "../page/typed_times.js";

/** @typedef {import("./verb.js").Field} Field */
/** @typedef {import("./verb.js").Values} Values */

/**
 * @typedef {object} Declaring
 * @property {string} [within]  the part of the declaration that it stands in
 * @property {boolean} [mayBeNull]  its emptiness is a value: there is no such thing then
 * @property {(value: any) => string} [written]  what is declared, as the form has it
 * @property {(text: string) => unknown} [read]  what was typed, as the body has it
 * @property {(text: string) => string[]} [options]  what was typed, as the command has it
 * @property {(text: string, thing: any) => string} [consequence]  the consequence of another value, in a sentence
 */
/** @typedef {Field & Declaring} DeclaredField */

/**
 * A field that is typed pair by pair.
 *
 * @param {Field} field
 * @param {string} flag  the option that takes one pair
 * @param {{ read?: (value: string) => unknown, written?: (value: any) => string }} [how]  the values
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

/** A number where it is one; else what was typed, so that the service says what is wrong with it. @param {string} text */
export const numberOr = (text) => (text && !isNaN(Number(text)) ? Number(text) : text);

/** @param {string} text */
export const linesOf = (text) =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line);

/**
 * Fill the fields of a form with what is declared; with what holds where nothing is said, of what is new.
 *
 * @param {readonly DeclaredField[]} fields
 * @param {any} thing  null: it is new
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
 * Name what differs from what is declared.
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
 * List the fields that these values would change.
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
      before: inWords(field, present(field, thing)),
      after: inWords(field, text),
      consequence: field.consequence?.(text, thing) ?? "",
    };
  });

/**
 * @param {DeclaredField} field
 * @param {string} text
 */
function inWords(field, text) {
  if (field.kind === "flag") return text ? "yes" : "no";
  if (field.kind === "choice") return field.choices?.[text] ?? (text || "not set");
  return linesOf(text).join(", ") || "not set";
}

/**
 * @param {readonly DeclaredField[]} fields
 * @param {any} thing  null: it is new
 * @param {Values} values
 * @returns {any}
 */
export function body(fields, thing, values) {
  /** @type {any} */
  const said = {};
  for (const field of changed(fields, thing, values)) {
    const part = field.within ? (said[field.within] ??= {}) : said;
    part[field.name] = read(field, (values[field.name] ?? "").trim());
  }
  return said;
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
 * @param {any} thing  null: it is new
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

/** What something new is called. @type {Field} */
export const NAME = {
  name: "name",
  label: "Name",
  kind: "text",
  isNeeded: true,
  hint: "Letters, digits, dots, underscores and hyphens.",
};

/** @param {Values} values */
export const typedName = (values) => (values.name ?? "").trim();
