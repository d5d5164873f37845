import { actionButtons } from "../../actions/action_buttons.js";
import { badge, hostBadges } from "../../elements/appearance.js";
import { asCommand } from "../../elements/as_command.js";
import { groupLink } from "../../elements/links.js";
import { keepOneReachable, machineTile, moveBetweenTiles } from "../../elements/machine_tile.js";
import { orderCard } from "../../elements/order_card.js";
import { pageHead } from "../../elements/page_head.js";
import { recentRecords } from "../../elements/recent_records.js";
import { countdown, time } from "../../elements/times.js";
import { count } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { address } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { copy } from "../../service/connected.js";
import { WantedMachines } from "../../service/wanted_machines.js";
import { carried, holdsOn, ordersOn } from "../hosts/host_load.js";
import { hostCapacity } from "./host_capacity.js";
import "./host_plan.js";
import { hostNotice } from "./host_notice.js";
import { lastOrders } from "./last_orders.js";

/** @typedef {import("../../types").Host} Host */

/** One host: state, open orders, machines, effect of maintenance and history. */
class HostView extends View {
  #wanted = new WantedMachines();
  #coming = new WantedMachines();

  get #name() {
    return this.names.name ?? "";
  }

  opened() {
    super.opened();
    this.watch(copy, "hosts", "machines", "events", "orders", "holds", "loaded");
    this.#wanted.look({ host: this.#name }, () => this.redraw());
    this.#coming.look({ bound_for: this.#name }, () => this.redraw());
    this.ended.addEventListener("abort", () => {
      this.#wanted.look(null);
      this.#coming.look(null);
    });
    this.addEventListener("focusin", (focus) => this.#focused(/** @type {HTMLElement} */ (focus.target)), {
      signal: this.ended,
    });
  }

  drawn() {
    const host = copy.hosts?.get(this.#name);
    if (!host) return missing(this.#name);
    queueMicrotask(() => keepOneReachable(this));
    return [
      head(host),
      hostNotice(host),
      host.reachable === false &&
        h(
          "p",
          { class: "notice", "data-tone": "warn" },
          "The host cannot be reached",
          host.unreachable_since && [" since ", time(host.unreachable_since)],
          ". It accepts no machines, and its orders wait. Reason: ",
          h("span", { class: "name" }, host.unreachable_because),
        ),
      holds(host),
      host.driver === "simulated" &&
        h(
          "p",
          { class: "notice", "data-tone": "info" },
          "This host is simulated: steps take time, but no real machine is touched.",
        ),
      h("section", { class: "card" }, h("h2", null, "Open orders"), open(host)),
      this.#carries(host),
      h("fw-host-plan", { key: "plan", ".host": host.name }),
      h(
        "section",
        { class: "card" },
        h("h2", null, "History"),
        lastOrders(host.name),
        recentRecords({ host: host.name }),
      ),
      asCommand(["host", "show", host.name], ["history", "--host", host.name]),
    ];
  }

  /** @param {Host} host */
  #carries(host) {
    const machines = copy.machines.onHost(host.name);
    return h(
      "section",
      { class: "card" },
      h(
        "h2",
        null,
        "Machines ",
        h("span", { class: "muted" }, this.#wanted.isRead ? machines.length.toLocaleString("en") : ""),
      ),
      this.#wanted.trouble && h("p", { class: "notice", "data-tone": "danger" }, this.#wanted.trouble),
      !this.#wanted.isRead &&
        h("p", { class: "muted", role: "status", "aria-busy": "true" }, "Loading machines …"),
      this.#wanted.isRead && !machines.length && h("p", { class: "muted" }, "The host has no machines."),
      this.#wanted.isRead && hostCapacity(host, machines, copy.machines.boundFor(host.name)),
      h(
        "div",
        { class: "carried", onkeydown: moveBetweenTiles },
        carried(machines).map((each) =>
          h(
            "div",
            { key: each.key, class: "carried-group" },
            h("h3", null, each.group === null ? "Standalone" : groupLink(each.group)),
            h(
              "div",
              { class: "domains" },
              [...each.domains].map(([domain, members]) =>
                h(
                  "div",
                  { key: domain, class: "domain", role: "group", "aria-label": `Update domain ${domain}` },
                  each.group !== null &&
                    h(
                      "div",
                      { class: "domain-head" },
                      `UD ${domain}`,
                      h("span", { class: "number" }, members.length),
                    ),
                  h("div", { class: "tiles" }, members.map(machineTile)),
                ),
              ),
            ),
          ),
        ),
      ),
    );
  }

  /** @param {HTMLElement} target */
  #focused(target) {
    const tile = target.closest(".tile");
    if (tile) keepOneReachable(this, tile);
  }
}

/** @param {Host} host */
function head(host) {
  return pageHead({
    path: h("a", { href: address("/hosts") }, "Hosts"),
    heading: h("h1", { class: "name" }, host.name),
    signs: [
      hostBadges(host),
      h("span", { class: "muted" }, reached(host)),
      host.reachable === true && badge({ tone: "calm", glyph: "✓", label: "reachable" }),
      host.bare_metal && h("span", { class: "muted" }, "bare metal"),
    ],
    actions: actionButtons("host", host),
  });
}

/**
 * Describe the driver of a host: name, URI and concurrency.
 *
 * @param {Host} host
 */
function reached(host) {
  const at = host.uri ? ` at ${host.uri}` : "";
  return `driver ${host.driver}${at}${host.at_once ? `, ${count(host.at_once, "call")} at once` : ""}`;
}

/** @param {Host} host */
function holds(host) {
  return holdsOn(host.name).map((hold) =>
    h(
      "div",
      { key: hold.id, class: "notice", "data-tone": "warn" },
      h("strong", null, `Held: ${hold.reach}`),
      h(
        "p",
        null,
        h("span", { class: "name" }, hold.reason),
        " (",
        h("span", { class: "name" }, hold.by),
        ", ",
        countdown(hold.at),
        ")",
        hold.saved ? null : h("em", { title: hold.note }, " in memory only, not saved yet"),
      ),
    ),
  );
}

/** @param {Host} host */
function open(host) {
  const orders = ordersOn(host.name);
  if (orders.length) return orders.map(orderCard);
  return h("p", { class: "muted" }, "No open orders.");
}

/** @param {string} name */
function missing(name) {
  const why = copy.hosts ? `There is no host ${name}.` : "Project tokens cannot see hosts.";
  return [
    h("h1", { class: "name" }, name),
    h(
      "div",
      { class: "empty" },
      h("p", { class: "name" }, why),
      h(
        "a",
        { href: address(copy.hosts ? "/hosts" : "/fleet") },
        copy.hosts ? "Show all hosts" : "Show the fleet",
      ),
    ),
  ];
}

define("fw-host-view", HostView);
