/** The reasons for waiting of a rollout: first of its open orders, then of later hosts. */

import { groupedReasons } from "../../elements/grouped_reasons.js";
import { eventLink, linkedIds } from "../../elements/links.js";
import { countdown, time } from "../../elements/times.js";
import { count } from "../../page/formatting.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

const MOST_UNDER_WAY = 12;

/** @param {import("../../types").Rollout} rollout */
export function waitingFor(rollout) {
  const until = rollout.waiting_until;
  const orders = rollout.waves.flatMap((wave) => wave.orders).flatMap((id) => copy.orders.get(id) ?? []);
  const underWay = orders.flatMap((order) =>
    order.waiting.map(({ what, reason }) => ({ order, what, reason })),
  );
  if (!underWay.length && !rollout.waiting.length) return null;
  return h(
    "section",
    { class: "card", "aria-labelledby": "waiting-head", key: "waiting" },
    h("h2", { id: "waiting-head" }, "Waiting for"),
    underWay.length > 0 &&
      h(
        "ul",
        { class: "reasons", key: "under-way" },
        underWay
          .slice(0, MOST_UNDER_WAY)
          .map(({ order, what, reason }) =>
            h(
              "li",
              { key: `${order.id} ${what}` },
              h("strong", { class: "name" }, order.host ?? ""),
              ", ",
              copy.events.has(what) ? ["event ", eventLink(what)] : h("span", { class: "name" }, what),
              ": ",
              linkedIds(reason),
            ),
          ),
      ),
    underWay.length > MOST_UNDER_WAY &&
      h(
        "p",
        { class: "small muted", key: "more" },
        `and ${count(underWay.length - MOST_UNDER_WAY, "more", "more")}. See the orders.`,
      ),
    rollout.waiting.length > 0 && h("div", { key: "not-begun" }, groupedReasons(rollout.waiting)),
    until &&
      h(
        "p",
        { class: "small muted", key: "until" },
        "The first of these ends ",
        time(until),
        " (",
        countdown(until),
        ").",
      ),
  );
}
