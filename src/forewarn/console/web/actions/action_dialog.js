/** The question before anything is done: what it touches, what may be said about it, and the command for it. */

import { linkedIds } from "../elements/links.js";
import { commandText } from "../elements/command_text.js";
import { messageOf } from "../page/formatting.js";
import { define, LiveElement } from "../page/live_element.js";
import { router } from "../page/router.js";
import { h } from "../page/tree.js";
import { randomKey, Refusal } from "../service/operator_api.js";
import { fieldRow } from "./action_fields.js";
import { differenceList } from "./difference_list.js";
import { performed } from "./performed.js";
import { wrong } from "./verb.js";

/** @typedef {import("./verb.js").Verb<any>} AnyVerb */
/** @typedef {import("./verb.js").Values} Values */
/** @typedef {import("./verb.js").Touched} Touched */

/**
 * Ask before something is done, and do it.
 *
 * @param {AnyVerb} verb
 * @param {any} subject
 */
export function ask(verb, subject) {
  if (document.querySelector("fw-action-dialog")) return;
  const dialog = /** @type {ActionDialog} */ (document.createElement("fw-action-dialog"));
  dialog.verb = verb;
  dialog.subject = subject;
  document.body.append(dialog);
}

class ActionDialog extends LiveElement {
  /** @type {AnyVerb} */
  verb = /** @type {any} */ (null);
  /** @type {any} */
  subject = null;

  /** @type {import("./verb.js").Field[]} */
  #fields = [];
  /** @type {Values} */
  #values = {};
  #typed = "";
  /** @type {Touched | null | undefined}  undefined: it is being looked for */
  #touched = undefined;
  #trouble = "";
  /** The address of the existing thing with the same name. */
  #existing = "";
  /** The ETag of the values that the form was filled with. */
  #tag = "";
  #isLoading = false;
  /** The changes that another person has made since the form was filled. @type {import("./verb.js").Difference[]} */
  #meanwhile = [];
  /** The outcome, once there is one. @type {import("../types").Child} */
  #shown = null;
  #isBusy = false;
  #isTried = false;
  // The same call is done once, however often it is sent: after a lost answer it has the same key.
  #key = randomKey();
  #sent = "";

  opened() {
    this.#isLoading = Boolean(this.verb.load);
    if (this.#isLoading) this.#load();
    else this.#fill();
    this.#look();
  }

  #fill() {
    this.#fields = this.verb.fields?.(this.subject) ?? [];
    this.#values = initialValues(this.#fields);
  }

  connectedCallback() {
    super.connectedCallback();
    const dialog = this.querySelector("dialog");
    dialog?.showModal();
    this.#focusFirst();
  }

  #focusFirst() {
    const first = this.verb.hurts ? null : this.querySelector("form input, form select, form textarea");
    /** @type {HTMLElement | null} */ (first ?? this.querySelector("button.safe"))?.focus();
  }

  /** Whether the end of the session leaves it open: it shows a secret, or waits for one. */
  get staysOpen() {
    return Boolean(this.#shown) || (this.#isBusy && Boolean(this.verb.shown));
  }

  drawn() {
    if (this.#shown) return this.#outcome();
    const { verb, subject } = this;
    const asked = this.#asked();
    const rare = asked.filter((field) => field.isRare);
    return h(
      "dialog",
      {
        class: "action-dialog",
        "aria-labelledby": "action-question",
        "aria-describedby": "action-about",
        "aria-busy": this.#isBusy || this.#isLoading ? "true" : null,
        oncancel: (/** @type {Event} */ cancel) => this.#isBusy && cancel.preventDefault(),
        onclose: () => this.remove(),
      },
      h(
        "form",
        { class: "stack", novalidate: true, onsubmit: (/** @type {Event} */ submit) => this.#submit(submit) },
        h("h2", { id: "action-question", class: "name" }, verb.question(subject)),
        h("p", { id: "action-about" }, verb.about),
        this.#touches(),
        this.#isLoading &&
          h("p", { class: "muted", role: "status", key: "loading" }, "Reading the present values …"),
        asked.filter((field) => !field.isRare).map((field) => this.#field(field)),
        rare.length
          ? h(
              "details",
              { class: "more-fields" },
              h("summary", null, "More"),
              h(
                "div",
                { class: "stack" },
                rare.map((field) => this.#field(field)),
              ),
            )
          : null,
        this.#confirmation(),
        this.#differences(),
        h(
          "div",
          { class: "as-command", key: "command" },
          h("span", { class: "small muted" }, "As a command"),
          this.#command(),
        ),
        this.#changedMeanwhile(),
        this.#trouble &&
          h(
            "p",
            { class: "notice", "data-tone": "danger", role: "alert", key: "trouble" },
            linkedIds(this.#trouble),
            this.#existing && [
              " ",
              h("a", { href: this.#existing, onclick: () => this.#close() }, "Show the existing one"),
            ],
          ),
        h(
          "div",
          { class: "row dialog-buttons", key: "buttons" },
          h(
            "button",
            { type: "button", class: "safe", disabled: this.#isBusy, onclick: () => this.#close() },
            "Do nothing",
          ),
          h(
            "button",
            {
              type: "submit",
              class: verb.hurts ? "dangerous primary" : "primary",
              // Nothing is agreed to before it is said, nor moves away under a pointer that is pressing it.
              disabled: this.#isLooking || this.#isLoading,
              "aria-disabled": this.#isBusy || !this.#isConfirmed() || this.#isUnchanged ? "true" : null,
            },
            this.#isBusy ? "At it …" : verb.doing(subject),
          ),
        ),
      ),
    );
  }

  #differences() {
    if (!this.verb.differences || this.#isLoading) return null;
    return differenceList("What changes", this.verb.differences(this.subject, this.#said()));
  }

  #changedMeanwhile() {
    if (!this.#meanwhile.length) return null;
    return h(
      "div",
      { class: "notice stack", "data-tone": "warn", role: "alert", key: "meanwhile" },
      h(
        "p",
        null,
        "Nothing is saved: another person has changed this since you opened it. What you typed is kept. ",
        "Check what changes, then save again.",
      ),
      differenceList("Changed meanwhile", this.#meanwhile),
    );
  }

  /** Whether saving would change nothing. */
  get #isUnchanged() {
    return this.verb.differences?.(this.subject, this.#said()).length === 0;
  }

  #asked() {
    return this.#fields.filter((field) => field.when?.(this.#values) ?? true);
  }

  /** It stays until it is closed: a secret is shown once. */
  #outcome() {
    return h(
      "dialog",
      {
        class: "action-dialog",
        "aria-labelledby": "action-question",
        "aria-describedby": "action-about",
        oncancel: (/** @type {Event} */ cancel) => cancel.preventDefault(),
        onclose: () => this.remove(),
      },
      h(
        "div",
        { class: "stack", key: "outcome" },
        this.#shown,
        h(
          "div",
          { class: "row dialog-buttons" },
          h("button", { type: "button", class: "primary", onclick: () => this.#close() }, "Close"),
        ),
      ),
    );
  }

  #command() {
    return commandText(this.verb.command(this.subject, this.#said()));
  }

  /** What was typed and is asked; spaces at the ends mean nothing. */
  #said() {
    return Object.fromEntries(
      this.#asked().map((field) => [field.name, (this.#values[field.name] ?? "").trim()]),
    );
  }

  get #isLooking() {
    return Boolean(this.verb.touches) && this.#touched === undefined;
  }

  #touches() {
    if (!this.verb.touches) return null;
    if (this.#touched === undefined)
      return h("p", { class: "muted touched", role: "status" }, "Looking what it touches …");
    if (!this.#touched) return null;
    const { summary, names = [] } = this.#touched;
    return h(
      "div",
      { class: "touched notice", key: "touched", "data-tone": this.verb.hurts ? "warn" : "info" },
      h("p", null, summary),
      names.length
        ? h(
            "ul",
            { class: "touched-names", tabindex: names.length > 30 ? "0" : null, "aria-label": "Touches" },
            names.map((name, at) => h("li", { key: at, class: "name" }, name)),
          )
        : null,
    );
  }

  /** @param {import("./verb.js").Field} field */
  #field(field) {
    const value = this.#values[field.name] ?? "";
    return fieldRow(field, value, this.#isTried ? wrong(field, value) : "", (typed) => {
      this.#values = { ...this.#values, [field.name]: typed };
      this.redraw();
    });
  }

  #confirmation() {
    const typed = this.#toType();
    if (typed === null) return null;
    return h(
      "div",
      { class: "field", key: "typed" },
      h("label", { for: "action-typed" }, "Type ", h("strong", { class: "name" }, typed), " to confirm"),
      h("input", {
        id: "action-typed",
        autocomplete: "off",
        spellcheck: "false",
        ".value": this.#typed,
        oninput: (/** @type {any} */ input) => {
          this.#typed = input.target.value;
          this.redraw();
        },
      }),
    );
  }

  #toType() {
    return this.verb.typed?.(this.subject, this.#said()) ?? null;
  }

  #isConfirmed() {
    const typed = this.#toType();
    return typed === null || this.#typed.trim() === typed;
  }

  async #look() {
    try {
      this.#touched = (await this.verb.touches?.(this.subject)) ?? null;
    } catch (error) {
      this.#touched = {
        summary: `What it touches cannot be read: ${messageOf(error)}`,
      };
    }
    this.redraw();
  }

  async #load() {
    try {
      const { subject, tag } = (await this.verb.load?.(this.subject)) ?? { subject: this.subject, tag: "" };
      this.subject = subject;
      this.#tag = tag;
      this.#fill();
      this.#isLoading = false;
      this.redraw();
      requestAnimationFrame(() => this.isConnected && this.#focusFirst());
    } catch (error) {
      this.#trouble = `The present values cannot be read: ${messageOf(error)}`;
      this.redraw();
    }
  }

  /** Fill the form with the values as they are by now, and keep what was typed. */
  async #loadAgain() {
    const before = { subject: this.subject, fields: this.#fields, values: this.#values };
    const loaded = await this.verb.load?.(this.subject);
    if (!loaded) return;
    this.subject = loaded.subject;
    this.#tag = loaded.tag;
    this.#fill();
    this.#meanwhile = this.verb.differences?.(before.subject, this.#values) ?? [];
    const initial = initialValues(before.fields);
    for (const { name } of this.#fields) {
      const typed = before.values[name];
      if (typed !== undefined && typed !== initial[name]) this.#values = { ...this.#values, [name]: typed };
    }
  }

  /** @param {Event} submit */
  async #submit(submit) {
    submit.preventDefault();
    if (this.#isBusy || this.#isLoading || this.#isUnchanged) return;
    this.#isTried = true;
    const bad = this.#asked().find((field) => wrong(field, this.#values[field.name] ?? ""));
    if (bad || !this.#isConfirmed()) {
      this.redraw();
      const missing = bad ? `[name="${bad.name}"]` : "#action-typed";
      requestAnimationFrame(() => /** @type {HTMLElement | null} */ (this.querySelector(missing))?.focus());
      return;
    }
    await this.#do(this.#said());
  }

  /** @param {Values} said */
  async #do(said) {
    const sent = JSON.stringify(said);
    if (this.#sent && this.#sent !== sent) this.#key = randomKey();
    this.#sent = sent;
    this.#isBusy = true;
    this.#trouble = this.#existing = "";
    this.#meanwhile = [];
    this.redraw();
    try {
      const how = { key: this.#key, tag: this.#tag, isQuiet: this.verb.isQuiet };
      const answer = await performed.perform(this.verb, this.subject, said, how);
      this.#shown = this.verb.shown?.(answer, this.subject) ?? null;
      if (this.#shown) requestAnimationFrame(() => this.querySelector("button")?.focus());
      else this.#close();
      if (this.verb.leadsTo) router.go(this.verb.leadsTo(answer));
    } catch (error) {
      await this.#failed(error, said);
    }
    this.#isBusy = false;
    this.redraw();
    requestAnimationFrame(() => this.querySelector("[role=alert]")?.scrollIntoView({ block: "nearest" }));
  }

  /**
   * @param {unknown} error
   * @param {Values} said
   */
  async #failed(error, said) {
    const code = error instanceof Refusal ? error.code : "";
    if (code === "Changed" && this.verb.load) {
      try {
        await this.#loadAgain();
        if (this.#meanwhile.length) return;
      } catch {
        // It is gone: the refusal says so.
      }
    }
    if (code === "AlreadyExists") this.#existing = this.verb.existing?.(said) ?? "";
    const message = messageOf(error);
    this.#trouble = error instanceof Refusal ? `${message} (${error.status} ${code})` : message;
  }

  #close() {
    // The browser gives focus back to what had it before.
    this.querySelector("dialog")?.close();
    this.remove();
  }
}

/**
 * @param {readonly import("./verb.js").Field[]} fields
 * @returns {Values}
 */
const initialValues = (fields) =>
  Object.fromEntries(
    fields.map((field) => [field.name, field.value ?? Object.keys(field.choices ?? {})[0] ?? ""]),
  );

define("fw-action-dialog", ActionDialog);
