/** All verbs, by what they are done to; a new one has its line in its noun's table. */

import { copy } from "../service/connected.js";
import { ADVANCE } from "./clock_verbs.js";
import { ADD_MACHINE, CHANGE_MACHINE } from "./declaration_verbs.js";
import { EVENT_VERBS } from "./event_verbs.js";
import { HOLD_HOST, HOLD_PROJECT, RELEASE } from "./hold_verbs.js";
import { HOST_VERBS } from "./host_verbs.js";
import { MACHINE_VERBS } from "./machine_verbs.js";
import { ORDER_VERBS } from "./order_verbs.js";
import { ROLLOUT_VERBS } from "./rollout_verbs.js";

/** @typedef {"machine" | "host" | "event" | "order" | "rollout" | "hold" | "project" | "fleet" | "clock"} Noun */
/** @typedef {import("./verb.js").Verb<any>} AnyVerb */

/** @type {{ [N in Noun]: AnyVerb[] }} */
const VERBS = {
  machine: [...MACHINE_VERBS.slice(0, -1), CHANGE_MACHINE, ...MACHINE_VERBS.slice(-1)],
  host: [...HOST_VERBS, HOLD_HOST],
  event: EVENT_VERBS,
  order: ORDER_VERBS,
  rollout: ROLLOUT_VERBS,
  hold: [RELEASE],
  project: [HOLD_PROJECT],
  fleet: [ADD_MACHINE],
  clock: [ADVANCE],
};

/**
 * List what the caller may do to something: no verb that the role would be refused.
 *
 * @param {Noun} noun
 * @param {any} subject
 * @returns {{ verb: AnyVerb, whyNot: string | null }[]}
 */
export function verbsFor(noun, subject) {
  return VERBS[noun]
    .filter((verb) => copy.may(verb.right) && (verb.concerns?.(subject) ?? true))
    .map((verb) => ({ verb, whyNot: verb.whyNot?.(subject) ?? null }));
}
