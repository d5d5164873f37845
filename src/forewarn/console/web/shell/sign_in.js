/** The form to sign in with a token. */

import { messageOf } from "../page/formatting.js";
import { define, LiveElement } from "../page/live_element.js";
import { h } from "../page/tree.js";
import { session } from "./session.js";

class SignIn extends LiveElement {
  #trouble = "";
  #isBusy = false;

  drawn() {
    return h(
      "main",
      { class: "sign-in" },
      h(
        "form",
        { class: "card", onsubmit: (/** @type {SubmitEvent} */ submit) => this.#submit(submit) },
        h("h1", null, "Sign in to forewarn"),
        session.hasEnded &&
          h(
            "p",
            { class: "notice", "data-tone": "warn", role: "status" },
            session.hasBegunToAsk
              ? "This server now requires a token. Ask its operator for one."
              : "Your session has ended, or your token was revoked. Sign in again.",
          ),
        h(
          "div",
          { class: "field" },
          h("label", { for: "token" }, "Token"),
          h("input", {
            id: "token",
            name: "token",
            type: "password",
            required: true,
            autocomplete: "current-password",
            spellcheck: "false",
            "aria-describedby": "token-hint",
          }),
          h("span", { class: "hint", id: "token-hint" }, "Starts with fw_. An operator creates tokens:"),
          h("code", { class: "small" }, "forewarn token create --name NAME --role viewer"),
        ),
        this.#trouble && h("p", { class: "notice", "data-tone": "danger", role: "alert" }, this.#trouble),
        h("button", { class: "primary", disabled: this.#isBusy }, this.#isBusy ? "Signing in …" : "Sign in"),
      ),
    );
  }

  connectedCallback() {
    super.connectedCallback();
    this.querySelector("input")?.focus();
  }

  /** @param {SubmitEvent} submit */
  async #submit(submit) {
    submit.preventDefault();
    const form = /** @type {HTMLFormElement} */ (submit.currentTarget ?? submit.target);
    const token = String(new FormData(form).get("token") ?? "").trim();
    this.#isBusy = true;
    this.#trouble = "";
    this.redraw();
    try {
      await session.signIn(token);
    } catch (error) {
      this.#trouble = messageOf(error);
    }
    this.#isBusy = false;
    this.redraw();
  }
}

define("fw-sign-in", SignIn);
