/** Definitions of the counts of promises. */

import { h } from "../../page/tree.js";
import { promiseLegend } from "./promise_chart.js";

/** @type {readonly (readonly [string, string])[]} */
const MEANINGS = [
  [
    "kept",
    "The event was visible to the machine for the promised time before its start, or for an hour if the promise is longer. A tolerance of 30 seconds allows for slow polling. An approval gives up the remaining notice for all machines of the event.",
  ],
  ["late", "The machine could not see the event in time, because the service was down."],
  ["never", "The machine could see the event in time, but did not poll while it was listed."],
];

export function promiseDefinitions() {
  const swatches = promiseLegend();
  return h(
    "section",
    { class: "card promise-words", "aria-labelledby": "promise-words" },
    h("h2", { id: "promise-words" }, "Definitions"),
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
        "An operator announced the event with less notice (emergency), or together with another update domain of the group. Its machines are still judged, by the announced notice.",
      ),
      h("dt", { key: "unannounced" }, "unannounced"),
      h(
        "dd",
        { key: "unannounced meaning" },
        "An import found that a machine was moved, started, stopped or destroyed outside forewarn, without an event.",
      ),
    ),
    h(
      "p",
      { class: "small muted" },
      "Promises are judged when the event ends, because polls may be reported until then. Events that were cancelled or withdrawn before their start are not judged. Events that start at their announcement, as after a host failure, are not judged either. Months are in UTC and service time. Counts stay when old records are removed. Simulated work is counted separately.",
    ),
  );
}
