/** The hosts of a rollout: all, or a selection in the order of choosing. */

import { hostBadges } from "../../elements/appearance.js";
import { count } from "../../page/formatting.js";
import { define, LiveElement } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import { allHosts } from "./rollout_scope.js";

/** @typedef {import("../../types").Host} Host */
/** @typedef {{ machines: number, words: Set<string> }} Carried */

// Beyond this many rows, people search instead of reading.
const MOST_ROWS = 100;

/** Dispatches `choose`. Its `detail` is the list of host names, or null for all hosts. */
class HostChoice extends LiveElement {
  #search = "";
  /** @type {readonly string[] | null} */
  #chosen = null;
  #problem = "";

  /** @param {readonly string[] | null} chosen */
  set chosen(chosen) {
    this.#chosen = chosen;
    this.redraw();
  }

  get chosen() {
    return this.#chosen;
  }

  set problem(problem) {
    this.#problem = problem;
    this.redraw();
  }

  get problem() {
    return this.#problem;
  }

  opened() {
    this.watch(copy, "hosts", "machines");
  }

  drawn() {
    const isAll = this.#chosen === null;
    return h(
      "fieldset",
      { class: "host-choice", "aria-describedby": this.#problem ? "hosts-problem" : null },
      h("legend", null, "Hosts"),
      this.#radio("all", isAll, `All hosts that have not failed (${allHosts().length})`, () =>
        this.#choose(null),
      ),
      this.#radio("some", !isAll, isAll ? "Selected hosts" : `Selected hosts (${this.#chosen?.length})`, () =>
        this.#choose(this.#chosen ?? []),
      ),
      !isAll && this.#list(this.#chosen ?? []),
      this.#problem && h("p", { class: "problem", id: "hosts-problem", role: "alert" }, this.#problem),
    );
  }

  /**
   * @param {string} value
   * @param {boolean} checked
   * @param {string} label
   * @param {() => void} onchange
   */
  #radio(value, checked, label, onchange) {
    return h(
      "label",
      { class: "tick-field", key: value },
      h("input", { type: "radio", name: "which-hosts", value, ".checked": checked, onchange }),
      h("span", null, label),
    );
  }

  /** @param {readonly string[]} chosen */
  #list(chosen) {
    const carried = carriedByHost();
    const found = this.#found(carried);
    const missing = chosen.filter((name) => !copy.hosts?.has(name));
    return h(
      "div",
      { class: "host-list", key: "list" },
      h("input", {
        type: "search",
        "aria-label": "Search hosts by name, state, group or project",
        placeholder: "Name, state, group or project",
        ".value": this.#search,
        oninput: (/** @type {any} */ input) => this.#seek(input.target.value),
        onkeydown: (/** @type {KeyboardEvent} */ key) => key.key === "Enter" && key.preventDefault(),
      }),
      h(
        "div",
        { class: "row small" },
        h("span", { class: "muted", role: "status" }, `${count(found.length, "host")} found`),
        this.#button("Select all found", () =>
          this.#choose([...new Set([...chosen, ...found.map((host) => host.name)])]),
        ),
        this.#button("Clear selection", () => this.#choose([])),
      ),
      h(
        "ul",
        { "aria-label": "Hosts found" },
        found.slice(0, MOST_ROWS).map((host) => this.#row(host, chosen, carried.get(host.name))),
      ),
      found.length > MOST_ROWS &&
        h(
          "p",
          { class: "small muted" },
          `and ${count(found.length - MOST_ROWS, "more", "more")}. Search to narrow the list.`,
        ),
      chosen.length > 0 && this.#order(chosen, missing),
    );
  }

  /**
   * @param {Host} host
   * @param {readonly string[]} chosen
   * @param {Carried | undefined} carried
   */
  #row(host, chosen, carried) {
    const isChosen = chosen.includes(host.name);
    const machines = carried?.machines ?? (copy.machines.isWhole ? 0 : null);
    return h(
      "li",
      { key: host.name },
      h(
        "label",
        { class: "tick-field" },
        h("input", {
          type: "checkbox",
          ".checked": isChosen,
          onchange: () =>
            this.#choose(isChosen ? chosen.filter((name) => name !== host.name) : [...chosen, host.name]),
        }),
        h("span", { class: "name" }, host.name),
        (host.state !== "ok" || host.reachable === false) && hostBadges(host),
        machines !== null && h("span", { class: "muted small" }, count(machines, "machine")),
      ),
    );
  }

  /**
   * @param {readonly string[]} chosen
   * @param {readonly string[]} missing
   */
  #order(chosen, missing) {
    return h(
      "div",
      { class: "small chosen-hosts" },
      h("span", { class: "muted" }, "Order, as far as the waves allow:"),
      h(
        "ol",
        { "aria-label": "Selected hosts" },
        chosen.map((name) =>
          h(
            "li",
            { key: name },
            h("span", { class: "name" }, name),
            missing.includes(name) && h("span", { class: "problem" }, " (no such host)"),
            h(
              "button",
              {
                type: "button",
                class: "quiet",
                "aria-label": `Remove ${name}`,
                onclick: () => this.#choose(chosen.filter((each) => each !== name)),
              },
              "×",
            ),
          ),
        ),
      ),
    );
  }

  /**
   * @param {string} label
   * @param {() => void} onclick
   */
  #button(label, onclick) {
    return h("button", { type: "button", class: "quiet", onclick, key: label }, label);
  }

  /** @param {Map<string, Carried>} carried */
  #found(carried) {
    const words = this.#search.toLowerCase().split(/\s+/).filter(Boolean);
    return [...(copy.hosts?.values() ?? [])].filter((host) => {
      const own = [host.name, host.state, host.driver, ...(carried.get(host.name)?.words ?? [])];
      return words.every((word) => own.some((each) => each.toLowerCase().includes(word)));
    });
  }

  /** @param {string} search */
  #seek(search) {
    this.#search = search;
    this.redraw();
  }

  /** @param {readonly string[] | null} detail */
  #choose(detail) {
    // A redraw before the view passes the new choice would clear the box that was just checked.
    this.chosen = detail;
    this.dispatchEvent(new CustomEvent("choose", { detail }));
  }
}

/** @returns {Map<string, Carried>} */
function carriedByHost() {
  const found = new Map();
  for (const machine of copy.machines.values()) {
    if (!machine.host) continue;
    let carried = found.get(machine.host);
    if (!carried) found.set(machine.host, (carried = { machines: 0, words: new Set() }));
    carried.machines++;
    carried.words.add(machine.project);
    if (machine.group) carried.words.add(machine.group);
  }
  return found;
}

define("fw-host-choice", HostChoice);
