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
  assert.equal(await libraries(), "app100 %2.00 ms2", "what ran, by the processor's clock");
  await page.locator("input[name=clock][value=wall]").check({ force: true });
  assert.match(await libraries(), /^in no call that was kept50\.0 %4\d\d ms \| libc\.so\.650\.0 %4\d\d ms$/, "waiting too, by the wall's");
  const waits = await rows("waits", "waits").first().textContent();
  assert.match(waits, /^a lock, pthread_mutex_lock <\/script>100 %4\d\d ms1$/);
  assert.match(await rows("blocked", "single").first().textContent(), /^worker 2500 ms900 mswaiting for a lockpthread_mutex_lock <\/script>worker 1 in pthread_mutex_unlock$/);
  // One sample of each thread is in it, and others are not.
  const ran = async (table) => (await rows("processor", table).allTextContents()).join(" | ");
  assert.equal(await ran("processor"), "app100 %2.00 ms2");
  assert.equal(await ran("ran"), "mainapp100 %2.00 ms");
  assert.equal(await rows("threads", "threads").count(), 2);
  assert.match(await rows("threads", "threads").first().textContent(), /^worker 1/);
  assert.match(await rows("time", "functions").first().textContent(), /^pthread_mutex_lock/);
  assert.equal(await shown("#time .of-run, #threads .of-run, #waits .of-run").count(), 0);
  for (const [section, words] of [["findings", "whole run"], ["calls", "whole run"], ["tail", "whole run"], ["time", "in the window"], ["processor", "in the window"], ["blocked", "in the window"]]) {
    assert.equal(await shown(`#${section} .scope`).first().textContent(), words, section);
  }
  await page.emulateMedia({ colorScheme: "dark" });
  await page.emulateMedia({ colorScheme: "light" });
  // Where it is narrow nothing of it is cut.
  await page.setViewportSize({ width: 400, height: 900 });
  const isCut = () => [...document.querySelectorAll(".window")].filter((place) => place.scrollWidth > place.clientWidth + 1).map((place) => place.textContent.slice(0, 40));
  await page.waitForFunction(() => document.querySelector(".window.cards caption"));
  assert.deepEqual(await page.evaluate(isCut), []);
  await page.setViewportSize({ width: 1280, height: 900 });
  // Back to the whole run, and again by the keys.
  await page.locator("#window-chip button").click();
  assert.equal(await shown(".of-window").count(), 0, "and gone with the window");
  assert(await shown("#time .of-run, #threads .of-run, #waits .of-run").count() === 3);
  await page.locator("#timeline-box canvas").focus();
  for (let times = 0; times < 3; times += 1) await page.keyboard.press("Shift+ArrowRight");
  assert(await rows("threads", "threads").count() === 2 && await shown("#window-chip").count() === 1);
}

// Who waits for whom, and the components: wide and narrow, by the keys, filtered, in the dark, on paper.
async function graphs(page) {
  for (const section of ["wait-graph", "components"]) {
    for (const [width, from, to] of [[1280, 400, 1280], [400, 100, 1280]]) {
      await page.setViewportSize({ width, height: 900 });
      const box = page.locator(`#${section} .pan:visible`);
      assert.equal(await box.count(), 1, `${section}: one picture at ${width} pixels`);
      const drawn = (await box.locator("svg").boundingBox()).width;
      assert(drawn > from && drawn < to, `${section}: ${drawn} pixels wide at ${width}`);
      // As large as it was drawn, so that it is readable.
      assert(Math.abs(await box.locator("svg").evaluate((svg) => svg.getAttribute("width")) - drawn) < 1, "is not scaled");
      await box.focus();
      assert(await box.evaluate((one) => one === document.activeElement), "is reached by the keys");
      if (await box.evaluate((one) => one.scrollWidth > one.clientWidth)) {
        await page.keyboard.press("ArrowRight");
        await page.waitForFunction((id) => [...document.querySelectorAll(`#${id} .pan`)].some((one) => one.scrollLeft > 0), section);
      }
    }
  }
  await page.setViewportSize({ width: 1280, height: 900 });
  const off = () => page.locator("#wait-graph .pan:visible svg .off title").allTextContents();
  const isFiltered = (wanted) => page.waitForFunction((wanted) => document.querySelectorAll("#wait-graph svg .off").length > 0 === wanted, wanted);
  await page.fill("#filter", "");
  await isFiltered(false);
  await page.fill("#filter", "keeper");
  await isFiltered(true);
  const faint = await off();
  assert(faint.includes("compress_worker") && !faint.some((title) => title.includes("keeper")), `the filter dims ${faint}`);
  await page.fill("#filter", "");
  await isFiltered(false);
  await page.emulateMedia({ colorScheme: "dark" });
  const colours = await page.locator("#components .pan:visible svg").evaluate((svg) => {
    const of = (name) => [...new Set([...svg.querySelectorAll(name)].map((one) => getComputedStyle(one).fill))];
    return { papers: of("rect"), texts: of("text"), boxes: of("path") };
  });
  const light = (colour) => colour.match(/\d+/g).slice(0, 3).reduce((sum, part) => sum + Number(part), 0) / 3;
  assert(colours.papers.every((colour) => light(colour) < 60), `paper in the dark: ${colours.papers}`);
  assert(colours.texts.every((colour) => light(colour) > 150), `texts in the dark: ${colours.texts}`);
  await page.emulateMedia({ colorScheme: "light", media: "print" });
  await page.setViewportSize({ width: 703, height: 1000 });
  for (const box of await page.locator(".pan:visible").all()) {
    assert(await box.evaluate((one) => one.scrollWidth <= one.clientWidth + 1), "fits on paper");
  }
  await page.emulateMedia({ media: "screen" });
  await page.setViewportSize({ width: 1280, height: 900 });
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
  await graphs(page);
  assert.deepEqual(problems, []);
  await close();
  console.log("as it should be");
}
