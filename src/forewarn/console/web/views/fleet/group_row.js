import { actionButtons } from "../../actions/action_buttons.js";
import { badge } from "../../elements/appearance.js";
import { keepOneReachable, machineTile, moveBetweenTiles } from "../../elements/machine_tile.js";
import { importedFrom } from "../../elements/sources.js";
import { count } from "../../page/formatting.js";
import { define, LiveElement } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import { groupKey } from "../../service/machine_shelf.js";
import { WantedMachines } from "../../service/wanted_machines.js";
import { FleetFilter } from "./fleet_filter.js";
import { Folding } from "./folding.js";
import { countedLooks } from "./group_counts.js";

/** @typedef {import("./fleet_filter.js").GroupSummary} GroupSummary */
/** @typedef {import("../../types").Machine} Machine */
/**
 * The content of a row.
 *
 * @typedef {object} Row
 * @property {GroupSummary} group
 * @property {FleetFilter} filter
 * @property {boolean} isFolded
 * @property {boolean} isProvided  whether the view loads the machines itself
 * @property {import("./now_items.js").Trouble | null} trouble
 */

/** @type {{ [trouble in import("./now_items.js").Trouble]: import("../../elements/appearance.js").Appearance }} */
const PROBLEM_LOOKS = {
  failed: { tone: "danger", glyph: "✕", label: "failed" },
  stuck: { tone: "warn", glyph: "!", label: "stuck" },
  late: { tone: "warn", glyph: "◔", label: "late" },
};

/** One group: its update domains as columns, its machines as tiles. It redraws when one of its machines changes. */
class GroupRow extends LiveElement {
  /** @type {Row | null} */
  #row = null;
  #shown = "";
  #wanted = new WantedMachines();

  get row() {
    return this.#row;
  }

  set row(row) {
    const { group, filter, isFolded, isProvided, trouble } = /** @type {Row} */ (row);
    const shown = JSON.stringify([group, filter.key, isFolded, isProvided, trouble]);
    this.#row = row;
    if (shown === this.#shown) return;
    this.#shown = shown;
    this.redraw();
  }

  get #key() {
    return groupKey(this.#row?.group.name ?? null, this.#row?.group.project ?? null);
  }

  opened() {
    for (const type of ["machines", "events"]) {
      copy.addEventListener(type, (event) => this.#onChange(/** @type {CustomEvent} */ (event)), {
        signal: this.ended,
      });
    }
    this.watch(copy, "groups");
    this.ended.addEventListener("abort", () => this.#wanted.look(null));
    this.addEventListener("focusin", (focus) => this.#focused(/** @type {HTMLElement} */ (focus.target)), {
      signal: this.ended,
    });
  }

  /** @param {CustomEvent} event */
  #onChange({ type, detail }) {
    const groups = type === "machines" ? detail && detail.groups : detail;
    if (!groups || groups.has(this.#key)) this.redraw();
  }

  drawn() {
    if (!this.#row) return null;
    const { group, filter, isFolded, isProvided } = this.#row;
    const wants = !isFolded && !isProvided;
    const wanted = group.name === null ? { project: group.project } : { group: group.name };
    this.#wanted.look(wants ? wanted : null, () => this.redraw());
    const machines = isFolded
      ? []
      : copy.machines.ofGroup(this.#key).filter((machine) => filter.matches(machine));
    queueMicrotask(() => keepOneReachable(this));
    return h(
      "section",
      { class: "group", "aria-label": titleOf(group), "data-folded": isFolded },
      this.#head(machines.length),
      isFolded ? folded(group) : this.#open(machines),
      // After the machines in the tab order, because the machines are used more often.
      !isFolded && actionButtons("group", copy.groups.get(group.name ?? "")),
    );
  }

  /** @param {number} shown */
  #head(shown) {
    const { group, filter, isFolded, trouble } = /** @type {Row} */ (this.#row);
    const source = importedFrom(copy.groups.get(group.name ?? "")?.source ?? "declared");
    const isPart = !isFolded && (filter.state || filter.text) && shown !== group.machines;
    return h(
      "header",
      { class: "group-head" },
      h(
        "h2",
        null,
        h(
          "button",
          {
            type: "button",
            class: "quiet fold",
            "aria-expanded": String(!isFolded),
            onclick: () => new Folding(new URLSearchParams(location.search)).toggle(this.#key),
          },
          h("span", { class: "fold-mark", "aria-hidden": "true" }, "▸"),
          h("span", { class: "name" }, titleOf(group)),
        ),
      ),
      trouble && badge(PROBLEM_LOOKS[trouble]),
      h(
        "span",
        { class: "muted small" },
        isPart
          ? `${shown.toLocaleString("en")} of ${count(group.machines, "machine")}`
          : count(group.machines, "machine"),
        group.name !== null && ` · ${group.kind}`,
        copy.projects.size > 1 && group.name !== null && [" · ", h("span", { class: "name" }, group.project)],
        source && [" · ", source],
      ),
    );
  }

  /** @param {Machine[]} machines */
  #open(machines) {
    const { group, isProvided } = /** @type {Row} */ (this.#row);
    if (this.#wanted.trouble) {
      return h(
        "p",
        { class: "notice", "data-tone": "danger" },
        `Cannot load the machines of this group: ${this.#wanted.trouble}`,
      );
    }
    if (!isProvided && !this.#wanted.isRead)
      return h("p", { class: "muted small", role: "status", "aria-busy": "true" }, "Loading machines …");
    if (group.name === null)
      return h("div", { class: "domains", onkeydown: moveBetweenTiles }, tiles(machines));
    const byDomain = Map.groupBy(machines, (machine) => machine.update_domain);
    return h(
      "div",
      { class: "domains", onkeydown: moveBetweenTiles },
      group.update_domains.map(({ update_domain: number }) => domain(number, byDomain.get(number) ?? [])),
    );
  }

  /** @param {HTMLElement} target */
  #focused(target) {
    const tile = target.closest(".tile");
    if (tile) keepOneReachable(this, tile);
  }
}

/** @param {GroupSummary} group */
const titleOf = (group) => group.name ?? `Standalone machines of ${group.project}`;

/**
 * @param {number} number
 * @param {Machine[]} machines
 */
function domain(number, machines) {
  const title = `Update domain ${number}`;
  return h(
    "div",
    { key: number, class: "domain", role: "group", "aria-label": title },
    h(
      "div",
      { class: "domain-head", title },
      `UD ${number}`,
      h("span", { class: "number" }, machines.length),
    ),
    tiles(machines),
  );
}

/** @param {Machine[]} machines */
const tiles = (machines) => h("div", { class: "tiles" }, machines.map(machineTile));

/** @param {GroupSummary} group */
function folded(group) {
  if (group.name === null) return h("div", { class: "domains" }, counts(group.update_domains));
  return h(
    "div",
    { class: "domains" },
    group.update_domains.map((each) => {
      const title = `Update domain ${each.update_domain}`;
      return h(
        "div",
        { key: each.update_domain, class: "domain", role: "group", "aria-label": title },
        h("div", { class: "domain-head", title }, `UD ${each.update_domain}`),
        counts([each]),
      );
    }),
  );
}

/** @param {GroupSummary["update_domains"]} domains */
function counts(domains) {
  const looks = countedLooks(domains);
  if (!looks.length) return h("span", { class: "muted small" }, "no machines");
  return h(
    "div",
    { class: "row looks" },
    // Undisturbed machines are muted, so that the others stand out.
    looks.map(({ look, number }) => {
      const words = `${number.toLocaleString("en")} ${look.label}`;
      return look.label === "running"
        ? h("span", { key: "running", class: "muted small" }, words)
        : badge(look, words);
    }),
  );
}

define("fw-group-row", GroupRow);
