import "./browser.js";
import assert from "node:assert/strict";
import { beforeEach, test } from "node:test";

const { address, router } = await import("../../src/forewarn/console/web/page/router.js");

const FLEET = { path: "/fleet", tag: "fw-fleet", title: "Fleet" };
const MACHINE = { path: "/machines/{name}", tag: "fw-machine", title: "Machine" };

/** @param {string} path */
const visit = (path) => history.pushState(null, "", path);

beforeEach(() => {
  router.start([FLEET, MACHINE]);
  visit("/console/fleet");
});

test("an address names its view and what is in it", () => {
  visit("/console/machines/web-0?project=blue");
  assert.deepEqual(router.place, { route: MACHINE, names: { name: "web-0" } });
  assert.equal(router.query.get("project"), "blue");
});

test("a slash at the end changes nothing", () => {
  visit("/console/fleet/");
  assert.equal(router.place?.route, FLEET);
});

for (const path of [
  "/console/nothing",
  "/console/machines",
  "/console/machines/a/b",
  "/console/machines/%E0%A4%A",
])
  test(`${path} leads to no view`, () => {
    visit(path);
    assert.equal(router.place, null);
  });

test("an address that was written leads back to the same name, whatever letters it has", () => {
  for (const name of ["web-0", "ü/ß", "50% off?", "#1"]) {
    visit(address(MACHINE.path, { name }));
    assert.deepEqual(router.place?.names, { name });
  }
});

test("what is empty is left out of an address", () =>
  assert.equal(address("/fleet", {}, { group: "web", project: null, text: "" }), "/console/fleet?group=web"));

test("a change of the query keeps the rest of it, and is announced once", () => {
  visit("/console/fleet?group=web&text=a");
  let announced = 0;
  router.addEventListener("query", () => announced++);
  router.setQuery({ text: null, state: "frozen" });
  router.setQuery({ state: "frozen" });
  assert.equal(location.search, "?group=web&state=frozen");
  assert.equal(announced, 1);
});

test("going to an address shows its view", () => {
  let moved = 0;
  router.addEventListener("moved", () => moved++);
  router.go(address(MACHINE.path, { name: "web-1" }));
  assert.deepEqual([router.place?.names.name, moved], ["web-1", 1]);
});
