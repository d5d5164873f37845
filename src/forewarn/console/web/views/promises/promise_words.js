/** What the counts of promises mean, and what is not judged. */

import { h } from "../../page/tree.js";
import { promiseLegend } from "./promise_chart.js";

/** @type {readonly (readonly [string, string])[]} */
const MEANINGS = [
  [
    "kept",
    "the machine could see the event as long before its start as was promised, or an hour, less 30 seconds for a guest that polls that seldom. An approval gives up the rest, for all machines of the event.",
  ],
  ["late", "the machine could not see the event in time: the service was away."],
  ["never", "the machine could see the event in time, and did not ask as long as it was listed."],
];

export function promiseWords() {
  const swatches = promiseLegend();
  return h(
    "section",
    { class: "card promise-words", "aria-labelledby": "promise-words" },
    h("h2", { id: "promise-words" }, "What is counted"),
    h(
      "dl",
      null,
      MEANINGS.map(([name, meaning], place) => [
        h("dt", { key: name }, swatches[place], " ", name),
        h("dd", { key: `${name} meaning` }, meaning),
      ]),
      h(
        "dt",
        { key: "broken" },
        h("span", { class: "promise-broken-word", "aria-hidden": "true" }, "✕"),
        " broken",
      ),
      h(
        "dd",
        { key: "broken meaning" },
        "events that an operator announced with less notice (emergency), or together with another update domain of the group. Their machines are judged all the same, by what was announced.",
      ),
      h("dt", { key: "unannounced" }, "unannounced"),
      h(
        "dd",
        { key: "unannounced meaning" },
        "times that a machine was moved, started, stopped or destroyed outside forewarn, as an import found, without an event.",
      ),
    ),
    h(
      "p",
      { class: "small muted" },
      "Promises are judged when the event ends, for until then word of who was told may come. Not judged: what was cancelled or withdrawn before its start, and what started the moment it was announced, as after the failure of a host. Months are in UTC and service time. Counts stay when old records go; simulated work proves nothing about real work, and stands apart.",
    ),
  );
}
