/** Advance a manual clock. */

import { dateTime } from "../page/formatting.js";
import { clock } from "../service/connected.js";
import { parseSpan } from "../page/typed_times.js";
import { post } from "./verb.js";

/** @type {import("./verb.js").Verb<any>} */
export const ADVANCE = {
  verb: "advance",
  label: "Advance",
  right: "run",
  about: "Moves service time forward and does everything that becomes due on the way.",
  isFrequent: true,
  concerns: () => clock.kind === "manual",
  question: () => "Advance the clock?",
  doing: () => "Advance",
  fields: () => [
    {
      name: "by",
      label: "By",
      kind: "duration",
      hint: "Such as 90 (seconds), 15m, 1h30m or 7d.",
      isNeeded: true,
    },
  ],
  request: (_, values) => post("/v1/clock/advance", { body: { seconds: parseSpan(values.by ?? "") ?? 0 } }),
  command: (_, values) => ["clock", "advance", values.by || "DURATION"],
  outcome: (answer) => `Service time is now ${dateTime((answer.clock ?? answer).now)}.`,
};
