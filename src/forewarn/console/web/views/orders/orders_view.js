/** All orders: open orders with their reasons for waiting, and ended orders page by page. */

import { workAppearance } from "../../elements/appearance.js";
import { asCommand } from "../../elements/as_command.js";
import { commandText } from "../../elements/command_text.js";
import { count } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { copy } from "../../service/connected.js";
import { orderTable } from "./order_table.js";
import { PastOrders } from "./past_orders.js";

/** @typedef {import("../../types").Order} Order */

const STATES = /** @type {const} */ (["queued", "announced", "started", "failed", "done", "cancelled"]);

class OrdersView extends View {
  /** @type {PastOrders | null} */
  #past = null;

  opened() {
    super.opened();
    this.#past = new PastOrders(this.ended);
    this.watch(this.#past, "changed");
    this.watch(copy, "orders");
  }

  drawn() {
    const state = this.query.get("state") ?? "";
    const wanted = (this.query.get("q") ?? "").trim().toLowerCase();
    this.#past?.want(state);
    const open = [...copy.orders.values()]
      .filter((order) => (!state || order.state === state) && matches(order, wanted))
      .sort((one, other) => other.created_at.localeCompare(one.created_at));
    const past = (this.#past?.orders ?? []).filter((order) => matches(order, wanted));
    return [
      h("h1", null, "Orders"),
      this.#filter(state),
      h(
        "section",
        { class: "card", key: "open", "aria-labelledby": "open" },
        h(
          "div",
          { class: "row" },
          h("h2", { id: "open" }, "Open"),
          h("span", { class: "muted" }, open.length),
        ),
        open.length ? orderTable("Open orders", open) : this.#nothingOpen(state || wanted),
      ),
      h(
        "section",
        { class: "card", key: "past", "aria-labelledby": "past" },
        h("h2", { id: "past" }, "Ended"),
        past.length > 0 && orderTable("Ended orders", past),
        this.#pastEnd(past.length),
      ),
      asCommand(["order", "list", ...(state ? ["--state", state] : [])]),
    ];
  }

  /** @param {string} chosen */
  #filter(chosen) {
    return h(
      "div",
      { class: "row", role: "search", "aria-label": "Orders" },
      h("input", {
        type: "search",
        "aria-label": "Search orders",
        placeholder: "machine, host, reason, person …",
        ".value": this.query.get("q") ?? "",
        oninput: (/** @type {any} */ input) => router.setQuery({ q: input.target.value }),
      }),
      h(
        "div",
        { class: "row", role: "group", "aria-label": "State" },
        /** @type {const} */ (["", ...STATES]).map((state) =>
          h(
            "button",
            {
              type: "button",
              key: state,
              "aria-pressed": String(state === chosen),
              onclick: () => router.setQuery({ state: state || null }),
            },
            state ? workAppearance(state).label : "all",
          ),
        ),
      ),
    );
  }

  /** @param {string} isFiltered */
  #nothingOpen(isFiltered) {
    if (isFiltered) return h("p", { class: "muted" }, "No open order matches.");
    return [
      h("p", null, "No open orders. Place an order on the page of a machine or a host, or with a command:"),
      commandText(["machine", "restart", "MACHINE"]),
    ];
  }

  /** @param {number} shown */
  #pastEnd(shown) {
    const past = this.#past;
    if (!past) return null;
    if (past.trouble) return h("p", { class: "notice", "data-tone": "danger", role: "alert" }, past.trouble);
    if (past.isReading && !shown)
      return h("p", { class: "muted", role: "status", "aria-busy": "true" }, "Loading …");
    return h(
      "div",
      { class: "row" },
      past.hasMore &&
        h("button", { type: "button", disabled: past.isReading, onclick: () => past.more() }, "Older orders"),
      h(
        "span",
        { class: "small muted" },
        shown || !past.hasMore
          ? `${count(shown, "order")} shown`
          : "No match in the newest orders. Load older orders.",
      ),
    );
  }
}

/**
 * @param {Order} order
 * @param {string} wanted
 */
function matches(order, wanted) {
  if (!wanted) return true;
  const words = [
    order.id,
    order.action,
    order.work,
    order.machine,
    order.host,
    order.by,
    order.reason,
    order.why,
    order.project,
    order.driver,
    ...order.waiting.map((each) => each.reason),
    ...order.steps.map((step) => step.machine),
  ];
  return words.some((word) => word?.toLowerCase().includes(wanted));
}

define("fw-orders-view", OrdersView);
