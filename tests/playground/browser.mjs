// Headless Chromium, driven over a pipe by the DevTools protocol, without a package.
import { spawn } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";

export class Browser {
  static async start() {
    const profile = await mkdtemp(join(tmpdir(), "coapace-"));
    const child = spawn("chromium", ["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
      "--disable-component-update", "--disable-sync", `--user-data-dir=${profile}`, "--remote-debugging-pipe", "about:blank"],
    { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    return new Browser(child, profile);
  }
  constructor(child, profile) {
    Object.assign(this, { child, profile, number: 0, waiting: new Map(), listeners: [], rest: "" });
    child.stdio[4].on("data", (data) => {
      const parts = (this.rest + data).split("\0");
      this.rest = parts.pop();
      parts.forEach((part) => this.take(JSON.parse(part)));
    });
  }
  take(message) {
    const waiting = this.waiting.get(message.id);
    if (waiting) {
      this.waiting.delete(message.id);
      if (message.error) waiting.failed(new Error(`${waiting.method}: ${message.error.message}`));
      else waiting.done(message.result);
    } else {
      this.listeners.forEach((listener) => listener(message));
    }
  }
  send(method, params = {}, sessionId) {
    const id = ++this.number;
    this.child.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    return new Promise((done, failed) => this.waiting.set(id, { done, failed, method }));
  }
  async page() {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    const page = new Page(this, sessionId);
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await page.send(`${domain}.enable`);
    return page;
  }
  async end() {
    const gone = new Promise((done) => this.child.on("exit", done));
    this.send("Browser.close").catch(() => {});
    await gone;
    await rm(this.profile, { recursive: true, force: true, maxRetries: 5 });
  }
}

class Page {
  constructor(browser, session) {
    Object.assign(this, { browser, session, complaints: [], requests: [] });
    browser.listeners.push(({ method, params, sessionId }) => {
      if (sessionId !== session) return;
      if (method === "Runtime.exceptionThrown") this.complaints.push(params.exceptionDetails.exception?.description ?? params.exceptionDetails.text);
      if (method === "Runtime.consoleAPICalled") this.complaints.push(params.args.map((it) => it.value ?? it.description).join(" "));
      if (method === "Log.entryAdded") this.complaints.push(`${params.entry.text} ${params.entry.url ?? ""}`);
      if (method === "Network.requestWillBeSent") this.requests.push(params.request.url);
    });
  }
  send(method, params) {
    return this.browser.send(method, params, this.session);
  }
  /** Evaluates an expression, which may be a promise, and returns its value. The limit only ends what hangs. */
  async value(expression, seconds = 600) {
    let timer;
    const late = new Promise((_, fail) => {
      timer = setTimeout(() => fail(new Error(`no answer within ${seconds} s: ${expression.slice(0, 200)}`)), 1000 * seconds);
    });
    const answer = this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    const { result, exceptionDetails } = await Promise.race([answer, late]).finally(() => clearTimeout(timer));
    if (exceptionDetails) throw new Error(exceptionDetails.exception?.description ?? exceptionDetails.text);
    return result.value;
  }
  /** Waits until an expression is true. ../../test runs this niced beside other work, so the limit only ends what hangs. */
  async until(expression, what = expression, seconds = 600) {
    const end = Date.now() + 1000 * seconds;
    // A page that is being left answers with an error.
    const holds = () => this.value(`Boolean(${expression})`).catch((error) => {
      if (/navigated or closed|context was destroyed|Cannot find (default )?(execution )?context/.test(error.message)) return false;
      throw error;
    });
    while (!await holds()) {
      if (Date.now() > end) throw new Error(`not within ${seconds} s: ${what}; ${this.complaints.join("; ")}`);
      await new Promise((done) => setTimeout(done, 30));
    }
  }
  async open(url) {
    await this.send("Page.navigate", { url });
  }
  async look(width, dark) {
    await this.send("Emulation.setDeviceMetricsOverride", { width, height: 900, deviceScaleFactor: 1, mobile: width < 500 });
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: dark ? "dark" : "light" }] });
  }
  async picture() {
    const { data } = await this.send("Page.captureScreenshot", { format: "png", captureBeyondViewport: true });
    return Buffer.from(data, "base64");
  }
}
