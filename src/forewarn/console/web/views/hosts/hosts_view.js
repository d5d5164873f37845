import { actionButtons } from "../../actions/action_buttons.js";
import { asCommand } from "../../elements/as_command.js";
import { commandText } from "../../elements/command_text.js";
import { choiceTool, searchTool, tools } from "../../elements/tools.js";
import { count } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { copy } from "../../service/connected.js";
import { holdsOn, ordersOn } from "./host_load.js";
import { columnsOf, sortChoices, sorted, sortOf } from "./host_sorting.js";
import { hostTable } from "./host_table.js";

/** @typedef {import("../../types").Host} Host */
/** @typedef {import("./host_sorting.js").Column} Column */

// The number of rows to draw at first.
const PAGE = 500;

const FILTERS = {
  "": "Any state",
  ok: "OK",
  cordoned: "Cordoned",
  degraded: "Degraded",
  failed: "Failed",
  lost: "Lost",
  busy: "With an open order",
  held: "Held",
};

/** All hosts, with filters and sorting. */
class HostsView extends View {
  #most = PAGE;

  opened() {
    super.opened();
    this.watch(copy, "hosts", "orders", "holds", "loaded");
  }

  drawn() {
    if (!copy.hosts) {
      return [h("h1", null, "Hosts"), h("p", { class: "notice" }, "Project tokens cannot see hosts.")];
    }
    const all = [...copy.hosts.values()];
    if (!all.length) return [h("h1", null, "Hosts"), noHost(), actionButtons("hosts", null)];
    const columns = columnsOf(all);
    const sort = sortOf(this.query.get("sort"));
    const shown = sorted(
      all.filter((host) => this.#matches(host)),
      sort,
    );
    return [
      h(
        "div",
        { class: "row" },
        h("h1", null, "Hosts"),
        h("span", { class: "muted" }, shownCount(all, shown)),
        actionButtons("hosts", null),
      ),
      this.#tools(columns),
      simulatedNotice(all),
      shown.length
        ? hostTable(shown.slice(0, this.#most), columns, sort)
        : h("div", { class: "empty" }, h("p", null, "No host matches."), this.#showAll()),
      shown.length > this.#most &&
        h(
          "button",
          { type: "button", onclick: () => this.#showMore() },
          `Show more (${count(shown.length - this.#most, "host")} left)`,
        ),
      asCommand(["host", "list"]),
    ];
  }

  /** @param {readonly Column[]} columns */
  #tools(columns) {
    const isSet = this.query.get("state") || this.query.get("q");
    return tools(
      searchTool("Search by name"),
      choiceTool("State", "state", FILTERS),
      choiceTool("Sort by", "sort", sortChoices(columns)),
      isSet && this.#showAll(),
    );
  }

  #showAll() {
    return h(
      "button",
      { type: "button", class: "quiet", onclick: () => router.setQuery({ q: null, state: null }) },
      "Show all",
    );
  }

  #showMore() {
    this.#most += PAGE;
    this.redraw();
  }

  /** @param {Host} host */
  #matches(host) {
    const text = (this.query.get("q") ?? "").trim().toLowerCase();
    const state = this.query.get("state") ?? "";
    if (text && !host.name.toLowerCase().includes(text)) return false;
    if (state === "busy") return ordersOn(host.name).length > 0;
    if (state === "held") return holdsOn(host.name).length > 0;
    return !state || host.state === state;
  }
}

/**
 * @param {Host[]} all
 * @param {Host[]} shown
 */
const shownCount = (all, shown) =>
  all.length === shown.length
    ? count(all.length, "host")
    : `${shown.length.toLocaleString("en")} of ${count(all.length, "host")}`;

/** @param {Host[]} hosts */
function simulatedNotice(hosts) {
  const simulated = hosts.filter((host) => host.driver === "simulated").length;
  if (!simulated) return null;
  const which = simulated === hosts.length ? "All hosts are" : `${count(simulated, "host is", "hosts are")}`;
  return h(
    "p",
    { class: "notice", "data-tone": "info" },
    `${which} simulated: steps take time, but no real machine is touched.`,
  );
}

function noHost() {
  return h(
    "div",
    { class: "empty" },
    h("h2", null, "No hosts yet"),
    h("p", null, "Declare hosts as [hosts.NAME] in a fleet file and apply it:"),
    commandText(["fleet", "apply", "fleet.toml"]),
    h("p", null, "Or import the hosts of a hypervisor or a cloud:"),
    commandText(["fleet", "import", "--from", "libvirt", "--host", "NAME=URI"]),
    commandText(["fleet", "import", "--from", "openstack"]),
  );
}

define("fw-hosts-view", HostsView);
