/** Banners above every view: the server is unreachable, or it has a newer console. */

import { define, LiveElement } from "../page/live_element.js";
import { h } from "../page/tree.js";
import { time } from "../elements/times.js";
import { clock, copy, stream } from "../service/connected.js";

// A shorter interruption is not reported.
const BEFORE_TOLD = 1000;

class LinkBanner extends LiveElement {
  #isTold = false;
  #timer = 0;
  /** When the view was last up to date. */
  #liveUntil = "";
  #isOutdated = false;
  #isCompared = false;

  opened() {
    copy.addEventListener("link", () => this.#look(), { signal: this.ended });
    copy.addEventListener("loaded", () => this.#compare(), { signal: this.ended });
    this.ended.addEventListener("abort", () => clearTimeout(this.#timer));
    this.#look();
  }

  drawn() {
    return [
      h(
        "div",
        { key: "link", role: "status" },
        this.#isTold &&
          h(
            "div",
            { class: "banner", "data-tone": "danger" },
            h("strong", null, "Reconnecting …"),
            h("span", null, `${sentence(copy.trouble || stream.trouble || "the server does not respond")}.`),
            copy.isLoaded &&
              h("span", null, "The view may be out of date (last update: ", time(this.#liveUntil), ")."),
          ),
      ),
      this.#isOutdated &&
        h(
          "div",
          { key: "outdated", class: "banner", "data-tone": "info", role: "status" },
          h("span", null, "The server has a newer version of the console."),
          h("button", { type: "button", onclick: () => location.reload() }, "Reload"),
        ),
    ];
  }

  #look() {
    if (copy.link !== "lost") {
      clearTimeout(this.#timer);
      this.#timer = 0;
      this.#isTold = false;
    } else if (!this.#timer) {
      this.#liveUntil = new Date(clock.now()).toISOString();
      this.#timer = setTimeout(() => {
        this.#isTold = true;
        this.redraw();
      }, BEFORE_TOLD);
    }
    this.redraw();
  }

  /** Check whether the server still has the files of this console. */
  async #compare() {
    // On the first load the console is new.
    if (!this.#isCompared) {
      this.#isCompared = true;
      return;
    }
    const own = document.querySelector("script[type=module]")?.getAttribute("src") ?? "";
    const page = await fetch("/console/", { cache: "no-store" }).catch(() => null);
    if (!page?.ok) return;
    const isSame = (await page.text()).includes(own);
    if (isSame === this.#isOutdated) {
      this.#isOutdated = !isSame;
      this.redraw();
    }
  }
}

/** @param {string} text */
const sentence = (text) => text.charAt(0).toUpperCase() + text.slice(1);

define("fw-link-banner", LinkBanner);
