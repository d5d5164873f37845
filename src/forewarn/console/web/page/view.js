import { LiveElement } from "./live_element.js";
import { router } from "./router.js";

/** A view: an element that a route shows, with the names in its address. */
export class View extends LiveElement {
  /** What stands in braces in the route's path. @type {{ [name: string]: string }} */
  names = {};

  /** What the address says after the question mark. */
  get query() {
    return router.query;
  }

  opened() {
    this.watch(router, "query");
  }
}
