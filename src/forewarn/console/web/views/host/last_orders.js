import { badge, workAppearance } from "../../elements/appearance.js";
import { linkedIds, orderLink } from "../../elements/links.js";
import { orderWords } from "../../elements/order_facts.js";
import { countdown } from "../../elements/times.js";
import { define, LiveElement } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { api } from "../../service/connected.js";
import { LiveAnswer } from "../../service/live_answer.js";

/** @typedef {import("../../types").Order} Order */

const MOST = 5;
// The number of orders to search: some are open, or belong to machines on the host.
const LOOKED_AT = 50;

/** The last ended orders of a host. */
class LastOrders extends LiveElement {
  host = "";
  /** @type {LiveAnswer<Order[]> | null} */
  #orders = null;

  opened() {
    this.#orders = new LiveAnswer(
      () => this.#read(),
      (record) => record.host === this.host && record.kind.startsWith("order-"),
      this.ended,
    );
    this.watch(this.#orders, "changed");
  }

  async #read() {
    const { orders } = await api.get("/v1/orders", { query: { host: this.host, limit: LOOKED_AT } });
    return orders.filter((order) => order.host === this.host && order.ended_at).slice(0, MOST);
  }

  drawn() {
    const orders = this.#orders?.value ?? [];
    const trouble = this.#orders?.trouble;
    if (trouble) return h("p", { class: "notice", "data-tone": "danger" }, trouble);
    if (!orders.length) return null;
    return [
      h("h3", null, "Ended orders"),
      h(
        "ul",
        { class: "plain" },
        orders.map((order) =>
          h(
            "li",
            { key: order.id, class: "row" },
            badge(workAppearance(order.state)),
            h("span", null, orderWords(order)),
            orderLink(order.id),
            h(
              "span",
              { class: "muted small" },
              countdown(order.ended_at),
              order.why && [": ", linkedIds(order.why)],
            ),
          ),
        ),
      ),
      h("h3", null, "Records"),
    ];
  }
}

define("fw-last-orders", LastOrders);

/** @param {string} host */
export const lastOrders = (host) => h("fw-last-orders", { key: "last", ".host": host });
