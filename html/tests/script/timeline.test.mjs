import assert from "node:assert/strict";
import test from "node:test";
import { aloneName, columnsOf, firstAfter, shownRows, spanAt, stateTimes, unpacked, wakings } from "../../assets/script/lanes.mjs";
import { busy, blocked, byLargest, longestWaits, queued, sumsOf, wantedLanes, whole } from "../../assets/script/sums.mjs";
import { moved, ticksOf, within, zoomed } from "../../assets/script/window.mjs";

const RUN = 0;
const LOCK = 2;
const worker = (name, shift) => ({
  name,
  group: "worker",
  spans: [[shift, shift + 100, RUN, "", -1, ""], [shift + 100, shift + 250, LOCK, "lock", 0, "unlock"], [shift + 250, shift + 300, RUN, "", -1, ""]],
});
const lanes = [{ name: "main", group: "main", spans: [[0, 1000, RUN, "", -1, ""]] }, worker("worker 1", 0), worker("worker 2", 500)];

test("windows stay within the run", () => {
  assert.deepEqual(within([-50, 50], 1000, 10), [0, 100]);
  assert.deepEqual(within([990, 991], 1000, 100), [900, 1000]);
  assert.deepEqual(within([0, 5000], 1000, 10), [0, 1000]);
  assert.deepEqual(moved([100, 200], 5000, 1000), [900, 1000]);
  const [from, to] = zoomed([0, 1000], 0.5, 300, 1000, 10);
  assert(from === 150 && to === 650, "the moment stays at its place");
});

test("ticks are round and as many as there is room for", () => {
  assert.deepEqual(ticksOf([0, 1000], 5), [0, 200, 400, 600, 800, 1000]);
  assert.deepEqual(ticksOf([130, 370], 3), [200, 300]);
  assert(ticksOf([0, 1e10], 12).length <= 13);
});

test("groups are folded until they are opened, and filtered", () => {
  const labels = (open, isFound = () => true) => shownRows(lanes, new Set(open), isFound).map((row) => row.label);
  assert.deepEqual(labels([]), ["main", "worker (2)"]);
  assert.deepEqual(labels(["worker"]), ["main", "worker (2)", "worker 1", "worker 2"]);
  assert.deepEqual(labels([], (lane) => lane.name === "worker 2"), ["worker 2"]);
});

test("idle threads are one group below all others", () => {
  const idle = (name, group) => ({ name, group, idle: true, spans: [] });
  const all = [idle("timer", "timer"), ...lanes, idle("signals", "signals")];
  const labels = (open) => shownRows(all, new Set(open), () => true).map((row) => row.label);
  assert.deepEqual(labels([]), ["main", "worker (2)", "idle threads (2)"]);
  assert.deepEqual(labels(["idle threads"]), ["main", "worker (2)", "idle threads (2)", "timer", "signals"]);
  assert.deepEqual(shownRows(all.slice(0, 2), new Set(), () => true).map((row) => row.label), ["main", "timer"]);
});

test("times in a window add up to what the spans have in it", () => {
  const times = stateTimes(lanes[1], [50, 260], 3);
  assert.deepEqual(times, [60, 0, 150]);
  assert.deepEqual(stateTimes(lanes[1], [400, 900], 3), [0, 0, 0]);
  for (const columns of [1, 3, 7, 500]) {
    const sums = [0, 0, 0];
    columnsOf(lanes[1], [50, 260], columns, 3, (column, state, time) => {
      assert(column >= 0 && column < columns && time >= 0 && time <= 210 / columns + 1e-9);
      sums[state] += time;
    });
    sums.forEach((sum, state) => assert(Math.abs(sum - times[state]) < 1e-6, `${columns} columns`));
  }
});

test("a folded row draws the times of its threads, as they do where it is open", () => {
  const drawn = (rows) => {
    const sums = [0, 0, 0];
    for (const number of rows.flatMap((row) => row.lanes)) columnsOf(lanes[number], [0, 1000], 7, 3, (_, state, time) => (sums[state] += time));
    return sums.map((sum) => Math.round(sum));
  };
  const folded = shownRows(lanes, new Set(), () => true);
  const open = shownRows(lanes, new Set(["worker"]), () => true);
  assert.equal(open.length, folded.length + 2);
  const inner = open.filter((row) => row.isInner);
  assert.deepEqual(drawn(inner), drawn(folded.filter((row) => row.group === "worker")));
  assert.deepEqual(drawn(open.filter((row) => !row.isOpen)), drawn(folded));
  assert.deepEqual(drawn(folded), [1300, 0, 300]);
});

test("a moment finds its span, or none", () => {
  assert.equal(firstAfter(lanes[1].spans, 100), 1);
  assert.equal(spanAt(lanes[1], 120)[3], "lock");
  assert.equal(spanAt(lanes[1], 400), null);
  assert.equal(spanAt(lanes[2], 100), null);
});

test("texts are said once in the page", () => {
  const kinds = [[LOCK, 1, 0, 2], [RUN, 0, -1, 0]];
  const packed = { end: 9, texts: ["", "lock", "unlock"], kinds, lanes: [{ name: "a", spans: [5, -1, 2, 0, 1, 1] }] };
  assert.deepEqual(unpacked(packed), { end: 9, texts: packed.texts, lanes: [{ name: "a", spans: [[5, 7, LOCK, "lock", 0, "unlock", 1], [7, 8, RUN, "", -1, "", 0]], ran: [] }] });
});

test("arrows lead from wakers, the longest waits first", () => {
  assert.deepEqual(wakings(lanes, [0, 1, 2], [0, 1000], 10), [[1, 0, 250, 150], [2, 0, 750, 150]]);
  assert.deepEqual(wakings(lanes, [0, 1, 2], [0, 700], 10), [[1, 0, 250, 150]]);
  assert.equal(wakings(lanes, [1, 2], [0, 1000], 1).length, 1);
});

test("sums of a window are those of its spans, by whatever tells them apart", () => {
  const all = [0, 1, 2];
  const [run] = sumsOf(lanes, all, [0, 1000], 3, () => "all");
  assert.deepEqual(run.times, [1000 + 2 * 150, 0, 2 * 150]);
  assert.equal(whole(run), 1600);
  assert.equal(busy(run) + queued(run) + blocked(run), whole(run));
  for (const cut of [120, 260, 700]) {
    const parts = [[0, cut], [cut, 1000]].map((window) => sumsOf(lanes, all, window, 3, () => "all")[0]);
    assert.equal(whole(parts[0]) + whole(parts[1]), 1600, `cut at ${cut}`);
  }
  const byText = sumsOf(lanes, all, [110, 600], 3, (span) => span[3] || null);
  assert.deepEqual(byText.map((row) => [row.key, blocked(row), [...row.lanes]]), [["lock", 140, [1]]]);
  assert.deepEqual(byLargest(sumsOf(lanes, all, [0, 300], 3, (_, lane) => lane), busy).map((row) => row.key), [0, 1]);
});

test("the longest waits of a window, whole as they were", () => {
  assert.deepEqual(longestWaits(lanes, [0, 1, 2], [200, 620], 9).map(([lane, span]) => [lane, span[0], span[1]]), [[1, 100, 250], [2, 600, 750]]);
  assert.equal(longestWaits(lanes, [0, 1, 2], [0, 1000], 1).length, 1);
});

test("words that name threads choose them; others are left to the rows", () => {
  assert.deepEqual(wantedLanes(lanes, ["worker", "2"]), { numbers: [2], areFound: true });
  assert.deepEqual(wantedLanes(lanes, ["malloc"]), { numbers: [0, 1, 2], areFound: false });
  assert.deepEqual(wantedLanes(lanes, []), { numbers: [0, 1, 2], areFound: false });
});

test("a thread without others of its group is called as the group is", () => {
  assert.equal(aloneName({ name: "python3 12", group: "produce" }), "produce, python3 12");
  assert.equal(aloneName({ name: "GC Thread 12", group: "GC Thread" }), "GC Thread 12");
  assert.equal(aloneName({ name: "app 12", group: "" }), "app 12");
});
