/** All views and their addresses. To add a view, import it here and add a route. */

import { copy } from "../service/connected.js";
import "../views/fleet/fleet_view.js";
import "../views/history/history_view.js";
import "../views/host/host_view.js";
import "../views/hosts/hosts_view.js";
import "../views/machine/machine_view.js";
import "../views/event/event_view.js";
import "../views/order/order_view.js";
import "../views/orders/orders_view.js";
import "../views/plan/plan_view.js";
import "../views/promises/promises_view.js";
import "../views/rollout/rollout_view.js";
import "../views/rollouts/rollouts_view.js";
import "../views/timeline/timeline_view.js";
import "../views/tokens/tokens_view.js";
import "../views/webhooks/webhooks_view.js";

/** @typedef {import("../page/router.js").Route & { right?: import("../types").Right }} ConsoleRoute */

/** @type {ConsoleRoute[]} */
export const ROUTES = [
  { path: "/", tag: "fw-fleet-view", title: "Fleet", section: "fleet" },
  { path: "/fleet", tag: "fw-fleet-view", title: "Fleet", section: "fleet" },
  { path: "/machines/{name}", tag: "fw-machine-view", title: "Machine", section: "fleet" },
  { path: "/hosts", tag: "fw-hosts-view", title: "Hosts", section: "hosts", right: "survey" },
  { path: "/hosts/{name}", tag: "fw-host-view", title: "Host", section: "hosts", right: "survey" },
  { path: "/timeline", tag: "fw-timeline-view", title: "Timeline", section: "timeline" },
  { path: "/events/{id}", tag: "fw-event-view", title: "Event", section: "timeline" },
  { path: "/orders", tag: "fw-orders-view", title: "Orders", section: "orders" },
  { path: "/orders/{id}", tag: "fw-order-view", title: "Order", section: "orders" },
  { path: "/rollouts", tag: "fw-rollouts-view", title: "Rollouts", section: "rollouts", right: "survey" },
  {
    path: "/rollouts/new",
    tag: "fw-plan-view",
    title: "Plan a rollout",
    section: "rollouts",
    right: "survey",
  },
  { path: "/rollouts/{id}", tag: "fw-rollout-view", title: "Rollout", section: "rollouts", right: "survey" },
  { path: "/history", tag: "fw-history-view", title: "History", section: "history" },
  { path: "/promises", tag: "fw-promises-view", title: "Promises", section: "promises" },
  { path: "/tokens", tag: "fw-tokens-view", title: "Tokens", right: "run" },
  { path: "/webhooks", tag: "fw-webhooks-view", title: "Webhooks", right: "use" },
];

/** The entries of the navigation, in order. */
export const SECTIONS = ["/fleet", "/hosts", "/timeline", "/orders", "/rollouts", "/history", "/promises"];

/** The links in the menu. */
const SETTINGS = ["/tokens", "/webhooks"];

/** List the menu's routes that the caller may see. */
export const settingsRoutes = () =>
  ROUTES.filter((route) => SETTINGS.includes(route.path) && (!route.right || copy.may(route.right)));

/** List the navigation's routes that the caller may see. */
export function sectionRoutes() {
  return SECTIONS.flatMap((path) => ROUTES.filter((route) => route.path === path)).filter(
    (route) => !route.right || copy.may(route.right),
  );
}
