/** All actions, by the kind of thing that they apply to. */

import { copy } from "../service/connected.js";
import { ADVANCE } from "./clock_verbs.js";
import { EVENT_VERBS } from "./event_verbs.js";
import { ADD_GROUP, CHANGE_GROUP, DELETE_GROUP } from "./group_declarations.js";
import { HOLD_HOST, HOLD_PROJECT, RELEASE } from "./hold_verbs.js";
import { ADD_HOST, CHANGE_HOST, DELETE_HOST } from "./host_declarations.js";
import { HOST_VERBS } from "./host_verbs.js";
import { ADD_MACHINE, CHANGE_MACHINE } from "./machine_declarations.js";
import { MACHINE_VERBS } from "./machine_verbs.js";
import { ORDER_VERBS } from "./order_verbs.js";
import { ADD_PROJECT, CHANGE_PROJECT, DELETE_PROJECT } from "./project_declarations.js";
import { ROLLOUT_VERBS } from "./rollout_verbs.js";
import { CREATE_TOKEN, REPLACE_TOKEN, REVOKE_TOKEN } from "./token_verbs.js";
import { ADD_WEBHOOK, REMOVE_WEBHOOK, REPLACE_WEBHOOK, TEST_WEBHOOK } from "./webhook_verbs.js";

/**
 * @typedef {"machine" | "host" | "group" | "event" | "order" | "rollout" | "hold" | "project" | "fleet" | "hosts" |
 *   "clock" | "tokens" | "token" | "webhooks" | "webhook"} Noun
 */
/** @typedef {import("./verb.js").Verb<any>} AnyVerb */

/** @type {{ [N in Noun]: AnyVerb[] }} */
const VERBS = {
  machine: [...MACHINE_VERBS.slice(0, -1), CHANGE_MACHINE, ...MACHINE_VERBS.slice(-1)],
  host: [...HOST_VERBS, HOLD_HOST, CHANGE_HOST, DELETE_HOST],
  group: [CHANGE_GROUP, DELETE_GROUP],
  event: EVENT_VERBS,
  order: ORDER_VERBS,
  rollout: ROLLOUT_VERBS,
  hold: [RELEASE],
  project: [CHANGE_PROJECT, HOLD_PROJECT, DELETE_PROJECT],
  fleet: [ADD_MACHINE, ADD_HOST, ADD_GROUP, ADD_PROJECT],
  hosts: [ADD_HOST],
  clock: [ADVANCE],
  tokens: [CREATE_TOKEN],
  token: [REPLACE_TOKEN, REVOKE_TOKEN],
  webhooks: [ADD_WEBHOOK],
  webhook: [TEST_WEBHOOK, REPLACE_WEBHOOK, REMOVE_WEBHOOK],
};

/**
 * List the actions on a thing that the caller's role permits.
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
