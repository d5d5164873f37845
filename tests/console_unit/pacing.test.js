import { handTurned } from "./browser.js";
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

const { PacedReading } = await import("../../src/forewarn/console/web/service/paced_reading.js");
const { PacedCounting } = await import("../../src/forewarn/console/web/service/paced_counting.js");
const { ServiceClock } = await import("../../src/forewarn/console/web/service/service_clock.js");

/**
 * Make a PacedReading with fake time, whose reads take a given time.
 *
 * @param {import("node:test").TestContext} t
 * @param {{ takes?: number, isGood?: boolean, signal?: AbortSignal }} [how]
 */
function reading(t, { takes = 0, isGood = true, signal } = {}) {
  const time = handTurned(t);
  const spy = { reads: 0, isGood, takes };
  const paced = new PacedReading(async () => {
    spy.reads += 1;
    time.take(spy.takes);
    return spy.isGood;
  }, signal);
  return { paced, time, spy };
}

/** @param {boolean} isHidden */
function hide(isHidden) {
  document.hidden = isHidden;
  document.dispatchEvent(new Event("visibilitychange"));
}

afterEach(() => hide(false));

test("changes close together share one read", async (t) => {
  const { paced, time, spy } = reading(t);
  for (let record = 0; record < 5; record++) paced.soon();
  await time.pass(50);
  assert.equal(spy.reads, 0);
  await time.pass(50);
  assert.equal(spy.reads, 1);
  await time.pass(5000);
  assert.equal(spy.reads, 1);
});

test("after a read there is a rest, then one read for all changes", async (t) => {
  const { paced, time, spy } = reading(t);
  paced.now();
  await time.pass(50);
  paced.soon();
  paced.soon();
  await time.pass(300);
  assert.equal(spy.reads, 1);
  await time.pass(150);
  assert.equal(spy.reads, 2);
});

for (const [takes, most] of [
  [150, 1 / 4],
  [500, 1 / 10],
])
  test(`reads of ${takes} ms take at most ${most * 100} % of the time`, async (t) => {
    const { paced, time, spy } = reading(t, { takes });
    const began = performance.now();
    while (performance.now() < began + 60_000) {
      paced.soon();
      await time.pass(100);
    }
    const share = (spy.reads * takes) / (performance.now() - began);
    assert.ok(share > most / 2 && share <= most, `${share} of the time`);
  });

test("a single slow read does not delay the next one", async (t) => {
  const { paced, time, spy } = reading(t, { takes: 5000 });
  paced.now();
  await time.pass(50);
  paced.soon();
  await time.pass(450);
  assert.equal(spy.reads, 2);
});

test("a hidden tab reads nothing, and reads once when it is visible", async (t) => {
  const { paced, time, spy } = reading(t);
  hide(true);
  paced.soon();
  paced.now();
  await time.pass(10_000);
  assert.equal(spy.reads, 0);
  hide(false);
  await time.pass(50);
  assert.equal(spy.reads, 1);
});

test("a failed read is retried after a second", async (t) => {
  const time = handTurned(t);
  let reads = 0;
  const paced = new PacedReading(async () => {
    reads += 1;
    if (reads === 1) paced.soon();
    return reads > 1;
  });
  paced.now();
  await time.pass(900);
  assert.equal(reads, 1);
  await time.pass(200);
  assert.equal(reads, 2);
});

test("a stopped or aborted reading does not read", async (t) => {
  const gone = new AbortController();
  const { paced, time, spy } = reading(t, { signal: gone.signal });
  paced.soon();
  paced.stop();
  await time.pass(1000);
  paced.soon();
  gone.abort();
  await time.pass(1000);
  assert.equal(spy.reads, 0);
});

test("a slow count is repeated rarely", async (t) => {
  const time = handTurned(t);
  let counts = 0;
  const counting = new PacedCounting(async () => {
    counts += 1;
    time.take(1000);
  });
  await counting.now();
  await counting.now();
  await counting.rested();
  await counting.rested();
  await time.pass(29_000);
  assert.equal(counts, 2);
  await time.pass(2000);
  assert.equal(counts, 3);
});

test("a fast count is repeated at once", async (t) => {
  handTurned(t);
  let counts = 0;
  const counting = new PacedCounting(async () => {
    counts += 1;
  });
  await counting.rested();
  await counting.rested();
  assert.equal(counts, 2);
});

/** @param {string} now @param {{ kind?: string, speed?: number }} [how] */
const answered = (now, { kind = "system", speed = 1 } = {}) => ({ now, kind, speed });

test("service time advances at its speed between answers", async (t) => {
  const time = handTurned(t);
  const clock = new ServiceClock({});
  clock.take(answered("2026-01-05T12:00:00Z", { kind: "fast", speed: 60 }), performance.now());
  await time.pass(1000);
  assert.equal(new Date(clock.now()).toISOString(), "2026-01-05T12:01:00.000Z");
});

test("the time of an answer is half-way between request and response", (t) => {
  const time = handTurned(t);
  const clock = new ServiceClock({});
  const asked = performance.now();
  time.take(400);
  clock.take(answered("2026-01-05T12:00:00Z"), asked);
  assert.equal(new Date(clock.now()).toISOString(), "2026-01-05T12:00:00.200Z");
});

test("a system clock at another speed is slowed, a simulated one is fast", (t) => {
  handTurned(t);
  const clock = new ServiceClock({});
  const kinds = [
    [answered("2026-01-05T12:00:00Z"), "system"],
    [answered("2026-01-05T12:00:00Z", { speed: 0.5 }), "slowed"],
    [answered("2026-01-05T12:00:00Z", { kind: "x60", speed: 60 }), "fast"],
    [answered("2026-01-05T12:00:00Z", { kind: "manual", speed: 0 }), "manual"],
  ];
  for (const [answer, kind] of kinds) {
    clock.take(answer, 0);
    assert.equal(clock.kind, kind);
  }
});

test("a running clock is read once a minute, a manual one only after an advance", async (t) => {
  const time = handTurned(t);
  let speed = 1;
  let asked = 0;
  const clock = new ServiceClock({
    get: async () => {
      asked += 1;
      return answered("2026-01-05T12:00:00Z", { speed });
    },
  });
  clock.isFollowed = true;
  await time.pass(1000);
  assert.equal(asked, 1);
  await time.pass(59_000);
  assert.equal(asked, 1);
  await time.pass(3000);
  assert.equal(asked, 2);
  speed = 0;
  await clock.read();
  await time.pass(300_000);
  assert.equal(asked, 3);
});
