/** Tokens with role, project, state and expiry. */

import { actionButtons } from "../../actions/action_buttons.js";
import { performed } from "../../actions/performed.js";
import { badge } from "../../elements/appearance.js";
import { asCommand } from "../../elements/as_command.js";
import { cell, stackingTable } from "../../elements/stacking_table.js";
import { time } from "../../elements/times.js";
import { count } from "../../page/formatting.js";
import { define } from "../../page/live_element.js";
import { h } from "../../page/tree.js";
import { View } from "../../page/view.js";
import { api, clock, copy } from "../../service/connected.js";
import { LiveAnswer } from "../../service/live_answer.js";

/** @typedef {import("../../types").Token} Token */

class TokensView extends View {
  /** @type {LiveAnswer<Token[]> | null} */
  #tokens = null;

  opened() {
    super.opened();
    const tokens = new LiveAnswer(
      () => api.all("/v1/tokens", "tokens"),
      (record) => record.topics.includes("tokens"),
      this.ended,
    );
    this.#tokens = tokens;
    this.watch(tokens, "changed");
    performed.addEventListener("done", () => tokens.again(), { signal: this.ended });
  }

  drawn() {
    const { value: tokens, trouble = "" } = this.#tokens ?? { value: null };
    const inForce = tokens?.filter((token) => standing(token) === IN_FORCE) ?? [];
    const over = tokens?.filter((token) => standing(token) !== IN_FORCE) ?? [];
    return [
      h("div", { class: "row", key: "head" }, h("h1", null, "Tokens"), actionButtons("tokens", null)),
      h(
        "p",
        { key: "about", class: "muted" },
        "A token gives a person or a program access as operator, user of a project or viewer. ",
        "The secret is shown once, when you create the token.",
      ),
      trouble && h("p", { class: "notice", "data-tone": "danger", role: "alert", key: "trouble" }, trouble),
      !tokens && !trouble && h("p", { class: "muted", role: "status", key: "reading" }, "Loading …"),
      tokens && !tokens.length && open(),
      inForce.length > 0 && tokenTable("Active tokens", inForce),
      over.length > 0 &&
        h(
          "details",
          { key: "over" },
          h("summary", null, `${count(over.length, "token")} revoked or expired`),
          tokenTable("Revoked and expired tokens", over),
        ),
      asCommand(["token", "list"]),
    ];
  }
}

const open = () =>
  h(
    "div",
    { class: "notice", "data-tone": "warn", key: "open" },
    h("strong", null, "This server is open."),
    h(
      "p",
      null,
      "Without a token, every process on the server's machine has operator access. ",
      "The first token must be an operator's. After that, every call needs a token, including this page. ",
      "Save the secret before you close its dialog.",
    ),
  );

/**
 * @param {string} name
 * @param {readonly Token[]} tokens
 */
const tokenTable = (name, tokens) =>
  stackingTable(name, ["Token", "Role", "Project", "State", "Created", "Expires", ""], tokens.map(row), {
    isCard: true,
  });

/** @param {Token} token */
const row = (token) =>
  h(
    "tr",
    { key: `${token.name} ${token.created_at}` },
    cell("Token", [
      h("span", { class: "name" }, token.name),
      token.name === copy.caller?.name && !token.revoked_at
        ? h("span", { class: "small muted" }, " (you)")
        : null,
    ]),
    cell("Role", token.role),
    cell("Project", token.project),
    cell("State", badge(standing(token))),
    cell("Created", [
      time(token.created_at),
      h("div", { class: "small muted" }, "by ", h("span", { class: "name" }, token.created_by)),
    ]),
    cell("Expires", token.expires_at ? time(token.expires_at) : "never"),
    cell("", actionButtons("token", token)),
  );

/** @typedef {import("../../elements/appearance.js").Appearance} Appearance */

const IN_FORCE = /** @type {Appearance} */ ({ tone: "calm", glyph: "✓", label: "active" });
const EXPIRED = /** @type {Appearance} */ ({ tone: "idle", glyph: "○", label: "expired" });
const REVOKED = /** @type {Appearance} */ ({ tone: "idle", glyph: "✕", label: "revoked" });

/** @param {Token} token */
function standing(token) {
  if (token.revoked_at) return REVOKED;
  const isOver = token.expires_at !== null && Date.parse(token.expires_at) <= clock.now();
  return isOver ? EXPIRED : IN_FORCE;
}

define("fw-tokens-view", TokensView);
