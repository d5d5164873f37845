/**
 * How the records of the history look: a tone, a glyph and a label for each kind, and the families of kinds.
 * The types reject a new kind of the API until this file has an entry for it.
 */

/** @typedef {import("../types").Kind} Kind */
/** @typedef {import("./appearance.js").Appearance} Appearance */
/** @typedef {import("./appearance.js").Tone} Tone */

/** @type {{ [K in Kind]: readonly [Tone, string] }} */
const LOOKS = {
  "order-placed": ["info", "+"],
  "order-done": ["calm", "✓"],
  "order-failed": ["danger", "✕"],
  "order-cancelled": ["idle", "⊘"],
  "order-retried": ["info", "↻"],
  "order-abandoning": ["warn", "⊘"],
  "order-abandoned": ["idle", "⊘"],
  "event-scheduled": ["warn", "▲"],
  "event-approved": ["calm", "✓"],
  "event-started": ["info", "◆"],
  "event-finished": ["calm", "●"],
  "event-cancelled": ["idle", "⊘"],
  "event-withdrawn": ["idle", "↩"],
  "event-left": ["idle", "−"],
  "event-deferred": ["warn", "»"],
  "event-postponed": ["warn", "»"],
  "promise-broken": ["danger", "✕"],
  "unannounced-impact": ["danger", "!"],
  "notice-late": ["warn", "◔"],
  "notice-never": ["danger", "○"],
  "hold-set": ["warn", "■"],
  "hold-released": ["calm", "▶"],
  "hold-refused": ["warn", "■"],
  "rollout-begun": ["info", "▶"],
  "rollout-paused": ["warn", "‖"],
  "rollout-resumed": ["info", "▶"],
  "rollout-aborted": ["warn", "⊘"],
  "rollout-done": ["calm", "✓"],
  "rehearsal-begun": ["info", "▶"],
  "rehearsal-faults": ["warn", "⚠"],
  "rehearsal-ended": ["calm", "■"],
  "step-begun": ["info", "▸"],
  "step-unknown": ["warn", "?"],
  "step-done": ["calm", "✓"],
  "step-failed": ["danger", "✕"],
  "machine-added": ["idle", "+"],
  "machine-changed": ["idle", "≠"],
  "machine-moved": ["move", "➜"],
  "machine-removed": ["idle", "−"],
  "group-added": ["idle", "+"],
  "group-changed": ["idle", "≠"],
  "group-removed": ["idle", "−"],
  "group-enabled": ["calm", "●"],
  "group-disabled": ["idle", "○"],
  "host-added": ["idle", "+"],
  "host-changed": ["idle", "≠"],
  "host-removed": ["idle", "−"],
  "host-lost": ["danger", "?"],
  "host-unreachable": ["warn", "✕"],
  "host-reachable": ["calm", "✓"],
  "host-fenced": ["warn", "✓"],
  "impostor-refused": ["warn", "■"],
  "project-added": ["idle", "+"],
  "project-changed": ["idle", "≠"],
  "project-removed": ["idle", "−"],
  "fleet-applied": ["idle", "≡"],
  "clock-jumped": ["warn", "⚠"],
  "clock-advanced": ["idle", "↷"],
  "service-away": ["warn", "⚠"],
  "history-pruned": ["idle", "−"],
  "webhook-added": ["idle", "+"],
  "webhook-removed": ["idle", "−"],
  "webhook-failing": ["danger", "✕"],
  "webhook-recovered": ["calm", "✓"],
  "token-created": ["idle", "+"],
  "token-revoked": ["idle", "−"],
};

const KINDS = /** @type {Kind[]} */ (Object.keys(LOOKS));

/** @typedef {{ name: string, label: string, kinds: Kind[] }} Family */

/** Kinds grouped for the filter. The fleet's kinds are changes to its declaration. @type {readonly Family[]} */
export const FAMILIES = [
  family("events", "Events", "event"),
  family("orders", "Orders", "order"),
  family("promises", "Promises", "promise", "notice", "unannounced"),
  family("rollouts", "Rollouts", "rollout"),
  family("holds", "Holds", "hold"),
  family("steps", "Steps", "step"),
  family("fleet", "Fleet", "fleet", "machine", "group", "host", "project"),
  family("service", "Service", "service", "clock", "history", "rehearsal"),
  family("access", "Access and webhooks", "token", "webhook"),
];

/**
 * @param {string} name
 * @param {string} label
 * @param {...string} firstWords
 * @returns {Family}
 */
function family(name, label, ...firstWords) {
  return { name, label, kinds: KINDS.filter((kind) => firstWords.includes(kind.split("-")[0] ?? "")) };
}

/**
 * Return the appearance of a record. Kinds of a newer server are shown, too.
 *
 * @param {string} kind
 * @returns {Appearance}
 */
export function kindAppearance(kind) {
  const [tone, glyph] = LOOKS[/** @type {Kind} */ (kind)] ?? /** @type {const} */ (["idle", "·"]);
  return { tone, glyph, label: kindWords(kind) };
}

/** @param {string} kind */
const kindWords = (kind) => (kind === "event-scheduled" ? "event announced" : kind.replaceAll("-", " "));
