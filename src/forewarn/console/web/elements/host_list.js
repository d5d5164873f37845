/** The hosts of a wave in a line: the first ones, with the others folded. */

import { count } from "../page/formatting.js";
import { h } from "../page/tree.js";
import { hostLink } from "./links.js";

const MOST_NAMED = 3;
const FIRST_NAMED = 2;

/** @param {readonly string[]} hosts */
export function hostLine(hosts) {
  if (hosts.length <= MOST_NAMED) return links(hosts);
  return [
    ...links(hosts.slice(0, FIRST_NAMED)),
    h(
      "details",
      { class: "small", key: "more" },
      h("summary", null, `and ${count(hosts.length - FIRST_NAMED, "more", "more")}`),
      links(hosts.slice(FIRST_NAMED)),
    ),
  ];
}

/** @param {readonly string[]} hosts */
const links = (hosts) =>
  hosts.map((name, place) =>
    h("span", { class: "wave-host", key: name }, hostLink(name), place < hosts.length - 1 && ",\u00a0"),
  );
