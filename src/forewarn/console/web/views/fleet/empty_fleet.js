/** The fleet view of a server without a fleet: the first steps. */

import { commandText, copyButton, serverText } from "../../elements/command_text.js";
import { h } from "../../page/tree.js";
import { copy } from "../../service/connected.js";

const SAMPLE = `[groups.web]
kind = "availability-set"
update-domains = 2

[defaults]
driver = "simulated"          # changes no real machine

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
      h("h2", null, "No machines yet"),
      h("p", null, "The machines appear here as soon as an operator declares the fleet."),
    );
  }
  return h(
    "div",
    { class: "empty" },
    h("h2", null, "Welcome: no machines yet"),
    h(
      "p",
      null,
      "Declare your machines, their hosts, and the groups that receive events. They appear here at once.",
    ),
    h(
      "ol",
      { class: "first-steps" },
      h(
        "li",
        null,
        h("p", null, "Write a fleet file, such as ", h("code", null, "fleet.toml"), ":"),
        h("pre", null, SAMPLE),
        h("div", null, copyButton(`${SAMPLE}\n`, "Copy the file")),
      ),
      h(
        "li",
        null,
        h("p", null, "Preview the changes, then apply the file:"),
        serverText(),
        commandText(["fleet", "apply", "fleet.toml", "--dry-run"]),
        commandText(["fleet", "apply", "fleet.toml"]),
      ),
    ),
    h(
      "p",
      null,
      "Or import a fleet from libvirt or OpenStack. With --dry-run, the command only shows the changes:",
    ),
    commandText(["fleet", "import", "--from", "libvirt", "--host", "NAME=URI", "--dry-run"]),
    commandText(["fleet", "import", "--from", "openstack", "--dry-run"]),
    h(
      "p",
      { class: "muted small" },
      "You can also add hosts, groups and machines one at a time, here or with `forewarn host put`, `group put` and `machine put`. docs/reference/fleet-file.md describes the fleet file. docs/get-started.md is a tutorial of a first maintenance.",
    ),
  );
}
