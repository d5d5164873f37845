import { actionButtons } from "../../actions/action_buttons.js";
import { badge, hostBadges, workAppearance } from "../../elements/appearance.js";
import { asCommand } from "../../elements/as_command.js";
import { commandText } from "../../elements/command_text.js";
import { groupLink, hostLink, linkedIds, orderLink } from "../../elements/links.js";
import { orderWords } from "../../elements/order_facts.js";
import { importedFrom } from "../../elements/sources.js";
import { choiceTool, searchTool, tools } from "../../elements/tools.js";
import { count } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { copy } from "../../service/connected.js";
import { carried, domainWords, holdsOn, ordersOn } from "./host_load.js";

/** @typedef {import("../../types").Host} Host */
/** @typedef {import("../../types").Machine} Machine */

// So many are drawn at first: nobody reads more at a time.
const PAGE = 200;
// Of so many groups a host's line says what it carries; its page tells all.
const MOST_GROUPS = 6;

const FILTERS = {
  "": "Any state",
  ok: "Ok",
  cordoned: "Cordoned",
  degraded: "Degraded",
  failed: "Failed",
  lost: "Lost",
  busy: "With an open order",
  held: "Held",
};

/** All hosts: how each is, what it carries, and what it waits for. */
class HostsView extends View {
  #most = PAGE;

  opened() {
    super.opened();
    this.watch(copy, "hosts", "orders", "holds", "machines", "loaded");
  }

  drawn() {
    if (!copy.hosts) {
      return [
        h("h1", null, "Hosts"),
        h("p", { class: "notice" }, "Hosts are not shown to the people of a project."),
      ];
    }
    const all = [...copy.hosts.values()];
    if (!all.length) return [h("h1", null, "Hosts"), noHost(), actionButtons("hosts", null)];
    const shown = all.filter((host) => this.#takes(host));
    const byHost = Map.groupBy(copy.machines.values(), (machine) => machine.host);
    return [
      h(
        "div",
        { class: "row" },
        h("h1", null, "Hosts"),
        h("span", { class: "muted" }, told(all, shown)),
        actionButtons("hosts", null),
      ),
      this.#tools(),
      simulatedNotice(all),
      shown.length
        ? this.#table(shown.slice(0, this.#most), byHost)
        : h("div", { class: "empty" }, h("p", null, "No host is as you ask."), this.#showAll()),
      shown.length > this.#most &&
        h(
          "button",
          { type: "button", onclick: () => this.#showMore() },
          `Show more (${count(shown.length - this.#most, "host")} left)`,
        ),
      asCommand(["host", "list"]),
    ];
  }

  #tools() {
    const isSet = this.query.get("state") || this.query.get("q");
    return tools(
      searchTool("Search by name"),
      choiceTool("State", "state", FILTERS),
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
  #takes(host) {
    const text = (this.query.get("q") ?? "").trim().toLowerCase();
    const state = this.query.get("state") ?? "";
    if (text && !host.name.toLowerCase().includes(text)) return false;
    if (state === "busy") return ordersOn(host.name).length > 0;
    if (state === "held") return holdsOn(host.name).length > 0;
    return !state || host.state === state;
  }

  /**
   * @param {Host[]} hosts
   * @param {Map<string | null, Machine[]>} byHost
   */
  #table(hosts, byHost) {
    return h(
      "table",
      { class: "hosts stacked" },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          ["Host", "State", "Driver", "Carries", "Open order", "Waits for"].map((title) =>
            h("th", { key: title, scope: "col" }, title),
          ),
        ),
      ),
      h(
        "tbody",
        null,
        hosts.map((host) => hostLine(host, byHost.get(host.name) ?? [])),
      ),
    );
  }
}

/**
 * @param {Host} host
 * @param {Machine[]} machines
 */
function hostLine(host, machines) {
  const orders = ordersOn(host.name);
  const holds = holdsOn(host.name);
  return h(
    "tr",
    { key: host.name },
    h("th", { scope: "row" }, hostLink(host.name), h("div", null, importedFrom(host.source))),
    cell(
      "State",
      hostBadges(host),
      host.state === "cordoned" &&
        host.cordoned_for &&
        h("div", { class: "small" }, "for order ", orderLink(host.cordoned_for)),
      holds.length > 0 && badge({ tone: "warn", glyph: "‖", label: "held" }),
    ),
    cell(
      "Driver",
      h("span", { class: host.driver === "simulated" ? "muted" : null }, host.driver),
      " ",
      host.reachable === false && h("div", { class: "small name" }, host.unreachable_because),
    ),
    cell("Carries", copy.machines.isWhole ? load(machines) : h("span", { class: "muted" }, "see its page")),
    cell(
      "Open order",
      orders.length
        ? orders.map((order) =>
            h(
              "div",
              { key: order.id, class: "row" },
              badge(workAppearance(order.state)),
              order.mode ? orderWords(order) : (order.work ?? order.action),
              orderLink(order.id),
            ),
          )
        : h("span", { class: "muted" }, "none"),
    ),
    cell("Waits for", waits(host)),
  );
}

/**
 * @param {string} title  said again where the table is stacked
 * @param {...import("../../types").Child} content
 */
const cell = (title, ...content) => h("td", { "data-title": title }, content);

/** @param {Machine[]} machines */
function load(machines) {
  if (!machines.length) return h("span", { class: "muted" }, "nothing");
  const groups = carried(machines);
  return [
    h("div", null, count(machines.length, "machine")),
    h(
      "ul",
      { class: "plain small" },
      groups
        .slice(0, MOST_GROUPS)
        .map((each) =>
          h(
            "li",
            { key: each.key },
            each.group === null
              ? `${each.machines.length} standalone`
              : [groupLink(each.group), ` ${domainWords(each)}`],
          ),
        ),
      groups.length > MOST_GROUPS &&
        h("li", { class: "muted" }, `and ${count(groups.length - MOST_GROUPS, "group")} more`),
    ),
  ];
}

/** @param {Host} host */
function waits(host) {
  const waiting = ordersOn(host.name).flatMap((order) =>
    order.waiting.map((each) => ({ ...each, key: `${order.id} ${each.what}` })),
  );
  if (!waiting.length) return h("span", { class: "muted" }, "nothing");
  return h(
    "ul",
    { class: "plain small" },
    waiting.map((each) =>
      h("li", { key: each.key }, h("span", { class: "name" }, each.what), ": ", linkedIds(each.reason)),
    ),
  );
}

/**
 * @param {Host[]} all
 * @param {Host[]} shown
 */
const told = (all, shown) =>
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
    `${which} simulated: steps take their time, and nothing is really done.`,
  );
}

function noHost() {
  return h(
    "div",
    { class: "empty" },
    h("h2", null, "There is no host yet"),
    h("p", null, "A fleet file declares hosts with [hosts.NAME]; apply it, and they appear here:"),
    commandText(["fleet", "apply", "fleet.toml"]),
    h("p", null, "What a hypervisor or a cloud has already is taken over from there:"),
    commandText(["fleet", "import", "--from", "libvirt", "--host", "NAME=URI"]),
    commandText(["fleet", "import", "--from", "openstack"]),
  );
}

define("fw-hosts-view", HostsView);
