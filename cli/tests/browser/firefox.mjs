// Checks a profile for the Firefox Profiler by the rules of its processed format, then by the profiler's own reader, and says as JSON what is
// in it: node firefox.mjs FILE
import { execFileSync, spawn } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const READER = fileURLToPath(new URL("node_modules/@firefox-devtools/profiler-cli/dist/profiler-cli.js", import.meta.url));

// What a column may refer to: the table in the thread, or how many there are.
const REFERENCES = {
  samples: { stack: "stackTable" },
  stackTable: { prefix: "stackTable", frame: "frameTable" },
  frameTable: { func: "funcTable", category: "categories", nativeSymbol: "nativeSymbols" },
  funcTable: { name: "strings", resource: "resourceTable", fileName: "strings" },
  nativeSymbols: { name: "strings", libIndex: "libs" },
  resourceTable: { name: "strings", lib: "libs" },
  markers: { name: "strings", category: "categories" },
};
// Columns that may say that there is none, and how.
const NONE = {
  "samples.stack": null, "stackTable.prefix": null, "frameTable.nativeSymbol": null, "funcTable.resource": -1,
  "funcTable.fileName": null, "resourceTable.lib": null,
};

function problemsOf(profile) {
  const problems = [];
  const schemas = new Map(profile.meta.markerSchema.map((schema) => [schema.name, schema]));
  const seen = new Set();
  if (!(profile.meta.preprocessedProfileVersion > 0) || !(profile.meta.interval > 0)) problems.push("no version, or no interval");
  for (const [at, thread] of profile.threads.entries()) {
    const say = (text) => problems.push(`thread ${at}: ${text}`);
    const counts = { strings: thread.stringArray.length, categories: profile.meta.categories.length, libs: profile.libs.length };
    for (const name of Object.keys(REFERENCES)) counts[name] = thread[name].length;
    for (const [name, columns] of Object.entries(REFERENCES)) {
      const table = thread[name];
      for (const [column, values] of Object.entries(table)) {
        if (Array.isArray(values) && values.length !== table.length) say(`${name}.${column} has ${values.length} entries of ${table.length}`);
      }
      for (const [column, to] of Object.entries(columns)) {
        const whole = `${name}.${column}`;
        if (!Array.isArray(table[column])) say(`${whole} is missing`);
        else if (!table[column].every((value) => (whole in NONE && value === NONE[whole]) || (Number.isInteger(value) && value >= 0 && value < counts[to]))) {
          say(`${whole} refers to what is not in ${to}`);
        }
      }
    }
    if (!thread.stackTable.prefix.every((prefix, own) => prefix === null || prefix < own)) say("a stack comes before what it is in");
    if (thread.stringArray.some((text) => typeof text !== "string")) say("a string is none");
    samples(thread, profile, say);
    markers(thread, schemas, say);
    const identity = `${thread.pid} ${thread.tid}`;
    if (seen.has(identity)) say(`a second thread ${identity}`);
    seen.add(identity);
    if (typeof thread.pid !== "string" || thread.name === "") say("no process, or no name");
    const { processStartupTime, registerTime, unregisterTime, processShutdownTime } = thread;
    const life = [processStartupTime, registerTime, unregisterTime, processShutdownTime].filter((time) => time !== null);
    if (life.some((time, place) => place && !(time >= life[place - 1]))) say(`lives ${life}`);
  }
  return problems;
}

function samples({ samples: table, registerTime, unregisterTime }, profile, say) {
  const finite = (values) => values?.length === table.length && values.every((value) => Number.isFinite(value) && value >= 0);
  if (!finite(table.timeDeltas)) say("samples do not go up in time");
  if (!finite(table.weight) || table.weightType !== "samples") say("a sample without a weight");
  if (!finite(table.threadCPUDelta)) say("a sample without its use of a processor");
  const end = (table.timeDeltas || []).reduce((sum, delta) => sum + delta, 0);
  if (unregisterTime !== null && end > unregisterTime + profile.meta.interval) say("a sample after the end");
  const busy = (table.threadCPUDelta || []).reduce((sum, delta) => sum + delta, 0) / 1e3;
  if (busy > end - registerTime + profile.meta.interval) say(`busy for ${busy} ms of ${end - registerTime}`);
}

function markers({ markers: table, stringArray }, schemas, say) {
  for (let at = 0; at < table.length; at++) {
    const [start, end, data] = [table.startTime[at], table.endTime[at], table.data[at]];
    // 0 is a moment, 1 has both ends, 2 only the beginning: nobody reads the end that is not there.
    const isRight = [start >= 0 && !end, start >= 0 && end >= start, start >= 0 && !end][table.phase[at]];
    if (!isRight) say(`marker ${at} of phase ${table.phase[at]} from ${start} to ${end}`);
    const schema = schemas.get(data?.type);
    if (!schema) {
      say(`marker ${at} has no schema`);
      continue;
    }
    for (const { key, format } of schema.fields) {
      if (format === "unique-string" && typeof stringArray[data[key]] !== "string") say(`marker ${at} has no ${key}`);
    }
  }
}

// By function, as the report has them: how many markers, and their time, ns.
function totalsOf(profile) {
  const totals = {};
  for (const { markers: table, stringArray } of profile.threads) {
    for (let at = 0; at < table.length; at++) {
      if (table.phase[at] !== 1) continue;
      const total = (totals[`${stringArray[table.data[at].detail]}:${stringArray[table.name[at]]}`] ||= [0, 0]);
      total[0] += 1;
      total[1] += (table.endTime[at] - table.startTime[at]) * 1e6;
    }
  }
  return totals;
}

// Time of a thread in all calls, ns: by its samples.
const sampled = (thread) => thread.samples.weight.reduce((sum, weight) => sum + weight, 0) * 1e3;

// What the profiler's own reader makes of it: a process that is asked by another. Its own way to start it waits for half a second, which a
// machine with other work may need; and now and then one never answers.
async function read(file) {
  if (!existsSync(READER)) return null;
  for (let left = 4; ;) {
    try {
      return await ask(file);
    } catch (error) {
      if (--left === 0) throw error;
    }
  }
}

async function ask(file) {
  const directory = mkdtempSync(path.join(tmpdir(), "chase-firefox-"));
  const env = { ...process.env, PROFILER_CLI_SESSION_DIR: directory, PROFILER_CLI_NO_SYMBOLICATE: "1" };
  const session = ["--session", "chase"];
  const daemon = spawn(process.execPath, [READER, "--daemon", path.resolve(file), ...session], { env, stdio: "ignore" });
  const end = new Promise((resolve) => daemon.once("exit", resolve));
  try {
    for (const latest = Date.now() + 20e3; ;) {
      try {
        const asked = [READER, "thread", "list", "--json", ...session];
        const { threads } = JSON.parse(execFileSync(process.execPath, asked, { env, encoding: "utf8", maxBuffer: 1 << 28, stdio: "pipe" }));
        return threads.map(({ name, pid, tid, markerCount, cpuMs }) => ({ name, pid, tid, markers: markerCount, cpuMs }));
      } catch (error) {
        if (Date.now() > latest || daemon.exitCode !== null) throw error;
        await new Promise((resolve) => setTimeout(resolve, 200));
      }
    }
  } finally {
    daemon.kill("SIGKILL");
    await end;
    rmSync(directory, { recursive: true, force: true });
  }
}

const [file] = process.argv.slice(2);
const profile = JSON.parse(readFileSync(file, "utf8"));
const problems = problemsOf(profile);
// Who has found it damaged need not ask.
const reader = problems.length ? null : await read(file);
const threads = profile.threads.map((thread) => ({
  name: thread.name, pid: thread.pid, tid: thread.tid, markers: thread.markers.length, in_calls_ns: sampled(thread),
  busy_ms: thread.samples.threadCPUDelta.reduce((sum, delta) => sum + delta, 0) / 1e3,
}));
process.stdout.write(JSON.stringify({ problems, threads, totals: problems.length ? {} : totalsOf(profile), reader }));
