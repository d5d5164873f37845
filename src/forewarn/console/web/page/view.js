import { LiveElement } from "./live_element.js";
import { router } from "./router.js";

/** The element of a route, with the names in its address. */
export class View extends LiveElement {
  /** The values of the names in the route's path. @type {{ [name: string]: string }} */
  names = {};

  /** The query of the address. */
  get query() {
    return router.query;
  }

  opened() {
    this.watch(router, "query");
  }
}
