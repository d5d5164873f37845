import { handTurned } from "./browser.js";
import assert from "node:assert/strict";
import { afterEach, test } from "node:test";

const { PacedReading } = await import("../../src/forewarn/console/web/service/paced_reading.js");
const { PacedCounting } = await import("../../src/forewarn/console/web/service/paced_counting.js");
const { ServiceClock } = await import("../../src/forewarn/console/web/service/service_clock.js");

/**
 * A paced reading on a clock that is turned by hand: each reading takes so long.
 *
 * @param {import("node:test").TestContext} t
 * @param {{ takes?: number, isGood?: boolean, signal?: AbortSignal }} [how]
 */
function reading(t, { takes = 0, isGood = true, signal } = {}) {
  const time = handTurned(t);
  const told = { reads: 0, isGood, takes };
  const paced = new PacedReading(async () => {
    told.reads += 1;
    time.take(told.takes);
    return told.isGood;
  }, signal);
  return { paced, time, told };
}

/** @param {boolean} isHidden */
function hide(isHidden) {
  document.hidden = isHidden;
  document.dispatchEvent(new Event("visibilitychange"));
}

afterEach(() => hide(false));

test("what comes close together is one reading", async (t) => {
  const { paced, time, told } = reading(t);
  for (let record = 0; record < 5; record++) paced.soon();
  await time.pass(50);
  assert.equal(told.reads, 0);
  await time.pass(50);
  assert.equal(told.reads, 1);
  await time.pass(5000);
  assert.equal(told.reads, 1);
});

test("after a reading it rests, and then reads once for all that has come", async (t) => {
  const { paced, time, told } = reading(t);
  paced.now();
  await time.pass(50);
  paced.soon();
  paced.soon();
  await time.pass(300);
  assert.equal(told.reads, 1);
  await time.pass(150);
  assert.equal(told.reads, 2);
});

for (const [takes, most] of [
  [150, 1 / 4],
  [500, 1 / 10],
])
  test(`a busy fleet whose readings take ${takes} ms is read at most ${most * 100} % of the time`, async (t) => {
    const { paced, time, told } = reading(t, { takes });
    const began = performance.now();
    while (performance.now() < began + 60_000) {
      paced.soon();
      await time.pass(100);
    }
    const share = (told.reads * takes) / (performance.now() - began);
    assert.ok(share > most / 2 && share <= most, `${share} of the time`);
  });

test("one long reading alone makes the next one wait no longer", async (t) => {
  const { paced, time, told } = reading(t, { takes: 5000 });
  paced.now();
  await time.pass(50);
  paced.soon();
  await time.pass(450);
  assert.equal(told.reads, 2);
});

test("nothing is read while the page is hidden, and all of it once when it is seen", async (t) => {
  const { paced, time, told } = reading(t);
  hide(true);
  paced.soon();
  paced.now();
  await time.pass(10_000);
  assert.equal(told.reads, 0);
  hide(false);
  await time.pass(50);
  assert.equal(told.reads, 1);
});

test("what could not be read is tried again after a second, not sooner", async (t) => {
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

test("a reading that was stopped, or whose page has gone, is not made", async (t) => {
  const gone = new AbortController();
  const { paced, time, told } = reading(t, { signal: gone.signal });
  paced.soon();
  paced.stop();
  await time.pass(1000);
  paced.soon();
  gone.abort();
  await time.pass(1000);
  assert.equal(told.reads, 0);
});

test("a fleet that takes long to count is counted rarely", async (t) => {
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

test("a fleet that is counted quickly is counted at once", async (t) => {
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

test("service time goes on at its speed between two answers", async (t) => {
  const time = handTurned(t);
  const clock = new ServiceClock({});
  clock.take(answered("2026-01-05T12:00:00Z", { kind: "fast", speed: 60 }), performance.now());
  await time.pass(1000);
  assert.equal(new Date(clock.now()).toISOString(), "2026-01-05T12:01:00.000Z");
});

test("an answer is taken as written half-way between question and answer", (t) => {
  const time = handTurned(t);
  const clock = new ServiceClock({});
  const asked = performance.now();
  time.take(400);
  clock.take(answered("2026-01-05T12:00:00Z"), asked);
  assert.equal(new Date(clock.now()).toISOString(), "2026-01-05T12:00:00.200Z");
});

test("a clock that is ahead of the system's is slowed, one that runs faster is not", (t) => {
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

test("a clock that runs by itself is read once a minute, a manual one only when it is turned", async (t) => {
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
