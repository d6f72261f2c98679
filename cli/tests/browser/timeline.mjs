// The timeline in a browser. As a program: node timeline.mjs PAGE, of a page whose second thread of two waits for the first.
import assert from "node:assert/strict";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { chromium } from "playwright-core";
import { launch } from "./browser.mjs";

// The timeline: zoom, fold and a window by the keys, a brush by the mouse.
export async function timeline(page) {
  const box = page.locator("#timeline-box");
  if (!(await box.count())) return;
  const canvas = box.locator("canvas");
  // In the middle, with nothing over it.
  const intoView = () => canvas.evaluate((canvas) => canvas.scrollIntoView({ block: "center" }));
  await intoView();
  const caption = () => box.locator("caption").textContent();
  const picture = () => canvas.evaluate((canvas) => canvas.toDataURL());
  const whole = await caption();
  assert.match(whole, /^Shown: 0 ns to /);
  const before = await picture();
  await canvas.focus();
  await page.keyboard.press("+");
  assert.notEqual(await caption(), whole, "zooms by the keys");
  assert.notEqual(await picture(), before, "and is drawn anew");
  await page.keyboard.press("0");
  assert.equal(await caption(), whole);
  for (let times = 0; times < 3; times += 1) await page.keyboard.press("Shift+ArrowRight");
  assert.match(await caption(), /^Chosen window: /);
  await page.keyboard.press("Escape");
  assert.equal(await caption(), whole);
  await intoView();
  const at = await canvas.boundingBox();
  const y = at.y + Math.min(at.height - 5, 30);
  await page.mouse.move(at.x + at.width * 0.5, y);
  await box.locator(".status", { hasText: ": " }).waitFor();
  await page.mouse.down();
  await page.mouse.move(at.x + at.width * 0.75, y, { steps: 4 });
  await page.mouse.up();
  await box.locator("caption", { hasText: "Chosen window: " }).waitFor();
  await box.locator("button[data-do=window]").click();
  assert.match(await caption(), /^Shown: (?!0 ns)/, "and is zoomed to");
  await box.locator("button[data-do=all]").click();
  assert.equal(await caption(), whole);
  const unfold = box.locator("button[data-do=unfold]");
  const high = (await canvas.boundingBox()).height;
  await unfold.click();
  const higher = (await canvas.boundingBox()).height;
  await unfold.click();
  assert(higher >= high && (await canvas.boundingBox()).height === high, "groups are opened and folded");
}

// What is known of the page: a wait of 900 ms from 0.5 s on, ended by the other thread; the brush chooses half of it.
async function known(page) {
  const box = page.locator("#timeline-box");
  const canvas = box.locator("canvas");
  await box.locator("button[data-do=unfold]").click();
  await canvas.evaluate((canvas) => canvas.scrollIntoView({ block: "center" }));
  const at = await canvas.boundingBox();
  const left = Math.round(Math.min(Math.max(at.width * 0.17, 90), 220));
  const x = (seconds) => at.x + left + (seconds / 2) * (at.width - left);
  // Below the axis are the group, its first thread and its second.
  await page.mouse.move(x(1), at.y + 22 + 20 * 2.5);
  await box.locator(".status", { hasText: "worker 2" }).waitFor();
  const text = await box.locator(".status").textContent();
  assert.match(text, /worker 2: waiting for a lock, pthread_mutex_lock <\/script>, 900 ms, ended by worker 1 in pthread_mutex_unlock/);
  await page.mouse.move(x(0.95), at.y + 60);
  await page.mouse.down();
  await page.mouse.move(x(1.4), at.y + 60, { steps: 3 });
  await page.mouse.up();
  await box.locator("caption", { hasText: "Chosen window: " }).waitFor();
  const row = box.locator(".window tbody tr", { hasText: "worker 2" });
  const share = Number(/, ([\d.]+) %/.exec(await row.textContent())[1]);
  assert(share > 97, `all of the window is waited in: ${await row.textContent()}`);
  await following(page);
  await page.fill("#filter", "worker 2");
  await page.waitForFunction(() => document.querySelectorAll("#timeline-box .window tbody tr").length === 1);
}

// What is in the window: sections that can say so do, the others say that they are of the whole run.
async function following(page) {
  const shown = (selector) => page.locator(selector).filter({ visible: true });
  const rows = (section, table) => shown(`#${section} .of-window [data-follows=${table}] tbody tr`);
  assert.match(await page.locator("#window-chip").textContent(), /^9\d\d ms to 1\.[34]\d s \(/);
  const libraries = async () => (await rows("where", "libraries").allTextContents()).join(" | ");
  assert.match(await libraries(), /^in no call that was kept100 %4\d\d ms$/, "at work, by the processor's clock");
  await page.locator("input[name=clock][value=wall]").check({ force: true });
  assert.match(await libraries(), /^in no call that was kept50\.0 %4\d\d ms \| libc\.so\.650\.0 %4\d\d ms$/, "waiting too, by the wall's");
  const waits = await rows("waits", "waits").first().textContent();
  assert.match(waits, /^a lock, pthread_mutex_lock <\/script>100 %4\d\d ms1$/);
  assert.match(await rows("blocked", "single").first().textContent(), /^worker 2500 ms900 mswaiting for a lockpthread_mutex_lock <\/script>worker 1 in pthread_mutex_unlock$/);
  assert.equal(await rows("threads", "threads").count(), 2);
  assert.match(await rows("threads", "threads").first().textContent(), /^worker 1/);
  assert.match(await rows("time", "functions").first().textContent(), /^pthread_mutex_lock/);
  assert.equal(await shown("#time .of-run, #threads .of-run, #waits .of-run").count(), 0);
  for (const [section, words] of [["findings", "whole run"], ["calls", "whole run"], ["tail", "whole run"], ["time", "in the window"], ["blocked", "in the window"]]) {
    assert.equal(await shown(`#${section} .scope`).first().textContent(), words, section);
  }
  await page.emulateMedia({ colorScheme: "dark" });
  await page.emulateMedia({ colorScheme: "light" });
  // Back to the whole run, and again by the keys.
  await page.locator("#window-chip button").click();
  assert.equal(await shown(".of-window").count(), 0, "and gone with the window");
  assert(await shown("#time .of-run, #threads .of-run, #waits .of-run").count() === 3);
  await page.locator("#timeline-box canvas").focus();
  for (let times = 0; times < 3; times += 1) await page.keyboard.press("Shift+ArrowRight");
  assert(await rows("threads", "threads").count() === 2 && await shown("#window-chip").count() === 1);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const { context, close } = await launch(chromium);
  const page = await context.newPage();
  const problems = [];
  page.on("pageerror", (error) => problems.push(error.stack));
  await page.setViewportSize({ width: 1280, height: 900 });
  await page.goto("file://" + path.resolve(process.argv[2]));
  await timeline(page);
  await known(page);
  assert.deepEqual(problems, []);
  await close();
  console.log("as it should be");
}
