/** The head of the fleet view: counts and filters. */

import { badge, hostAppearance, MACHINE_LOOKS } from "../../elements/appearance.js";
import { choiceTool, searchTool, selectTool, tools } from "../../elements/tools.js";
import { count } from "../../page/formatting.js";
import { preferences } from "../../page/preferences.js";
import { address, router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import { STATES } from "./fleet_filter.js";
import { Folding } from "./folding.js";
import { fleetLooks } from "./group_counts.js";

const DENSITIES = { roomy: "Roomy", dense: "Dense" };

/** @typedef {import("./fleet_filter.js").FleetFilter} FleetFilter */
/** @typedef {import("../../types").Child} Child */
/** @typedef {import("../../types").Summary} Summary */

/**
 * Show counts by state. A click on a machine state filters by it.
 *
 * @param {Summary} summary
 * @param {FleetFilter} filter
 */
export function fleetCounts(summary, filter) {
  return h(
    "div",
    { class: "fleet-counts" },
    h(
      "div",
      { class: "fleet-count machines" },
      h("strong", { class: "number" }, summary.machines.toLocaleString("en")),
      h("span", { class: "muted" }, summary.machines === 1 ? "machine" : "machines"),
      h(
        "span",
        { class: "row looks", role: "group", "aria-label": "Machines by state" },
        fleetLooks(summary.groups).map(({ look, number }) => {
          const isChosen = filter.state === look.label;
          return h(
            "button",
            {
              key: look.label,
              type: "button",
              class: "badge look",
              "data-tone": look.tone,
              "aria-pressed": String(isChosen),
              title: isChosen ? "Show all machines" : `Show only machines that are ${look.label}`,
              onclick: () => router.setQuery({ state: isChosen ? null : look.label }),
            },
            h("span", { "aria-hidden": "true" }, look.glyph),
            `${number.toLocaleString("en")} ${look.label}`,
          );
        }),
      ),
    ),
    others(summary),
  );
}

/** @param {Summary} summary */
function others(summary) {
  const hosts = copy.may("survey") ? summary.hosts : null;
  return [
    part("/timeline", "event", summary.events, (state) => state.toLowerCase()),
    part("/orders", "open order", summary.orders),
    hosts &&
      part(
        "/hosts",
        "host",
        hosts,
        (state) => (["ok", "failed", "lost"].includes(state) ? "" : state),
        downHosts(hosts),
      ),
    summary.rollouts && isAny(summary.rollouts) && part("/rollouts", "open rollout", summary.rollouts),
  ];
}

/** @param {{ [state: string]: number }} hosts */
const downHosts = (hosts) =>
  /** @type {const} */ (["failed", "lost"])
    .filter((state) => hosts[state])
    .map((state) => badge(hostAppearance(state), `${hosts[state]?.toLocaleString("en")} ${state}`));

/** @param {{ [state: string]: number }} numbers */
const isAny = (numbers) => Object.values(numbers).some((number) => number);

/**
 * @param {string} path
 * @param {string} noun
 * @param {{ [state: string]: number }} numbers
 * @param {(state: string) => string} [named]  returns "" for a state to omit
 * @param {Child} [signs]
 */
function part(path, noun, numbers, named = (state) => state, signs = null) {
  const all = Object.values(numbers).reduce((sum, number) => sum + number, 0);
  const states = Object.entries(numbers)
    .filter(([state, number]) => number && named(state))
    .map(([state, number]) => `${number.toLocaleString("en")} ${named(state)}`);
  return h(
    "a",
    { key: path, class: "fleet-count", href: address(path) },
    h("strong", { class: "number" }, all.toLocaleString("en")),
    h("span", null, count(all, noun).replace(/^\S+ /, "")),
    states.length ? h("span", { class: "muted small" }, states.join(", ")) : null,
    signs,
  );
}

/**
 * @param {Summary} summary
 * @param {FleetFilter} filter
 */
export function fleetTools(summary, filter) {
  const groups = summary.groups.filter((group) => group.name !== null).map((group) => group.name ?? "");
  return tools(
    searchTool("Search by name or address"),
    copy.projects.size > 1 &&
      choiceTool("Project", "project", options("All projects", [...copy.projects.keys()])),
    groups.length > 1 && choiceTool("Group", "group", options("All groups", groups)),
    choiceTool("State", "state", STATES),
    selectTool("Density", "density", preferences.density, DENSITIES, (value) =>
      preferences.set("density", value),
    ),
    h(
      "div",
      { class: "row" },
      h("button", { type: "button", onclick: () => Folding.setAll(true) }, "Fold all"),
      h("button", { type: "button", onclick: () => Folding.setAll(false) }, "Unfold all"),
      filter.isSet &&
        h(
          "button",
          {
            type: "button",
            class: "quiet",
            onclick: () => router.setQuery({ q: null, project: null, group: null, state: null }),
          },
          "Show all",
        ),
    ),
    legend(),
  );
}

/** Explain the tiles. */
function legend() {
  return h(
    "details",
    { class: "legend" },
    h("summary", null, "Legend and keyboard"),
    h(
      "div",
      { class: "row" },
      MACHINE_LOOKS.map((look) =>
        h(
          "span",
          { key: look.label, class: "legend-look" },
          h(
            "span",
            { class: "tile", "data-tone": look.tone, "data-look": look.label, "aria-hidden": "true" },
            h("span", { class: "glyph" }, look.glyph),
          ),
          look.label,
        ),
      ),
    ),
    h(
      "p",
      { class: "muted small" },
      "Tab moves between groups, the arrow keys between tiles. Enter opens a machine.",
    ),
  );
}

/**
 * @param {string} all
 * @param {readonly string[]} names
 */
const options = (all, names) => ({ "": all, ...Object.fromEntries(names.map((name) => [name, name])) });
