import assert from "node:assert/strict";
import test from "node:test";
import { firstSample, nearestSample, sampleReach, sampleSums, strongest, unpackedSamples } from "../../assets/script/samples.mjs";

// Two libraries; the third place stands for four samples.
const places = [[0, "main", 1], [1, "deflate", 1], [1, "deflate", 4]];
const lanes = [
  { ran: unpackedSamples([1, 0, 1, 0, 1, 1, 1, 1, 1, 1]) },
  { ran: unpackedSamples([2, 2]) },
  { ran: unpackedSamples() },
];
const all = [0, 1, 2];

test("samples are unpacked in nanoseconds", () => {
  assert.deepEqual(lanes[0].ran, [[1000, 0], [2000, 0], [3000, 1], [4000, 1], [5000, 1]]);
  assert.deepEqual(lanes[2].ran, []);
  assert.equal(firstSample(lanes[0].ran, 2000), 1);
  assert.equal(firstSample(lanes[0].ran, 2001), 2);
  assert.equal(firstSample(lanes[0].ran, 9000), 5);
});

test("a window has its samples alone, with their weights", () => {
  const sums = (window) => sampleSums(lanes, all, window, places, (at) => places[at][0]).map((row) => [row.key, row.samples, row.lanes.size]);
  assert.deepEqual(sums([0, 9000]), [[1, 7, 2], [0, 2, 1]]);
  assert.deepEqual(sums([0, 2000]), [[0, 1, 1]]);
  assert.deepEqual(sums([2000, 3000]), [[1, 4, 1], [0, 1, 1]]);
  assert.deepEqual(sums([6000, 9000]), []);
});

test("a column is of the library that most samples found", () => {
  assert.deepEqual(strongest(lanes, [0], [0, 6000], places, 6), [-1, 0, 0, 1, 1, 1]);
  assert.deepEqual(strongest(lanes, all, [0, 6000], places, 6), [-1, 0, 1, 1, 1, 1]);
  assert.deepEqual(strongest(lanes, all, [0, 6000], places, 1), [1]);
});

test("samples that stand for several are further apart", () => {
  assert.equal(sampleReach({ sample: 1000, places }), 4000);
  assert.equal(sampleReach({ sample: 1000, places: [] }), 1000);
});

test("the nearest sample is found within reach", () => {
  assert.deepEqual(nearestSample(lanes[0], 2400, 1000), [2000, 0]);
  assert.deepEqual(nearestSample(lanes[0], 2600, 1000), [3000, 1]);
  assert.equal(nearestSample(lanes[0], 9000, 1000), null);
  assert.equal(nearestSample(lanes[2], 0, 1000), null);
});
