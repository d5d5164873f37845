/** The fields of a dialog, by kind. */

import { preferences } from "../page/preferences.js";
import { h } from "../page/tree.js";

/** @typedef {import("./verb.js").Field} Field */

/**
 * Describe a field with its label, its hint and the problem with its value.
 *
 * @param {Field} field
 * @param {string} value
 * @param {string} trouble
 * @param {(value: string) => void} changed
 */
export function fieldRow(field, value, trouble, changed) {
  const id = `action-${field.name}`;
  const hints = [field.hint && `${id}-hint`, trouble && `${id}-wrong`].filter(Boolean).join(" ");
  const shared = {
    id,
    name: field.name,
    "aria-describedby": hints || null,
    "aria-invalid": trouble ? "true" : null,
    "aria-required": field.isNeeded ? "true" : null,
  };
  const label = h(
    "label",
    { for: id },
    field.label,
    field.isNeeded ? h("span", { class: "needed" }, " (required)") : null,
  );
  const hint = field.hint && h("span", { class: "hint", id: `${id}-hint` }, hintOf(field));
  const wrong = trouble && h("span", { class: "wrong", id: `${id}-wrong` }, trouble);
  if (field.kind === "flag") {
    const box = h("input", {
      ...shared,
      type: "checkbox",
      ".checked": value === "yes",
      onchange: (/** @type {any} */ change) => changed(change.target.checked ? "yes" : ""),
    });
    return h(
      "div",
      { class: "field flag-field", key: field.name },
      h("span", { class: "row" }, box, label),
      hint,
      wrong,
    );
  }
  return h(
    "div",
    { class: "field", key: field.name },
    label,
    control(field, value, shared, changed),
    hint,
    wrong,
  );
}

/** @param {Field} field */
function hintOf(field) {
  if (field.kind !== "instant") return field.hint;
  return `${field.hint ?? ""} In ${preferences.zone === "utc" ? "UTC" : "local time"}.`;
}

/**
 * @param {Field} field
 * @param {string} value
 * @param {object} shared
 * @param {(value: string) => void} changed
 */
function control(field, value, shared, changed) {
  const oninput = (/** @type {any} */ input) => changed(input.target.value);
  if (field.kind === "choice") {
    const options = Object.entries(field.choices ?? {}).map(([choice, text]) =>
      h("option", { key: choice, value: choice, ".selected": choice === value }, text),
    );
    return h("select", { ...shared, onchange: oninput }, options);
  }
  if (field.kind === "lines")
    return h("textarea", { ...shared, rows: 3, spellcheck: "false", ".value": value, oninput });
  const names = field.suggestions ? [...field.suggestions()].slice(0, 500) : [];
  const list = names.length ? `action-${field.name}-list` : null;
  return [
    h("input", {
      ...shared,
      type: field.kind === "instant" ? "datetime-local" : "text",
      inputmode: field.kind === "number" ? "numeric" : null,
      autocomplete: "off",
      list,
      ".value": value,
      oninput,
    }),
    list &&
      h(
        "datalist",
        { id: list },
        names.map((name) => h("option", { key: name, value: name })),
      ),
  ];
}
