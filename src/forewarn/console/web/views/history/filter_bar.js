/** The filters of the history, all kept in the URL. */

import { phoneFold } from "../../elements/phone_fold.js";
import { kindAppearance, FAMILIES } from "../../elements/record_kinds.js";
import { preferences } from "../../page/preferences.js";
import { router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import "./export_panel.js";
import { momentFromText, momentToText } from "../../page/typed_times.js";
import { fieldNames, FIELDS, isFiltered, kindsOf, withKinds } from "./history_filter.js";

/** @typedef {import("./history_filter.js").Wanted} Wanted */
/** @typedef {import("./history_filter.js").Field} Field */

const TIMES = ["since", "until"];
const HINTS = /** @type {const} */ ({
  machine: "web-0",
  host: "host-1",
  group: "web",
  event: "full id",
  order: "full id",
  project: "default",
  by: "person or program",
  since: "YYYY-MM-DD HH:MM",
  until: "YYYY-MM-DD HH:MM",
});

/**
 * @param {Wanted} wanted
 * @param {(text: string) => void} onText  called on each key press
 */
export function filterBar(wanted, onText) {
  return h(
    "div",
    { class: "history-filters card", role: "search", "aria-label": "Records" },
    h(
      "div",
      { class: "field history-text" },
      h("label", { for: "history-text" }, "Search"),
      h("input", {
        id: "history-text",
        type: "search",
        placeholder: "reason, name or id",
        ".value": wanted.text,
        oninput: (/** @type {any} */ input) => onText(input.target.value),
      }),
    ),
    phoneFold("Filters and export", [
      families(wanted),
      h(
        "div",
        { class: "history-details" },
        disclosure(wanted),
        h("fw-history-export", { ".wanted": wanted }),
      ),
    ]),
    chips(wanted),
  );
}

/** @param {{ [name: string]: string | null }} changes */
const change = (changes) => router.setQuery({ at: null, ...changes });

/**
 * @param {Wanted} wanted
 * @param {readonly string[]} kinds
 * @param {boolean} isWanted
 */
const choose = (wanted, kinds, isWanted) =>
  change({ kind: withKinds(wanted.kinds, kinds, isWanted).join(",") });

/** @param {Wanted} wanted */
function families(wanted) {
  const chosen = kindsOf(wanted.kinds);
  return h(
    "div",
    { class: "row", role: "group", "aria-label": "Kinds" },
    FAMILIES.map((family) => {
      const isWhole = family.kinds.every((kind) => chosen.includes(kind));
      const some = family.kinds.filter((kind) => chosen.includes(kind)).length;
      return h(
        "button",
        {
          key: family.name,
          type: "button",
          class: "chip",
          "aria-pressed": isWhole ? "true" : some ? "mixed" : "false",
          onclick: () => choose(wanted, family.kinds, !isWhole),
        },
        family.label,
        some > 0 && !isWhole && ` ${some}/${family.kinds.length}`,
      );
    }),
  );
}

/** @param {Wanted} wanted */
function disclosure(wanted) {
  return h(
    "details",
    { class: "history-more" },
    h("summary", null, "More filters"),
    h(
      "div",
      { class: "history-fields" },
      fieldNames()
        .filter(isOffered)
        .map((name) => field(wanted, name)),
    ),
    h(
      "div",
      { class: "history-kinds" },
      FAMILIES.map((family) => kindBoxes(wanted, family)),
    ),
  );
}

/** @param {Field} name */
function isOffered(name) {
  if (name === "project") return copy.projects.size > 1;
  return name !== "host" || copy.may("survey");
}

/**
 * @param {Wanted} wanted
 * @param {Field} name
 */
function field(wanted, name) {
  const isTime = TIMES.includes(name);
  const value = wanted.fields[name] ?? "";
  const zone = preferences.zone === "utc" ? "UTC" : "local time";
  return h(
    "div",
    { class: "field", key: name },
    h("label", { for: `history-${name}` }, isTime ? `${FIELDS[name]} (${zone})` : FIELDS[name]),
    h("input", {
      id: `history-${name}`,
      type: "text",
      list: suggestions(name) ? `history-${name}-list` : null,
      placeholder: name in HINTS ? HINTS[/** @type {keyof typeof HINTS} */ (name)] : null,
      spellcheck: "false",
      autocomplete: "off",
      ".value": isTime ? momentToText(value) : value,
      onchange: (/** @type {any} */ event) =>
        change({ [name]: isTime ? momentFromText(event.target.value) : event.target.value.trim() }),
    }),
    suggestions(name) &&
      h(
        "datalist",
        { id: `history-${name}-list` },
        suggestions(name)?.map((each) => h("option", { key: each, value: each })),
      ),
  );
}

// Longer lists slow the page down and do not help.
const MOST_SUGGESTED = 500;

/**
 * @param {Field} name
 * @returns {string[] | null}
 */
function suggestions(name) {
  if (name === "machine")
    return [...copy.machines.values()].slice(0, MOST_SUGGESTED).map((machine) => machine.name);
  if (name === "host") return [...(copy.hosts?.keys() ?? [])].slice(0, MOST_SUGGESTED);
  if (name === "group") return [...copy.groups.keys()].slice(0, MOST_SUGGESTED);
  if (name === "project") return [...copy.projects.keys()].slice(0, MOST_SUGGESTED);
  return null;
}

/**
 * @param {Wanted} wanted
 * @param {import("../../elements/record_kinds.js").Family} family
 */
function kindBoxes(wanted, family) {
  const chosen = kindsOf(wanted.kinds);
  return h(
    "fieldset",
    { key: family.name },
    h("legend", null, family.label),
    family.kinds.map((kind) =>
      h(
        "label",
        { class: "history-kind", key: kind },
        h("input", {
          type: "checkbox",
          ".checked": chosen.includes(kind),
          onchange: (/** @type {any} */ event) => choose(wanted, [kind], event.target.checked),
        }),
        h("span", { "aria-hidden": "true" }, kindAppearance(kind).glyph),
        kindAppearance(kind).label,
      ),
    ),
  );
}

/** @param {Wanted} wanted */
function chips(wanted) {
  if (!isFiltered(wanted)) return null;
  const isNamed = (/** @type {string} */ word) => FAMILIES.some((family) => family.name === word);
  return h(
    "div",
    { class: "row history-chips" },
    wanted.kinds
      .filter((word) => !isNamed(word))
      .map((kind) => chip(`kind-${kind}`, kindAppearance(kind).label, () => choose(wanted, [kind], false))),
    fieldNames()
      .filter((name) => wanted.fields[name])
      .map((name) => chip(name, `${FIELDS[name]}: ${shown(wanted, name)}`, () => change({ [name]: null }))),
    h("button", { type: "button", class: "quiet", key: "all", onclick: clear }, "Clear all filters"),
  );
}

/**
 * @param {Wanted} wanted
 * @param {Field} name
 */
function shown(wanted, name) {
  const value = wanted.fields[name] ?? "";
  return TIMES.includes(name) ? momentToText(value) : value;
}

function clear() {
  change(Object.fromEntries(["text", "kind", ...fieldNames()].map((name) => [name, null])));
}

/**
 * @param {string} key
 * @param {string} label
 * @param {() => void} remove
 */
function chip(key, label, remove) {
  return h(
    "button",
    { type: "button", class: "chip", key, "aria-label": `Remove filter ${label}`, onclick: remove },
    h("span", { class: "name" }, label),
    h("span", { "aria-hidden": "true" }, "×"),
  );
}
