/** The fields of the plan form, built from their declarations. */

import { h } from "../../page/tree.js";
import { preferences } from "../../page/preferences.js";
import { momentFromText, momentToText } from "../../page/typed_times.js";

/** @typedef {import("./plan_fields.js").PlanField} PlanField */

/**
 * @typedef {object} Filling
 * @property {string} text  the value in the URL
 * @property {string} problem
 * @property {(text: string | null) => void} set
 */

/**
 * Draw a field with its label, hint, warning and problem.
 *
 * @param {PlanField} field
 * @param {Filling} filling
 */
export function planField(field, filling) {
  const id = `plan-${field.name}`;
  const described = [field.hint && `${id}-hint`, filling.problem && `${id}-problem`]
    .filter(Boolean)
    .join(" ");
  const props = {
    id,
    name: field.name,
    "aria-describedby": described || null,
    "aria-invalid": filling.problem ? "true" : null,
  };
  const notes = [
    field.hint && h("span", { class: "hint", id: `${id}-hint`, key: "hint" }, field.hint, zoneHint(field)),
    field.warning &&
      filling.text &&
      h("p", { class: "notice small", "data-tone": "warn", role: "note", key: "warning" }, field.warning),
    filling.problem &&
      h("p", { class: "problem", id: `${id}-problem`, role: "alert", key: "problem" }, filling.problem),
  ];
  if (field.kind === "flag") {
    return h(
      "div",
      { class: "field", key: field.name },
      h("label", { class: "tick-field" }, input(field, filling, props), h("span", null, field.label)),
      notes,
    );
  }
  return h(
    "div",
    { class: "field", key: field.name },
    h("label", { for: id }, field.label),
    input(field, filling, props),
    notes,
  );
}

/** @param {PlanField} field */
function zoneHint(field) {
  if (field.kind !== "moment") return "";
  return preferences.zone === "utc" ? " In UTC." : " In local time.";
}

/**
 * @param {PlanField} field
 * @param {Filling} filling
 * @param {{ [name: string]: any }} props
 */
function input(field, { text, set }, props) {
  switch (field.kind) {
    case "choice":
      return choice(field, text, set, props);
    case "flag":
      return h("input", {
        ...props,
        type: "checkbox",
        ".checked": text !== "",
        onchange: (/** @type {any} */ change) => set(change.target.checked ? "1" : null),
      });
    case "count":
      return h("input", {
        ...props,
        type: "number",
        min: field.defaultValue ?? "0",
        placeholder: field.defaultValue,
        ".value": text,
        oninput: (/** @type {any} */ typed) => set(typed.target.value),
      });
    case "moment":
      return h("input", {
        ...props,
        type: "text",
        autocomplete: "off",
        spellcheck: "false",
        placeholder: "YYYY-MM-DD HH:MM",
        ".value": momentToText(text),
        onchange: (/** @type {any} */ change) => set(momentFromText(change.target.value)),
      });
    default:
      return h("input", {
        ...props,
        type: "text",
        autocomplete: "off",
        spellcheck: field.kind === "text",
        placeholder: field.defaultValue ?? null,
        ".value": text,
        oninput: (/** @type {any} */ typed) => set(typed.target.value),
      });
  }
}

/**
 * @param {PlanField} field
 * @param {string} text
 * @param {(text: string | null) => void} set
 * @param {{ [name: string]: any }} props
 */
function choice(field, text, set, props) {
  const chosen = text || field.defaultValue;
  return h(
    "select",
    {
      ...props,
      onchange: (/** @type {any} */ change) =>
        set(change.target.value === field.defaultValue ? null : change.target.value),
    },
    Object.entries(field.choices ?? {}).map(([value, label]) =>
      h("option", { value, key: value, ".selected": value === chosen }, label),
    ),
  );
}
