/** The frame of all views: navigation, holds, clock, connection and caller. */

import "../actions/toasts.js";
import { define, LiveElement } from "../page/live_element.js";
import { address, ROOT, router } from "../page/router.js";
import { h } from "../page/tree.js";
import { copy } from "../service/connected.js";
import "./hold_bar.js";
import "./link_banner.js";
import { noAccess } from "./no_access.js";
import { sectionRoutes } from "./routes.js";
import { session } from "./session.js";
import "./sign_in.js";
import "./status_bar.js";
import "./zone_note.js";
import "./announcer.js";

class Shell extends LiveElement {
  opened() {
    this.watch(session, "changed");
    this.watch(copy, "loaded");
    router.addEventListener("moved", () => this.#moved(), { signal: this.ended });
  }

  drawn() {
    const place = router.place;
    document.title = `${place?.route.title ?? "Not found"} · forewarn`;
    if (session.state === "starting") return h("p", { class: "shell-wait", role: "status" }, "Connecting …");
    if (session.state === "signed-out") return h("fw-sign-in", null);
    return [
      h(
        "a",
        { class: "skip-link", href: "#main", onclick: (/** @type {Event} */ click) => this.#skip(click) },
        "Skip to content",
      ),
      h(
        "header",
        { class: "shell-header" },
        h("a", { class: "brand", href: address("/fleet") }, "forewarn"),
        h("nav", { "aria-label": "Views" }, this.#sections(place?.route.section)),
        h("fw-status-bar", null),
      ),
      h("fw-link-banner", null),
      h("fw-hold-bar", null),
      h("main", { id: "main", tabindex: "-1" }, this.#view(place)),
      copy.isLoaded && h("footer", { class: "shell-footer" }, h("fw-zone-note", null)),
      h("fw-announcer", null),
      h("fw-toasts", null),
    ];
  }

  /** @param {string | undefined} current */
  #sections(current) {
    return sectionRoutes().map((route) =>
      h(
        "a",
        {
          key: route.path,
          href: address(route.path),
          "aria-current": route.section === current ? "page" : null,
        },
        route.title,
      ),
    );
  }

  /** @param {typeof router.place} place */
  #view(place) {
    if (!place) {
      return h(
        "div",
        { class: "empty" },
        h("h1", null, "Page not found"),
        h("p", null, location.pathname, " is not an address of this console."),
        h("a", { href: ROOT + "/fleet" }, "Show the fleet"),
      );
    }
    if (!copy.isLoaded) {
      const why =
        copy.trouble || copy.link === "lost"
          ? `: ${copy.trouble || "the server does not respond"}. Retrying …`
          : " …";
      return h("p", { class: "shell-wait", role: "status" }, `Loading the fleet${why}`);
    }
    const { title, right } = /** @type {import("./routes.js").ConsoleRoute} */ (place.route);
    if (right && !copy.may(right)) return noAccess(title, right);
    return h(place.route.tag, {
      key: `${place.route.tag} ${JSON.stringify(place.names)}`,
      ".names": place.names,
    });
  }

  #moved() {
    this.redraw();
    // A new view starts at its top, for readers and screen readers.
    requestAnimationFrame(() => {
      scrollTo(0, 0);
      this.querySelector("main")?.focus({ preventScroll: true });
    });
  }

  /** @param {Event} click */
  #skip(click) {
    click.preventDefault();
    this.querySelector("main")?.focus();
  }
}

define("fw-shell", Shell);
