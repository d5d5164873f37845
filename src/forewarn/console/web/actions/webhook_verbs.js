/** Add, test and remove webhooks, and replace their secrets. */

import { shortId } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import { linesOf } from "./declared_fields.js";
import { secretShown } from "./secret.js";
import { option, post, remove } from "./verb.js";

/** @typedef {import("../types").Webhook} Webhook */
/** @typedef {import("./verb.js").Field} Field */
/** @typedef {import("./verb.js").Values} Values */

/** @param {string | undefined} text */
const kindsOf = (text) => /** @type {Webhook["kinds"]} */ (linesOf(text ?? ""));

/**
 * @param {string} url
 * @param {string | null | undefined} project
 * @param {Webhook["kinds"]} kinds
 * @param {string | undefined} secret
 */
const added = (url, project, kinds, secret) =>
  post("/v1/webhooks", {
    body: { url, kinds, ...(project ? { project } : {}), ...(secret ? { secret } : {}) },
  });

/**
 * @param {string} url
 * @param {string | null | undefined} project
 * @param {readonly string[]} kinds
 * @param {string | undefined} secret
 */
const command = (url, project, kinds, secret) => [
  ...["webhook", "add", url || "URL"],
  ...kinds.flatMap((kind) => ["--kind", kind]),
  ...option("--project", project ?? ""),
  // Keep the secret out of the shell's history.
  ...option("--secret", secret && "SECRET"),
];

/** @param {any} answer */
const shown = (answer) =>
  secretShown(
    "The secret that signs the calls",
    answer.secret,
    `The program at ${answer.webhook.url} verifies the signature of each call with it.`,
  );

/** @type {Field} */
const SECRET = {
  name: "secret",
  label: "Secret",
  kind: "text",
  hint: "whsec_ and 24 to 64 bytes in base64. If omitted, the server makes one.",
  isRare: true,
};

/** @type {import("./verb.js").Verb<null>} */
export const ADD_WEBHOOK = {
  verb: "add",
  label: "Add a webhook",
  right: "use",
  isFrequent: true,
  about: "Sends each new record to an address, as a signed POST.",
  question: () => "Add a webhook?",
  doing: () => "Add",
  fields: () => [
    { name: "url", label: "Address", kind: "text", isNeeded: true, hint: "https://… or http://…" },
    ...(copy.caller?.project
      ? []
      : [
          /** @type {Field} */ ({
            name: "project",
            label: "Project",
            kind: "text",
            hint: "Only the records of this project. If omitted: all records.",
            suggestions: () => copy.projects.keys(),
          }),
        ]),
    {
      name: "kinds",
      label: "Kinds of records",
      kind: "lines",
      hint: "One per line, such as event-scheduled or order-failed. If omitted, all kinds.",
    },
    SECRET,
  ],
  request: (_, values) =>
    added((values.url ?? "").trim(), values.project, kindsOf(values.kinds), values.secret),
  command: (_, values) =>
    command(values.url ?? "", values.project, linesOf(values.kinds ?? ""), values.secret),
  shown,
  outcome: (answer) => `Records are sent to ${answer.webhook.url} from now on.`,
};

/** @param {Webhook} webhook */
const own = (webhook) => (copy.caller?.project ? null : webhook.project);

/** @type {import("./verb.js").Verb<Webhook>} */
export const TEST_WEBHOOK = {
  verb: "test",
  label: "Test",
  right: "use",
  isFrequent: true,
  about: "Calls the address now with an event of type forewarn.test, and shows the result.",
  question: () => "Send a test call?",
  doing: () => "Send",
  touches: (webhook) => ({ summary: webhook.url }),
  request: (webhook) => post("/v1/webhooks/{id}/test", { path: { id: webhook.id } }),
  command: (webhook) => ["webhook", "test", shortId(webhook.id)],
  shown: (answer, webhook) => [
    h(
      "h2",
      { id: "action-question" },
      answer.delivered ? "The test call was accepted" : "The test call failed",
    ),
    h(
      "p",
      { id: "action-about", class: "notice name", "data-tone": answer.delivered ? "calm" : "danger" },
      answer.delivered ? webhook.url : `${webhook.url}: ${answer.error}`,
    ),
  ],
  isQuiet: true,
  outcome: (answer, webhook) =>
    answer.delivered
      ? `${webhook.url} accepted a test call.`
      : `A test call of ${webhook.url} failed: ${answer.error}`,
};

/** @type {import("./verb.js").Verb<Webhook>} */
export const REPLACE_WEBHOOK = {
  verb: "add",
  label: "New secret",
  right: "use",
  about:
    "Adds a second webhook with the same address and a new secret. Both are called until you remove the old one.",
  question: () => "Add a webhook with a new secret?",
  doing: () => "Create a new secret",
  touches: (webhook) => ({ summary: webhook.url }),
  fields: () => [SECRET],
  request: (webhook, values) => added(webhook.url, own(webhook), webhook.kinds, values.secret),
  command: (webhook, values) => command(webhook.url, own(webhook), webhook.kinds, values.secret),
  shown,
  outcome: (_, webhook) =>
    `${webhook.url} gets calls signed with either secret. When the receiver uses the new one, remove the old webhook (${shortId(webhook.id)}).`,
};

/** @type {import("./verb.js").Verb<Webhook>} */
export const REMOVE_WEBHOOK = {
  verb: "remove",
  label: "Remove",
  right: "use",
  hurts: true,
  about: "Stops sending records to the address. Undelivered records are dropped.",
  question: () => "Remove this webhook?",
  doing: () => "Remove",
  touches: (webhook) => ({
    summary: webhook.behind
      ? `${webhook.url}: ${webhook.behind} records are not delivered yet.`
      : webhook.url,
  }),
  request: (webhook) => remove("/v1/webhooks/{id}", { path: { id: webhook.id } }),
  command: (webhook) => ["webhook", "remove", shortId(webhook.id)],
  outcome: (_, webhook) => `The webhook ${webhook.url} is removed.`,
};
