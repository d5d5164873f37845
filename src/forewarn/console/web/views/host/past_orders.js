import { badge, workAppearance } from "../../elements/appearance.js";
import { orderLink } from "../../elements/links.js";
import { countdown } from "../../elements/times.js";
import { define, LiveElement } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { api } from "../../service/connected.js";
import { Loaded } from "../../service/loaded.js";

/** @typedef {import("../../types").Order} Order */

const MOST = 5;
// Old orders are found by what the history has of the host.
const RECORDS = 100;

/** The last orders on a host that are over. */
class PastOrders extends LiveElement {
  host = "";
  /** @type {Loaded<Order[]> | null} */
  #orders = null;

  opened() {
    this.#orders = new Loaded(
      () => this.#read(),
      (record) => record.host === this.host && record.kind.startsWith("order-"),
    );
    this.watch(this.#orders, "changed");
    this.#orders.follow(this.ended);
  }

  async #read() {
    const query = /** @type {any} */ ({
      host: this.host,
      kind: ["order-done", "order-failed", "order-cancelled", "order-abandoned"],
      limit: RECORDS,
    });
    const { records } = await api.get("/v1/history", { query });
    const ids = [...new Set(records.map((record) => record.order ?? ""))].filter(Boolean).slice(0, MOST);
    const read = await Promise.all(ids.map((id) => api.get("/v1/orders/{id}", { path: { id } })));
    return read.map(({ order }) => order).filter((order) => order.host === this.host && order.ended_at);
  }

  drawn() {
    const orders = this.#orders?.value ?? [];
    const trouble = this.#orders?.trouble;
    if (trouble) return h("p", { class: "notice", "data-tone": "danger" }, trouble);
    if (!orders.length) return null;
    return [
      h("h3", null, "Orders that are over"),
      h(
        "ul",
        { class: "plain" },
        orders.map((order) =>
          h(
            "li",
            { key: order.id, class: "row" },
            badge(workAppearance(order.state)),
            h("span", null, order.work ?? order.action),
            orderLink(order.id),
            h("span", { class: "muted small" }, countdown(order.ended_at), order.why && `: ${order.why}`),
          ),
        ),
      ),
      h("h3", null, "Records"),
    ];
  }
}

define("fw-past-orders", PastOrders);

/** @param {string} host */
export const pastOrders = (host) => h("fw-past-orders", { key: "past", ".host": host });
