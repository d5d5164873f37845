/**
 * How states look: a tone (colour), a glyph (shape) and a label, so that colour is never the only sign.
 * The types reject a new state of the API until this file has an entry for it.
 */

import { h } from "../page/tree.js";

/** @typedef {import("../types").Machine} Machine */
/** @typedef {import("../types").ListedEvent} ListedEvent */
/** Red (`danger`) is only for failures and broken promises. @typedef {"calm" | "warn" | "danger" | "info" | "restart" | "move" | "idle"} Tone */
/** @typedef {{ tone: Tone, glyph: string, label: string }} Appearance */
/**
 * The states of orders, stages, steps, rollouts and waves. `aborting` is not a state of the API.
 *
 * @typedef {import("../types").Schemas["OrderState" | "StageState" | "StepState" | "RolloutState" | "WaveState"] | "aborting"} WorkState
 */

/** @type {{ [S in import("../types").MachineState]: Appearance }} */
const MACHINES = {
  running: { tone: "calm", glyph: "●", label: "running" },
  frozen: { tone: "info", glyph: "❄", label: "frozen" },
  restarting: { tone: "restart", glyph: "↻", label: "restarting" },
  moving: { tone: "move", glyph: "➜", label: "moving" },
  stopped: { tone: "idle", glyph: "■", label: "stopped" },
};

/** @type {Appearance} */
const ANNOUNCED = { tone: "warn", glyph: "▲", label: "announced" };
/** @type {Appearance} */
const APPROVED = { tone: "warn", glyph: "✓", label: "approved" };
/** @type {Appearance} */
const STARTED = { tone: "info", glyph: "◆", label: "started" };

/** The appearances of machines, in the order of the legend. */
export const MACHINE_LOOKS = [
  MACHINES.running,
  ANNOUNCED,
  APPROVED,
  STARTED,
  MACHINES.frozen,
  MACHINES.restarting,
  MACHINES.moving,
  MACHINES.stopped,
];

/** @type {{ [S in import("../types").Schemas["HostState"]]: Appearance }} */
const HOSTS = {
  ok: { tone: "calm", glyph: "●", label: "ok" },
  cordoned: { tone: "idle", glyph: "⊘", label: "cordoned" },
  degraded: { tone: "warn", glyph: "◐", label: "degraded" },
  failed: { tone: "danger", glyph: "✕", label: "failed" },
  lost: { tone: "danger", glyph: "?", label: "lost" },
};

/** @type {{ [S in WorkState]: Appearance }} */
const WORK = {
  queued: { tone: "idle", glyph: "…", label: "queued" },
  planned: { tone: "idle", glyph: "…", label: "planned" },
  waiting: { tone: "idle", glyph: "…", label: "waiting" },
  announced: { tone: "warn", glyph: "▲", label: "announced" },
  started: { tone: "info", glyph: "◆", label: "started" },
  running: { tone: "info", glyph: "◆", label: "running" },
  paused: { tone: "warn", glyph: "‖", label: "paused" },
  checking: { tone: "info", glyph: "◇", label: "checking" },
  done: { tone: "calm", glyph: "✓", label: "done" },
  failed: { tone: "danger", glyph: "✕", label: "failed" },
  cancelled: { tone: "idle", glyph: "⊘", label: "cancelled" },
  aborting: { tone: "warn", glyph: "◆", label: "aborting" },
  aborted: { tone: "idle", glyph: "⊘", label: "aborted" },
  moot: { tone: "idle", glyph: "⊘", label: "moot" },
};

/**
 * Return the appearance of a machine, given the events that name it.
 *
 * @param {Machine} machine
 * @param {readonly ListedEvent[]} events
 * @returns {Appearance}
 */
export function machineAppearance(machine, events) {
  if (machine.state !== "running") return MACHINES[machine.state] ?? unknown(machine.state);
  const event = shownEvent(events);
  return event ? eventAppearance(event) : MACHINES.running;
}

/**
 * Choose the event that a machine shows: a started event comes before an announced one.
 *
 * @param {readonly ListedEvent[]} events
 */
export const shownEvent = (events) => events.find((each) => each.status === "Started") ?? events[0];

/**
 * @param {{ status: string, approved: boolean }} event
 * @returns {Appearance}
 */
export function eventAppearance(event) {
  if (event.status === "Started") return STARTED;
  if (event.status === "Scheduled") return event.approved ? APPROVED : ANNOUNCED;
  return { tone: "idle", glyph: "○", label: event.status.toLowerCase() };
}

/** @param {import("../types").Schemas["HostState"]} state */
export const hostAppearance = (state) => HOSTS[state] ?? unknown(state);

/**
 * Draw the state of a host. An unreachable host is not shown as ok.
 *
 * @param {import("../types").Host} host
 */
export const hostBadges = (host) => [
  (host.state !== "ok" || host.reachable !== false) && badge(hostAppearance(host.state)),
  host.reachable === false && badge({ tone: "warn", glyph: "?", label: "unreachable" }),
];

/**
 * Return the appearance of an order, a stage, a step, a rollout or a wave.
 *
 * @param {WorkState} state
 */
export const workAppearance = (state) => WORK[state] ?? unknown(state);

/**
 * A newer server may have states that this console does not know.
 *
 * @param {string} state
 * @returns {Appearance}
 */
const unknown = (state) => ({ tone: "idle", glyph: "○", label: state });

/**
 * Draw a state as a badge.
 *
 * @param {Appearance} appearance
 * @param {string} [label]
 */
export function badge(appearance, label = appearance.label) {
  return h(
    "span",
    { class: "badge", "data-tone": appearance.tone },
    h("span", { "aria-hidden": "true" }, appearance.glyph),
    label,
  );
}
