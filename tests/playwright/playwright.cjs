// Drives one Chromium with Playwright, as told on standard input: one JSON object
// per line, one answer per line, with the milliseconds that it took.
"use strict";
const { chromium } = require("playwright-core");

async function main() {
  const browser = await chromium.launch({ executablePath: process.env.BROWSER, chromiumSandbox: process.getuid() !== 0 });
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 720 } })).newPage();
  page.setDefaultTimeout(10000);
  const steps = {
    goto: (q) => page.goto(q.url, { waitUntil: "domcontentloaded" }),
    // What a user of Playwright writes to click and see what came of it.
    click: async (q) => {
      await page.getByRole("button", { name: q.name, exact: true }).click();
      return page.locator(q.read).textContent();
    },
    aria: () => page.locator("body").ariaSnapshot(),
    content: () => page.content(),
    // Works a page whose status is to say Saved within 1.5 s of a click on Save.
    work: async (q) => {
      await page.goto(q.url, { waitUntil: "domcontentloaded" });
      await page.getByRole("button", { name: "Save", exact: true }).click();
      await page.waitForFunction(() => document.querySelector("[data-testid=status]")?.textContent.trim() === "Saved", null, { timeout: 1500 });
    },
  };
  process.stdout.write(JSON.stringify({ ready: browser.version() }) + "\n");
  for await (const line of require("readline").createInterface({ input: process.stdin })) {
    const q = JSON.parse(line);
    const begun = performance.now();
    let text = "", error = "";
    try {
      const out = await steps[q.do](q);
      text = typeof out === "string" ? out : "";
    } catch (e) {
      error = String(e.message).split("\n")[0] || "no reason";
    }
    process.stdout.write(JSON.stringify({ ms: performance.now() - begun, text, error }) + "\n");
  }
  await browser.close();
}

main().catch((e) => { process.stderr.write(String(e) + "\n"); process.exit(1); });
