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
  await canvas.scrollIntoViewIfNeeded();
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
  const at = await canvas.boundingBox();
  const y = at.y + Math.min(at.height - 5, 30);
  await page.mouse.move(at.x + at.width * 0.5, y);
  assert.match(await box.locator(".status").textContent(), /: /, "says what is there");
  await page.mouse.down();
  await page.mouse.move(at.x + at.width * 0.75, y, { steps: 4 });
  await page.mouse.up();
  assert.match(await caption(), /^Chosen window: /, "a brush chooses a window");
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
  const at = await canvas.boundingBox();
  const left = Math.round(Math.min(Math.max(at.width * 0.17, 90), 220));
  const x = (seconds) => at.x + left + (seconds / 2) * (at.width - left);
  // Below the axis are the group, its first thread and its second.
  await page.mouse.move(x(1), at.y + 22 + 20 * 2.5);
  const text = await box.locator(".status").textContent();
  assert.match(text, /worker 2: waiting for a lock, pthread_mutex_lock <\/script>, 900 ms, ended by worker 1 in pthread_mutex_unlock/);
  await page.mouse.move(x(0.95), at.y + 60);
  await page.mouse.down();
  await page.mouse.move(x(1.4), at.y + 60, { steps: 3 });
  await page.mouse.up();
  const row = box.locator(".window tbody tr", { hasText: "worker 2" });
  const share = Number(/, ([\d.]+) %/.exec(await row.textContent())[1]);
  assert(share > 97, `all of the window is waited in: ${await row.textContent()}`);
  await page.fill("#filter", "worker 2");
  await page.waitForFunction(() => document.querySelectorAll("#timeline-box .window tbody tr").length === 1);
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
