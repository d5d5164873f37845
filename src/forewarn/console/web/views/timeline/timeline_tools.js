/** The controls of the timeline: range, zoom, search, and bars or table. */

import { dateTime } from "../../page/formatting.js";
import { router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { SPANS } from "./time_range.js";

export const ZOOM = 1.5;
export const STEP = 0.2;

/**
 * @param {import("./shown_range.js").ShownRange} shown
 * @param {URLSearchParams} query
 */
export function timelineTools(shown, query) {
  const range = shown.value;
  const isTable = query.get("as") === "table";
  const length = range.to - range.from;
  return h(
    "div",
    { class: "timeline-tools row" },
    h(
      "div",
      { class: "joined", role: "group", "aria-label": "Range" },
      SPANS.map((span) =>
        button(span.label, () => shown.follow(span.length), {
          key: span.name,
          "aria-pressed": String(range.follows && length === span.length),
        }),
      ),
    ),
    h(
      "div",
      { class: "joined", role: "group", "aria-label": "Zoom and move" },
      button("◀", () => shown.step(-STEP), { "aria-label": "Earlier", key: "earlier" }),
      button("−", () => shown.zoom(ZOOM), { "aria-label": "Zoom out", key: "out" }),
      button("+", () => shown.zoom(1 / ZOOM), { "aria-label": "Zoom in", key: "in" }),
      button("▶", () => shown.step(STEP), { "aria-label": "Later", key: "later" }),
    ),
    button("Now", () => shown.follow(), {
      "aria-pressed": String(range.follows),
      title: "Follow the clock",
    }),
    h("input", {
      type: "search",
      "aria-label": "Search events",
      placeholder: "machine, group, type …",
      ".value": query.get("q") ?? "",
      oninput: (/** @type {any} */ input) => router.setQuery({ q: input.target.value }),
    }),
    button(isTable ? "Show as bars" : "Show as a table", () =>
      router.setQuery({ as: isTable ? null : "table" }),
    ),
    h(
      "span",
      { class: "small muted number timeline-range" },
      `${dateTime(range.from)} – ${dateTime(range.to)}`,
    ),
  );
}

/**
 * @param {string} label
 * @param {() => void} onclick
 * @param {{ [name: string]: any }} [props]
 */
const button = (label, onclick, props = {}) => h("button", { type: "button", onclick, ...props }, label);
