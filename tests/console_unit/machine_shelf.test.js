import "./browser.js";
import { FakeApi, machine, record } from "./fleet.js";
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const { groupKey, hasText, MachineShelf } =
  await import("../../src/forewarn/console/web/service/machine_shelf.js");

const LARGE = 100_000;
let api = new FakeApi();
let shelf = new MachineShelf(/** @type {any} */ (api));

beforeEach(() => {
  api = new FakeApi();
  api.lists.machines = [
    machine("web-10"),
    machine("web-2"),
    machine("db-0", { group: "db", host: "host-2" }),
    machine("alone", { group: null, host: "host-2", bound_for: "host-1" }),
    machine("alone", { group: null, host: "host-3", project: "blue" }),
  ];
  shelf = new MachineShelf(/** @type {any} */ (api));
});

/** @param {Iterable<{ name: string }>} machines */
const names = (machines) => [...machines].map((each) => each.name);
/** @param {...any} records */
const take = async (...records) => {
  api.since();
  await shelf.take(
    records,
    (id) => (id === "E" ? ["web-2", "web-10"] : []),
    async () => 5,
  );
  return api.since();
};
/** @param {any} more */
const changed = (more) => record("any", ["machines"], more);

test("machines of a group are in natural order", async () => {
  await shelf.load(5);
  assert.deepEqual(names(shelf.ofGroup("web")), ["web-2", "web-10"]);
});

test("names are unique in a project, ignoring case", async () => {
  await shelf.load(5);
  assert.equal(shelf.get("blue", "Alone")?.host, "host-3");
  assert.equal(shelf.get("default", "ALONE")?.host, "host-2");
  assert.deepEqual(names(shelf.ofGroup(groupKey(null, "blue"))), ["alone"]);
});

test("machines are found by their host and by the host that they move to", async () => {
  await shelf.load(5);
  assert.deepEqual(names(shelf.onHost("host-1")), ["web-2", "web-10"]);
  assert.deepEqual(names(shelf.boundFor("host-1")), ["alone"]);
});

test("of a large fleet only wanted machines are read, and dropped on release", async () => {
  await shelf.load(LARGE);
  assert.equal(shelf.size, 0);
  await shelf.want({ group: "web" });
  await shelf.want({ group: "web" });
  await shelf.want({ host: "host-1" });
  assert.equal(shelf.size, 2);
  shelf.release({ group: "web" });
  shelf.release({ host: "host-1" });
  assert.equal(shelf.size, 2);
  shelf.release({ group: "web" });
  assert.equal(shelf.size, 0);
});

test("machines that are released during the read are not kept", async () => {
  await shelf.load(LARGE);
  const wanting = shelf.want({ group: "web" });
  shelf.release({ group: "web" });
  await wanting;
  assert.equal(shelf.size, 0);
  assert.equal(shelf.has({ group: "web" }), false);
});

test("a record makes the shelf read its machine again", async () => {
  await shelf.load(5);
  assert.deepEqual(await take(changed({ project: "default", machine: "web-2" })), [
    "/v1/machines?name=web-2",
  ]);
});

test("a machine of a large fleet outside of all views is not read", async () => {
  await shelf.load(LARGE);
  await shelf.want({ group: "web" });
  const other = { project: "default", machine: "db-0", group: "db" };
  const fresh = { project: "default", machine: "web-3", group: "web" };
  assert.deepEqual(await take(changed(other)), []);
  assert.deepEqual(await take(changed(fresh)), ["/v1/machines?name=web-3"]);
});

for (const [what, about, expected] of [
  ["the machines of an event", { event: "E", group: "web", project: "default" }, "web-2,web-10"],
  ["the members of a group", { group: "web", project: "default" }, "web-2,web-10"],
  ["the machines on a host and on their way to it", { host: "host-1" }, "web-2,web-10,alone"],
  ["the standalone machines of a project", { project: "blue" }, "alone"],
])
  test(`a record without a machine concerns ${what}`, async () => {
    await shelf.load(5);
    assert.deepEqual(await take(changed(about)), [`/v1/machines?${new URLSearchParams({ name: expected })}`]);
  });

test("a record without any subject concerns all machines", async () => {
  await shelf.load(5);
  assert.deepEqual(await take(changed({})), ["/v1/machines"]);
});

test("a change names its machines, and both groups of a regrouped one", async () => {
  await shelf.load(5);
  const announced = [];
  shelf.addEventListener("changed", (event) => announced.push(event.detail));
  api.lists.machines[1] = machine("web-2", { group: "db" });
  await take(
    changed({ project: "default", machine: "web-2" }),
    changed({ project: "default", machine: "web-10" }),
  );
  assert.deepEqual(announced, [{ keys: ["default/web-2"], groups: new Set(["web", "db"]) }]);
  assert.deepEqual(names(shelf.ofGroup("db")), ["db-0", "web-2"]);
});

test("a removed machine is dropped", async () => {
  await shelf.load(5);
  api.lists.machines.shift();
  await take(changed({ project: "default", machine: "web-10" }));
  assert.deepEqual(names(shelf.ofGroup("web")), ["web-2"]);
});

test("many machines are read two hundred at a time", async () => {
  api.lists.machines = Array.from({ length: 450 }, (_, number) => machine(`web-${number}`));
  await shelf.load(450);
  assert.equal((await take(changed({ group: "web", project: "default" }))).length, 3);
});

test("a search matches name and address, and the vm-id from four letters on", () => {
  const one = { name: "Web-2", address: "10.0.0.7", vm_id: "602D0A1B-1" };
  for (const text of ["web", "0.7", "602d"]) assert.ok(hasText(one, text), text);
  for (const text of ["602", "db"]) assert.ok(!hasText(one, text), text);
});
