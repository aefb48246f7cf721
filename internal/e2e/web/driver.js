// Drives a headless Chromium for the Go tests:
//
//   node driver.js OPTIONS     OPTIONS: {"executable", "args": [...]}
//
// It reads commands from standard input, one JSON value a line, and answers each
// with one line on standard output, {"ok": RESULT} or {"error": TEXT}:
//
//   {"do": "open", "url": URL}               -> ALPN name by which the page came
//   {"do": "call", "name": F, "args": [...]} -> what the page's function F returns
//   {"do": "screenshot", "path": FILE}
//
// The end of the input ends the browser.
'use strict';

const readline = require('node:readline');
const { chromium } = require('playwright-core');

const TIMEOUT = 30_000; // ms, of each command

async function main() {
  const { executable, args } = JSON.parse(process.argv[2]);
  const browser = await chromium.launch({ executablePath: executable, headless: true, args });
  try {
    const page = await browser.newPage({ viewport: { width: 640, height: 640 } });
    page.setDefaultTimeout(TIMEOUT);
    const complaints = [];
    page.on('pageerror', (error) => complaints.push(error.message));

    const commands = {
      async open({ url }) {
        await page.goto(url);
        return page.evaluate(() => performance.getEntriesByType('navigation')[0].nextHopProtocol);
      },
      async call({ name, args = [] }) {
        return within(page.evaluate(([name, args]) => window[name](...args), [name, args]), name);
      },
      async screenshot({ path }) {
        await page.screenshot({ path });
      },
    };
    for await (const line of readline.createInterface({ input: process.stdin })) {
      let answer;
      try {
        const command = JSON.parse(line);
        answer = { ok: (await commands[command.do](command)) ?? null };
        if (complaints.length > 0) throw new Error('the page: ' + complaints.splice(0).join('; '));
      } catch (error) {
        answer = { error: error.message };
      }
      process.stdout.write(JSON.stringify(answer) + '\n');
    }
  } finally {
    await browser.close();
  }
}

// within bounds a promise of the page, which playwright does not.
async function within(promise, what) {
  let timer;
  const timeout = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${what} took more than ${TIMEOUT} ms`)), TIMEOUT);
  });
  try {
    return await Promise.race([promise, timeout]);
  } finally {
    clearTimeout(timer);
  }
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
