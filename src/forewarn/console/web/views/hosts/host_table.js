/** The host list, one row each. */

import { badge, hostBadges, workAppearance } from "../../elements/appearance.js";
import { hostLink, linkedIds, orderLink } from "../../elements/links.js";
import { orderWords } from "../../elements/order_facts.js";
import { importedFrom } from "../../elements/sources.js";
import { listed } from "../../page/formatting.js";
import { router } from "../../page/router.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";
import { holdsOn, ordersOn } from "./host_load.js";
import { pressed, sortText } from "./host_sorting.js";

/** @typedef {import("../../types").Child} Child */
/** @typedef {import("../../types").Host} Host */
/** @typedef {import("../../types").Order} Order */
/** @typedef {import("./host_sorting.js").Column} Column */
/** @typedef {import("./host_sorting.js").ColumnKey} ColumnKey */
/** @typedef {import("./host_sorting.js").Sort} Sort */

const NAMES_SHOWN = 2;

/**
 * @param {readonly Host[]} hosts
 * @param {readonly Column[]} columns
 * @param {Sort} sort
 */
export function hostTable(hosts, columns, sort) {
  return h(
    "div",
    { class: "table-scroll", tabindex: 0, role: "group", "aria-label": "Hosts" },
    h(
      "table",
      { class: "hosts", "data-sort": sort.key },
      h(
        "thead",
        null,
        h(
          "tr",
          null,
          columns.map((column) => heading(column, sort)),
        ),
      ),
      h(
        "tbody",
        null,
        hosts.map((host) => line(host, columns)),
      ),
    ),
  );
}

/**
 * @param {Column} column
 * @param {Sort} sort
 */
function heading(column, sort) {
  const { key, title } = column;
  if (!column.sort) return h("th", { key, scope: "col", "data-column": key }, title);
  const isChosen = sort.key === key;
  return h(
    "th",
    {
      key,
      scope: "col",
      "data-column": key,
      "aria-sort": isChosen ? (sort.isDown ? "descending" : "ascending") : null,
    },
    h(
      "button",
      {
        type: "button",
        class: "quiet sort",
        onclick: () => router.setQuery({ sort: sortText(pressed(sort, column)) }, { push: true }),
      },
      title,
      h("span", { class: "sort-mark", "aria-hidden": "true" }, isChosen ? (sort.isDown ? "▼" : "▲") : "↕"),
    ),
  );
}

/**
 * @param {Host} host
 * @param {readonly Column[]} columns
 */
function line(host, columns) {
  const orders = ordersOn(host.name);
  /** @type {{ [key in ColumnKey]?: () => Child }} */
  const cells = {
    state: () => state(host),
    driver: () => h("span", { class: host.driver === "simulated" ? "muted" : null }, host.driver),
    machines: () => [
      host.carried.toLocaleString("en"),
      h("span", { class: "unit" }, host.carried === 1 ? " machine" : " machines"),
    ],
    rack: () => [h("span", { class: "unit" }, "rack "), host.labels.rack ?? "–"],
    memory: () => memory(host),
    reached: () => reached(host),
    order: () => openOrder(orders),
    waits: () => waits(orders),
  };
  return h(
    "tr",
    { key: host.name },
    columns.map(({ key }) =>
      key === "name"
        ? h(
            "th",
            { key, scope: "row", title: host.name },
            hostLink(host.name),
            " ",
            importedFrom(host.source),
          )
        : h("td", { key, "data-column": key }, cells[key]?.()),
    ),
  );
}

/** @param {Host} host */
const state = (host) => [
  hostBadges(host),
  host.state === "cordoned" &&
    host.cordoned_for &&
    h("span", { class: "small cordoned-for" }, " for order ", orderLink(host.cordoned_for)),
  holdsOn(host.name).length > 0 && badge({ tone: "warn", glyph: "‖", label: "held" }),
];

/** @param {Host} host */
function memory(host) {
  const left = host.free.memory;
  const declared = host.resources.memory;
  if (left === undefined || !declared) return "–";
  const all = declared.amount * (declared.ratio ?? 1);
  return [
    h("span", { class: "number" }, left.toLocaleString("en")),
    h("span", { class: "muted small" }, ` of ${all.toLocaleString("en")}`),
    h("span", { class: "unit" }, " free"),
  ];
}

/** @param {Host} host */
function reached(host) {
  if (host.reachable === null) return h("span", { class: "muted" }, "unknown");
  if (host.reachable) return "yes";
  const why = host.unreachable_because ?? "";
  return h("span", { class: "name", title: why }, why ? `no: ${why}` : "no");
}

/** @param {readonly Order[]} orders */
function openOrder([order, ...others]) {
  if (!order) return h("span", { class: "muted" }, "none");
  return [
    badge(workAppearance(order.state)),
    " ",
    orderWords(order),
    " ",
    orderLink(order.id),
    others.length > 0 && h("span", { class: "small" }, ` and ${others.length} more`),
  ];
}

/** @param {readonly Order[]} orders */
function waits(orders) {
  const [first, ...others] = orders.flatMap((order) => order.waiting);
  if (!first) return h("span", { class: "muted" }, "nothing");
  const event = copy.events.get(first.what);
  const what = event ? `${event.type} of ${listed(event.resources, NAMES_SHOWN)}` : first.what;
  const text = `${what}: ${first.reason}`;
  const more = others.length ? ` (and ${others.length} more)` : "";
  return h("span", { class: "name", title: text }, linkedIds(text), more);
}
