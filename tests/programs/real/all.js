// An ordinary program: crypto, zlib, files, timers, sub-processes, worker threads, errors.
const { execFileSync, spawn } = require('child_process');
const crypto = require('crypto');
const fs = require('fs');
const zlib = require('zlib');
const { Worker } = require('worker_threads');

const data = JSON.stringify([...Array(2000).keys()].map((n) => ({ n, text: 'x'.repeat(n % 17) })));
console.log(crypto.createHash('sha256').update(data).digest('hex'));
const packed = zlib.gzipSync(data, { level: 6 });
console.log(zlib.gunzipSync(packed).toString() === data);
console.log(execFileSync('echo', ['from a child']).toString().trim());
let sorted = [...Array(50000).keys()].map((n) => (n * 7919) % 50021).sort((a, b) => a - b);
console.log(sorted[100], sorted.reduce((a, b) => a + b));
fs.writeFileSync('file', data);
console.log(fs.statSync('file').size);
let caught = 0;
for (let i = 0; i < 1000; i++) {
  try {
    throw new Error(String(i));
  } catch (error) {
    caught += Number(error.message);
  }
}
console.log(caught);

const source = `
  const { parentPort, workerData } = require('worker_threads');
  let sum = 0;
  for (let i = 0; i < 1e6; i++) sum += i % workerData;
  parentPort.postMessage(sum);`;
const work = (n) =>
  new Promise((resolve, reject) => {
    const worker = new Worker(source, { eval: true, workerData: n });
    worker.on('message', resolve);
    worker.on('error', reject);
  });

(async () => {
  console.log(await Promise.all([3, 5, 7].map(work)));
  console.log(await new Promise((resolve) => crypto.pbkdf2('p', 's', 1000, 16, 'sha256', (_, key) => resolve(key.toString('hex')))));
  const status = await new Promise((resolve) => spawn('sh', ['-c', 'exit 6']).on('exit', resolve));
  console.log('status', status);
  console.error('to standard error');
  process.exitCode = 13;
})();
