/** The dialog that confirms an action: it shows the affected machines, the fields and the equivalent command. */

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
import { problemWith } from "./verb.js";

/** @typedef {import("./verb.js").Verb<any>} AnyVerb */
/** @typedef {import("./verb.js").Values} Values */
/** @typedef {import("./verb.js").Touched} Touched */

/**
 * Open the dialog that confirms an action and runs it.
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
  /** undefined while the affected machines load. @type {Touched | null | undefined} */
  #touched = undefined;
  #trouble = "";
  /** The address of the existing thing with the same name. */
  #existing = "";
  /** The ETag of the values that the form was filled with. */
  #tag = "";
  #isLoading = false;
  /** Changes that another person saved after the form was filled. @type {import("./verb.js").Difference[]} */
  #meanwhile = [];
  /** The final content, after the action has run. @type {import("../types").Child} */
  #shown = null;
  #isBusy = false;
  #isTried = false;
  // A call that is sent again after a lost answer has the same idempotency key.
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

  /** Whether the dialog stays open when the session ends: it shows a secret, or waits for one. */
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
          h("p", { class: "muted", role: "status", key: "loading" }, "Loading the current values …"),
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
          h("span", { class: "small muted" }, "Equivalent command"),
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
              // Disabled until the affected machines are known. The button also must not move while it is pressed.
              disabled: this.#isLooking || this.#isLoading,
              "aria-disabled": this.#isBusy || !this.#isConfirmed() || this.#isUnchanged ? "true" : null,
            },
            this.#isBusy ? "Sending …" : verb.doing(subject),
          ),
        ),
      ),
    );
  }

  #differences() {
    if (!this.verb.differences || this.#isLoading) return null;
    return differenceList("Changes", this.verb.differences(this.subject, this.#entered()));
  }

  #changedMeanwhile() {
    if (!this.#meanwhile.length) return null;
    return h(
      "div",
      { class: "notice stack", "data-tone": "warn", role: "alert", key: "meanwhile" },
      h(
        "p",
        null,
        "Your change was not saved: another person changed these values after you opened the form. ",
        "Your entries are kept. Check the changes, then save again.",
      ),
      differenceList("Changed by another person", this.#meanwhile),
    );
  }

  /** Whether the form has no changes to save. */
  get #isUnchanged() {
    return this.verb.differences?.(this.subject, this.#entered()).length === 0;
  }

  #asked() {
    return this.#fields.filter((field) => field.when?.(this.#values) ?? true);
  }

  /** Draw the outcome. The dialog stays until it is closed: a secret is shown once. */
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
    return commandText(this.verb.command(this.subject, this.#entered()));
  }

  /** Return the entries of the visible fields, without spaces at their ends. */
  #entered() {
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
      return h("p", { class: "muted touched", role: "status" }, "Loading the affected machines …");
    if (!this.#touched) return null;
    const { summary, names = [] } = this.#touched;
    return h(
      "div",
      { class: "touched notice", key: "touched", "data-tone": this.verb.hurts ? "warn" : "info" },
      h("p", null, summary),
      names.length
        ? h(
            "ul",
            { class: "touched-names", tabindex: names.length > 30 ? "0" : null, "aria-label": "Affected" },
            names.map((name, at) => h("li", { key: at, class: "name" }, name)),
          )
        : null,
    );
  }

  /** @param {import("./verb.js").Field} field */
  #field(field) {
    const value = this.#values[field.name] ?? "";
    return fieldRow(field, value, this.#isTried ? problemWith(field, value) : "", (typed) => {
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
    return this.verb.typed?.(this.subject, this.#entered()) ?? null;
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
        summary: `The affected machines could not be loaded: ${messageOf(error)}`,
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
      this.#trouble = `The current values could not be loaded: ${messageOf(error)}. Close this dialog and try again.`;
      this.redraw();
    }
  }

  /** Fill the form with the current values, and keep what the user typed. */
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
    const bad = this.#asked().find((field) => problemWith(field, this.#values[field.name] ?? ""));
    if (bad || !this.#isConfirmed()) {
      this.redraw();
      const missing = bad ? `[name="${bad.name}"]` : "#action-typed";
      requestAnimationFrame(() => /** @type {HTMLElement | null} */ (this.querySelector(missing))?.focus());
      return;
    }
    await this.#run(this.#entered());
  }

  /** @param {Values} values */
  async #run(values) {
    const sent = JSON.stringify(values);
    if (this.#sent && this.#sent !== sent) this.#key = randomKey();
    this.#sent = sent;
    this.#isBusy = true;
    this.#trouble = this.#existing = "";
    this.#meanwhile = [];
    this.redraw();
    try {
      const how = { key: this.#key, tag: this.#tag, isQuiet: this.verb.isQuiet };
      const answer = await performed.perform(this.verb, this.subject, values, how);
      this.#shown = this.verb.shown?.(answer, this.subject) ?? null;
      if (this.#shown) requestAnimationFrame(() => this.querySelector("button")?.focus());
      else this.#close();
      if (this.verb.leadsTo) router.go(this.verb.leadsTo(answer));
    } catch (error) {
      await this.#failed(error, values);
    }
    this.#isBusy = false;
    this.redraw();
    requestAnimationFrame(() => this.querySelector("[role=alert]")?.scrollIntoView({ block: "nearest" }));
  }

  /**
   * @param {unknown} error
   * @param {Values} values
   */
  async #failed(error, values) {
    const code = error instanceof Refusal ? error.code : "";
    if (code === "Changed" && this.verb.load) {
      try {
        await this.#loadAgain();
        if (this.#meanwhile.length) return;
      } catch {
        // The thing was deleted. The message of the refusal says so.
      }
    }
    if (code === "AlreadyExists") this.#existing = this.verb.existing?.(values) ?? "";
    const message = messageOf(error);
    this.#trouble = error instanceof Refusal ? `${message} (${error.status} ${code})` : message;
  }

  #close() {
    // The browser returns the focus to the element that had it before.
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
