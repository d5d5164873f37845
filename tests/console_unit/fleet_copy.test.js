import { handTurned } from "./browser.js";
import { event, FakeApi, machine, record } from "./fleet.js";
import assert from "node:assert/strict";
import { test } from "node:test";

const { FleetCopy } = await import("../../src/forewarn/console/web/service/fleet_copy.js");

const EVERYTHING = ["/v1/overview"];

class FakeStream extends EventTarget {
  link = "live";
  start() {}
  stop() {}

  /** @param {...any} records */
  tell(...records) {
    this.dispatchEvent(new CustomEvent("records", { detail: records }));
  }
}

class FakeClock extends EventTarget {
  speed = 1;
  reads = 0;
  now = () => Date.parse("2026-01-05T12:00:00Z");
  take() {}
  async read() {
    this.reads += 1;
  }
}

/**
 * Make a loaded copy for a caller with these rights.
 *
 * @param {import("node:test").TestContext} t
 * @param {{ rights?: readonly string[], lists?: object }} [how]
 */
async function followed(t, { rights = ["see", "survey"], lists = {} } = {}) {
  const time = handTurned(t);
  const api = new FakeApi();
  api.lists.machines = [machine("web-0"), machine("web-1")];
  Object.assign(api.lists, lists);
  const stream = new FakeStream();
  const clock = new FakeClock();
  const copy = new FleetCopy(
    /** @type {any} */ (api),
    /** @type {any} */ (stream),
    /** @type {any} */ (clock),
  );
  copy.start(/** @type {any} */ ({ name: "anna", role: "operator", project: null, rights }));
  stream.dispatchEvent(new Event("gap"));
  await time.pass(50);
  const first = api.since();
  /** @param {...any} records */
  const tell = async (...records) => {
    stream.tell(...records);
    await time.pass(600);
    return api.since().filter((path) => path !== "/v1/summary");
  };
  return { api, clock, copy, first, stream, tell, time };
}

test("the copy reads everything with one call when the stream opens", async (t) => {
  const { copy, first } = await followed(t);
  assert.deepEqual(first, EVERYTHING);
  assert.ok(copy.isLoaded);
  assert.equal(copy.machines.size, 2);
});

test("the copy reads only the lists of the records' topics again, each once", async (t) => {
  const { tell } = await followed(t);
  assert.deepEqual(await tell(record("hold-set", ["holds"]), record("group-changed", ["groups"])), [
    "/v1/groups",
    "/v1/holds",
  ]);
  assert.deepEqual(await tell(record("any", ["orders", "rollouts"]), record("any", ["orders"])), [
    "/v1/orders?open=true",
    "/v1/rollouts?open=true",
  ]);
});

test("a record without a topic only refreshes the counts", async (t) => {
  const { tell } = await followed(t);
  assert.deepEqual(await tell(record("history-pruned", []), record("token-created", ["tokens"])), []);
});

test("a tenant does not read hosts, rollouts and holds", async (t) => {
  const { copy, tell } = await followed(t, { rights: ["see"] });
  assert.deepEqual(await tell(record("any", ["events", "hosts", "rollouts", "holds"])), ["/v1/events"]);
  assert.equal(copy.hosts, null);
});

test("the copy reads service time after an advance, and always with a manual clock", async (t) => {
  const { clock, tell } = await followed(t);
  await tell(record("any", ["holds"]));
  assert.equal(clock.reads, 0);
  await tell(record("clock-advanced", ["clock"]));
  assert.equal(clock.reads, 1);
  clock.speed = 0;
  await tell(record("any", ["holds"]));
  assert.equal(clock.reads, 2);
});

test("the machines of an event are read again, also after it has ended", async (t) => {
  const { api, tell } = await followed(t);
  const about = { event: "E", group: "web", project: "default" };
  api.lists.events = [event("E", ["web-0", "web-1"])];
  const both = "/v1/machines?name=web-0%2Cweb-1";
  assert.ok((await tell(record("event-scheduled", ["machines", "events"], about))).includes(both));
  api.lists.events = [];
  assert.ok((await tell(record("event-withdrawn", ["machines", "events"], about))).includes(both));
});

test("the copy announces the groups of changed events only", async (t) => {
  const lists = { events: [event("A", ["web-0"]), event("B", ["db-0"], { group: "db" })] };
  const { api, copy, tell } = await followed(t, { lists });
  /** @type {string[]} */
  const groups = [];
  let announced = 0;
  copy.addEventListener("events", (change) => {
    announced += 1;
    groups.push(.../** @type {any} */ (change).detail);
  });
  await tell(record("any", ["events"]));
  assert.equal(announced, 0);
  api.lists.events = [event("A", ["web-0"], { status: "Started" }), event("C", ["one"], { group: null })];
  await tell(record("any", ["events"]));
  assert.deepEqual(groups.sort(), ["/default", "db", "web"]);
});

test("the events of a machine are sorted by NotBefore", async (t) => {
  const later = event("later", ["web-0"], { not_before: "2026-01-05T13:00:00Z" });
  const other = event("other", ["web-0"], { project: "blue" });
  const { copy } = await followed(t, {
    lists: { events: [later, other, event("next", ["web-0", "web-1"])] },
  });
  const ids = copy.eventsOf(/** @type {any} */ (machine("WEB-0"))).map((each) => each.id);
  assert.deepEqual(ids, ["next", "later"]);
});

test("after too many records the copy reads everything again", async (t) => {
  const { tell } = await followed(t);
  const many = Array.from({ length: 2001 }, () => record("any", ["holds"]));
  assert.deepEqual(await tell(...many), EVERYTHING);
});

test("the copy keeps a limited number of records, newest first", async (t) => {
  const { copy, tell } = await followed(t);
  await tell(...Array.from({ length: 250 }, (_, number) => record("any", [], { number })));
  assert.deepEqual([copy.records.length, copy.records[0]?.number], [200, 249]);
});

test("a failed read loses the link, and the next one reads everything", async (t) => {
  const { api, copy, tell, time } = await followed(t);
  api.trouble = new Error("the server is away");
  await tell(record("any", ["holds"]));
  assert.deepEqual([copy.link, copy.trouble], ["lost", "the server is away"]);
  api.trouble = null;
  await time.pass(2000);
  assert.deepEqual([copy.link, copy.trouble], ["live", ""]);
  assert.ok(api.since().includes("/v1/overview"));
});

test("the copy reads orders again when the time of a reason is over", async (t) => {
  const lists = { orders: [{ id: "O", waiting_until: "2026-01-05T11:59:00Z" }] };
  const { api, clock, time } = await followed(t, { lists });
  await time.pass(3000);
  clock.dispatchEvent(new Event("tick"));
  clock.dispatchEvent(new Event("tick"));
  await time.pass(50);
  assert.deepEqual(api.since(), ["/v1/orders?open=true", "/v1/rollouts?open=true"]);
});

test("holds that could not be saved are listed apart", async (t) => {
  const lists = {
    holds: [
      { id: 1, refused: null },
      { id: 2, refused: "there is no such host" },
    ],
  };
  const { copy } = await followed(t, { lists });
  assert.deepEqual([copy.holds?.length, copy.refusedHolds.length], [1, 1]);
});

test("after sign-out the copy is empty and reads nothing", async (t) => {
  const { api, copy, stream, time } = await followed(t);
  copy.stop();
  stream.tell(record("any", ["holds"]));
  await time.pass(5000);
  assert.deepEqual(api.since(), []);
  assert.deepEqual([copy.machines.size, copy.events.size, copy.summary], [0, 0, null]);
});
