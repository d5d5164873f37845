/** What somebody sees who opens the console before there is a fleet. */

import { commandText, copyButton, serverText } from "../../elements/command_text.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

const SAMPLE = `[groups.web]
kind = "availability-set"
update-domains = 2

[defaults]
driver = "simulated"          # nothing is really done

[hosts.host-1]
[hosts.host-2]

[[machines]]
name = "web-0"
group = "web"
host = "host-1"
update-domain = 0
address = "127.0.0.11"

[[machines]]
name = "web-1"
group = "web"
host = "host-2"
update-domain = 1
address = "127.0.0.12"`;

export function emptyFleet() {
  if (!copy.may("run")) {
    return h(
      "div",
      { class: "empty" },
      h("h2", null, "There is no machine yet"),
      h("p", null, "An operator declares the fleet; its machines appear here as soon as that is done."),
    );
  }
  return h(
    "div",
    { class: "empty" },
    h("h2", null, "Welcome: there is no machine yet"),
    h(
      "p",
      null,
      "Tell forewarn which machines there are, on which hosts, and which groups are told of events. They appear here at once.",
    ),
    h(
      "ol",
      { class: "first-steps" },
      h(
        "li",
        null,
        h("p", null, "Write a fleet file, say ", h("code", null, "fleet.toml"), ":"),
        h("pre", null, SAMPLE),
        h("div", null, copyButton(`${SAMPLE}\n`, "Copy the file")),
      ),
      h(
        "li",
        null,
        h("p", null, "See what it would change, then apply it:"),
        serverText(),
        commandText(["fleet", "apply", "fleet.toml", "--dry-run"]),
        commandText(["fleet", "apply", "fleet.toml"]),
      ),
    ),
    h("p", null, "Or take over what libvirt or OpenStack has; the difference is shown first:"),
    commandText(["fleet", "import", "--from", "libvirt", "--host", "NAME=URI", "--dry-run"]),
    commandText(["fleet", "import", "--from", "openstack", "--dry-run"]),
    h(
      "p",
      { class: "muted small" },
      "Hosts, groups and machines can also be added one at a time, here or with `forewarn host put`, `group put` and `machine put`. All that a fleet file may say stands in docs/reference/fleet-file.md; docs/get-started.md leads through a first maintenance.",
    ),
  );
}
