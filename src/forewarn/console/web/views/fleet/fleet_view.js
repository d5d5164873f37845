import { actionButtons } from "../../actions/action_buttons.js";
import { asCommand } from "../../elements/as_command.js";
import { phoneFold } from "../../elements/phone_fold.js";
import { count } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { firstViewDrawn, updateComes } from "../../page/measures.js";
import { preferences } from "../../page/preferences.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { copy } from "../../service/connected.js";
import { groupKey } from "../../service/machine_shelf.js";
import { WantedMachines } from "../../service/wanted_machines.js";
import { emptyFleet } from "./empty_fleet.js";
import { FleetFilter } from "./fleet_filter.js";
import { fleetCounts, fleetTools } from "./fleet_head.js";
import { Folding } from "./folding.js";
import "./group_row.js";
import { groupProblems, PROBLEMS } from "./now_items.js";
import "./now_strip.js";
import { projectList } from "./project_list.js";
import "./machine_card.js";

/** @typedef {import("../../types").Summary} Summary */

// Delay after the last key press before the server is searched, in milliseconds.
const TYPING = 250;

/** All groups with their machines, one row each. Each row redraws itself. */
class FleetView extends View {
  #wanted = new WantedMachines();
  #typing = 0;

  opened() {
    // Registered before the rows, so that the measurement includes their work.
    for (const type of ["machines", "events"])
      copy.addEventListener(type, updateComes, { signal: this.ended });
    super.opened();
    this.watch(copy, "machines", "events", "orders", "hosts", "summary", "projects", "loaded");
    this.watch(preferences, "changed");
    this.ended.addEventListener("abort", () => {
      clearTimeout(this.#typing);
      this.#wanted.look(null);
    });
  }

  drawn() {
    const { summary } = copy;
    if (!summary) return h("h1", null, "Fleet");
    const filter = new FleetFilter(this.query);
    queueMicrotask(firstViewDrawn);
    if (!summary.machines && !summary.groups.length)
      return [h("h1", null, "Fleet"), emptyFleet(), actionButtons("fleet", null)];
    const wanted = this.#wantedBy(filter);
    if (!this.#wanted.isOf(wanted)) this.#lookAt(wanted);
    return [
      h("h1", null, "Fleet"),
      h("fw-now-strip", { key: "now" }),
      h(
        "div",
        { class: "fleet-top" },
        phoneFold("Counts", fleetCounts(summary, filter)),
        phoneFold("Add and change", actionButtons("fleet", null)),
      ),
      fleetTools(summary, filter),
      this.#rows(summary, filter),
      projectList(),
      h("fw-machine-card", null),
      asCommand(this.#command(filter)),
    ];
  }

  /**
   * @param {Summary} summary
   * @param {FleetFilter} filter
   */
  #rows(summary, filter) {
    const folding = new Folding(this.query);
    const isProvided = copy.machines.isWhole || filter.searchesServer || this.#isAllOpen;
    if (this.#wanted.trouble) {
      return h(
        "p",
        { class: "notice", "data-tone": "danger" },
        `The machines could not be read: ${this.#wanted.trouble}`,
      );
    }
    if (!this.#wanted.isRead || !this.#wanted.isOf(this.#wantedBy(filter)))
      return h("p", { class: "muted", role: "status", "aria-busy": "true" }, "Loading machines …");
    const shown = summary.groups.filter((group) => filter.matchesGroup(group));
    if (!shown.length) return noMatches(filter);
    const troubles = groupProblems();
    return h(
      "div",
      { class: "groups" },
      problemsFirst(shown, troubles).map((group) => {
        const key = groupKey(group.name, group.project);
        const trouble = troubles.get(key) ?? null;
        const isFolded = !filter.searchesServer && folding.isFoldedGroup(key);
        return h("fw-group-row", { key, ".row": { group, filter, isFolded, isProvided, trouble } });
      }),
    );
  }

  /**
   * Return which machines of a large fleet the view loads itself. Otherwise each row loads its own.
   *
   * @param {FleetFilter} filter
   * @returns {import("../../service/machine_shelf.js").Wanted | null}
   */
  #wantedBy(filter) {
    if (filter.searchesServer) return { contains: filter.text };
    return !copy.machines.isWhole && this.#isAllOpen ? {} : null;
  }

  /** @param {import("../../service/machine_shelf.js").Wanted | null} wanted */
  #lookAt(wanted) {
    clearTimeout(this.#typing);
    const look = () => {
      this.#wanted.look(wanted, () => this.redraw());
      this.redraw();
    };
    this.#typing = setTimeout(look, wanted?.contains ? TYPING : 0);
  }

  get #isAllOpen() {
    return this.query.get("fold") === "none";
  }

  /** @param {FleetFilter} filter */
  #command({ group, project, text }) {
    if (!group && !project && !text) return ["fleet", "summary"];
    const words = ["machine", "list"];
    if (group) words.push("--group", group);
    if (project) words.push("--project", project);
    if (text) words.push("--contains", text);
    return words;
  }
}

/**
 * Sort groups with problems first, the most severe at the top.
 *
 * @param {Summary["groups"]} groups
 * @param {Map<string, import("./now_items.js").Trouble>} troubles
 */
function problemsFirst(groups, troubles) {
  /** @param {Summary["groups"][number]} group */
  const rank = (group) => {
    const trouble = troubles.get(groupKey(group.name, group.project));
    return trouble ? PROBLEMS.indexOf(trouble) : PROBLEMS.length;
  };
  return groups.toSorted((one, other) => rank(one) - rank(other));
}

/** @param {FleetFilter} filter */
function noMatches(filter) {
  const where = [
    filter.group && `group ${filter.group}`,
    filter.project && `project ${filter.project}`,
  ].filter(Boolean);
  const what = [
    filter.text && `with “${filter.text}” in its name or address`,
    filter.state && (filter.state === "touched" ? "affected by an event" : `in the state ${filter.state}`),
  ].filter(Boolean);
  return h(
    "div",
    { class: "empty" },
    h(
      "p",
      null,
      `No machine${where.length ? ` of ${where.join(", ")}` : ""} is shown${what.length ? `: none is ${what.join(" and ")}` : ""}.`,
    ),
    h(
      "p",
      { class: "muted" },
      `${count(copy.summary?.machines ?? 0, "machine")} in total. “Show all” clears the filters.`,
    ),
  );
}

define("fw-fleet-view", FleetView);
