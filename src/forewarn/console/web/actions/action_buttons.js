/** The buttons for what can be done with something: only those that would not be refused. */

/** @typedef {import("../page/tree.js").Child} Child */

/**
 * Describe the buttons for a thing.
 *
 * @param {"machine" | "host" | "event" | "order" | "rollout" | "hold"} noun
 * @param {any} subject
 * @returns {Child}
 */
export function actionButtons(noun, subject) {
  void noun;
  void subject;
  return null;
}
