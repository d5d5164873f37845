/** The filter of the fleet view, kept in the URL. */

import { machineAppearance } from "../../elements/appearance.js";
import { copy } from "../../service/connected.js";
import { groupKey, hasText } from "../../service/machine_shelf.js";

/** @typedef {import("../../types").Machine} Machine */
/** @typedef {import("../../types").Summary["groups"][number]} GroupSummary */

/** The states to filter by, labelled as on the tiles. `touched` matches every machine that is not plainly running. */
export const STATES = {
  "": "Any state",
  touched: "Affected machines",
  running: "Running",
  announced: "Announced",
  approved: "Approved",
  started: "Started",
  frozen: "Frozen",
  restarting: "Restarting",
  moving: "Moving",
  stopped: "Stopped",
};

// A shorter text would match half of a large fleet.
const LEAST_LETTERS = 2;

export class FleetFilter {
  /** @param {URLSearchParams} query */
  constructor(query) {
    this.project = query.get("project") ?? "";
    this.group = query.get("group") ?? "";
    this.state = query.get("state") ?? "";
    this.text = (query.get("q") ?? "").trim();
  }

  get isSet() {
    return Boolean(this.project || this.group || this.state || this.text);
  }

  /** Whether the server does the search, because the page does not hold all machines. */
  get searchesServer() {
    return !copy.machines.isWhole && this.text.length >= LEAST_LETTERS;
  }

  /** The parts of the filter that rows depend on, for comparison. */
  get key() {
    return JSON.stringify([this.state, this.text, copy.machines.isWhole]);
  }

  /** @param {Machine} machine */
  matches(machine) {
    return this.#matchesText(machine) && this.#matchesState(machine);
  }

  /**
   * Whether a group has a machine that matches.
   *
   * @param {GroupSummary} group
   */
  matchesGroup(group) {
    if (this.project && group.project !== this.project) return false;
    if (this.group && group.name !== this.group) return false;
    if (!this.state && !this.text) return true;
    if (copy.machines.isWhole || this.searchesServer) {
      return copy.machines
        .ofGroup(groupKey(group.name, group.project))
        .some((machine) => this.matches(machine));
    }
    return this.#isCounted(group);
  }

  /** @param {Machine} machine */
  #matchesText(machine) {
    return !this.text || (!copy.machines.isWhole && !this.searchesServer) || hasText(machine, this.text);
  }

  /** @param {Machine} machine */
  #matchesState(machine) {
    if (!this.state) return true;
    const { label } = machineAppearance(machine, copy.eventsOf(machine));
    return this.state === "touched" ? label !== "running" : label === this.state;
  }

  /** @param {GroupSummary} group */
  #isCounted(group) {
    return group.update_domains.some((domain) => {
      const named = domain.scheduled + domain.started;
      const disturbed = domain.machines - (domain.states.running ?? 0);
      if (this.state === "touched") return named + disturbed > 0;
      if (this.state === "announced" || this.state === "approved") return domain.scheduled > 0;
      if (this.state === "started") return domain.started > 0;
      if (!this.state) return true;
      return (domain.states[this.state] ?? 0) > 0;
    });
  }
}
