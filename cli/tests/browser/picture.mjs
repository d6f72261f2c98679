// The first screen of a page, to the end of its timeline, as a picture: node picture.mjs PAGE FILE.png
import path from "node:path";
import { chromium } from "playwright-core";
import { launch } from "./browser.mjs";

const [file, picture] = process.argv.slice(2);
const { context, close } = await launch(chromium);
const page = await context.newPage();
await page.setViewportSize({ width: 1060, height: 900 });
await page.goto("file://" + path.resolve(file));
await page.waitForTimeout(300);
const unfold = page.locator("button[data-do=unfold]");
if (await unfold.count()) await unfold.click();
const end = await page.evaluate(() => {
  document.documentElement.scrollTop = 0;
  const last = document.querySelector("#timeline-box canvas") || document.querySelector("main section:nth-of-type(2)");
  return last.getBoundingClientRect().bottom;
});
await page.setViewportSize({ width: 1060, height: Math.round(end) + 16 });
await page.waitForTimeout(300);
await page.screenshot({ path: picture });
await close();
