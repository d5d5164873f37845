/** Turning a manual clock. */

import { dateTime } from "../page/formatting.js";
import { clock } from "../service/connected.js";
import { parseSpan } from "../page/typed_times.js";
import { post } from "./verb.js";

/** @type {import("./verb.js").Verb<any>} */
export const ADVANCE = {
  verb: "advance",
  label: "Advance",
  right: "run",
  about: "Turns service time forward; all that falls due on the way is done.",
  isFrequent: true,
  concerns: () => clock.kind === "manual",
  question: () => "Turn the clock?",
  doing: () => "Advance",
  fields: () => [
    { name: "by", label: "By", kind: "duration", hint: "As 90 (seconds), 15m, 1h30m or 7d.", isNeeded: true },
  ],
  request: (_, values) => post("/v1/clock/advance", { body: { seconds: parseSpan(values.by ?? "") ?? 0 } }),
  command: (_, values) => ["clock", "advance", values.by || "DURATION"],
  outcome: (answer) => `It is ${dateTime((answer.clock ?? answer).now)}.`,
};
