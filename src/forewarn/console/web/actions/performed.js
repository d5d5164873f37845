/** Sends actions to the server, and lists this tab's actions with the equivalent commands. */

import { eventLink, orderLink } from "../elements/links.js";
import { shellText } from "../elements/command_text.js";
import { api } from "../service/connected.js";

/** @typedef {import("../types").Child} Child */
/** @typedef {{ number: number, at: number, command: string, outcome: Child, isGood: boolean, isQuiet: boolean }} Done */

// The order's view lists all of them.
const EVENTS_NAMED = 3;

/** Fires `done` after an action, and after a refusal that no dialog shows. */
class Performed extends EventTarget {
  /** The newest first. @type {Done[]} */
  list = [];
  #number = 0;

  /**
   * Run an action and return the answer. Throws the server's refusal.
   *
   * @template S
   * @param {import("./verb.js").Verb<S>} verb
   * @param {S} subject
   * @param {import("./verb.js").Values} values
   * @param {{ key: string, tag?: string, isQuiet?: boolean }} how  `tag`: the ETag of the values to change
   */
  async perform(verb, subject, values, { key, tag = "", isQuiet = false }) {
    const request = verb.request(subject, values);
    const answer = await api.send(tag ? { ...request, headers: { "If-Match": tag } } : request, key);
    verb.after?.(answer);
    const outcome = verb.outcome?.(answer, subject) ?? ordered(verb.doing(subject), answer);
    this.#add({
      command: shellText(["forewarn", ...verb.command(subject, values)]),
      outcome,
      isGood: true,
      isQuiet,
    });
    return answer;
  }

  /**
   * Report a refusal that nothing else in the console shows.
   *
   * @param {string} command
   * @param {string} why
   */
  refused(command, why) {
    this.#add({ command, outcome: why, isGood: false, isQuiet: false });
  }

  /** @param {Omit<Done, "number" | "at">} done */
  #add(done) {
    this.list = [{ ...done, number: ++this.#number, at: Date.now() }, ...this.list];
    this.dispatchEvent(new Event("done"));
  }
}

/**
 * Describe the state of an order, with links to it and its events.
 *
 * @param {string} what
 * @param {any} answer
 * @returns {Child}
 */
function ordered(what, answer) {
  const order = answer?.order;
  if (!order) return `${what}: done.`;
  const why = answer.reason ?? order.waiting?.[0]?.reason;
  return [
    `${what}: order `,
    orderLink(order.id),
    ` is ${order.state}`,
    announced(answer.events ?? (answer.event ? [answer.event] : [])),
    why ? ` (${why})` : "",
  ];
}

/**
 * @param {{ id: string }[]} events
 * @returns {Child}
 */
function announced(events) {
  if (!events.length) return "";
  const links = events.slice(0, EVENTS_NAMED).map((event, at) => [at ? ", " : " ", eventLink(event.id)]);
  const more = events.length - EVENTS_NAMED;
  return [events.length === 1 ? ", event" : ", events", links, more > 0 ? ` and ${more} more` : ""];
}

export const performed = new Performed();
