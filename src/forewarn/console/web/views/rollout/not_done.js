/** The hosts that a rollout did not complete, with reasons. */

import { hostLink, orderLink } from "../../elements/links.js";
import { isOver } from "../../elements/rollout_words.js";
import { count } from "../../page/formatting.js";
import { h } from "../../page/tree.js";

/** @typedef {import("../../types").Rollout} Rollout */

const MOST_ROWS = 50;

/**
 * @param {Rollout} rollout
 * @param {ReadonlyMap<string, string>} outcomes  the outcomes of orders, by id
 */
export function notDone(rollout, outcomes) {
  const isStopped = isOver(rollout) || rollout.aborting;
  const names = isStopped ? rollout.hosts_not_done : rollout.given_up;
  if (!names.length) return null;
  return h(
    "section",
    { class: "card", "aria-labelledby": "not-done-head", key: "not-done" },
    h("h2", { id: "not-done-head" }, `Not done: ${count(names.length, "host")}`),
    h(
      "ul",
      { class: "reasons" },
      names
        .slice(0, MOST_ROWS)
        .map((name) => h("li", { key: name }, hostLink(name), ": ", reasonOf(rollout, name, outcomes))),
    ),
    names.length > MOST_ROWS &&
      h(
        "details",
        null,
        h("summary", { class: "small" }, `and ${count(names.length - MOST_ROWS, "more", "more")}`),
        h("p", { class: "name" }, names.slice(MOST_ROWS).join(", ")),
      ),
  );
}

/**
 * Return the order of a host in a rollout, or null if none is placed yet.
 *
 * @param {Rollout} rollout
 * @param {string} host
 */
export function orderOf(rollout, host) {
  for (const wave of rollout.waves) {
    const place = wave.hosts.indexOf(host);
    if (place >= 0) return wave.orders[place] ?? null;
  }
  return null;
}

/**
 * @param {Rollout} rollout
 * @param {string} host
 * @param {ReadonlyMap<string, string>} outcomes
 */
function reasonOf(rollout, host, outcomes) {
  const order = orderOf(rollout, host);
  const waiting = rollout.waiting.find((each) => each.what === host);
  if (rollout.given_up.includes(host)) {
    return [
      "skipped",
      order && [", order ", orderLink(order)],
      order && outcomes.get(order) && `: ${outcomes.get(order)}`,
    ];
  }
  if (waiting) return waiting.reason;
  if (order)
    return [
      "order ",
      orderLink(order),
      outcomes.get(order) ? `: ${outcomes.get(order)}` : " did not complete",
    ];
  return rollout.state === "aborted" || rollout.aborting ? "the rollout was aborted before this host" : "";
}
