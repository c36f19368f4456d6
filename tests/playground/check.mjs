// Drives the playground: check.mjs URL FOLDER HASHES AXE SHOTS SERVER LINKS. SERVER is the process that serves it. LINKS are those of the site (docs/site/gallery.py). HASHES are lines of crates/lab/examples/trace_hashes.rs that the command
// has confirmed. tests/check-playground says the rest.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser } from "./browser.mjs";

const [url, folder, hashes, axe, shots, server, links] = process.argv.slice(2);
const expect = (truth, what) => { if (!truth) throw new Error(what); };
const runs = (await readFile(hashes, "utf8")).trim().split("\n").slice(1).map((line) => {
  const [scenario, settings, mechanism, seed, hash] = line.split(",");
  return { scenario, settings: JSON.stringify(settings.split(";").filter(Boolean).map((it) => it.split("="))), mechanism, seed: Number(seed), hash };
});

// The same runs in Node.
const node = await import(pathToFileURL(resolve(folder, "coapace.js")));
node.initSync({ module: await readFile(join(folder, "coapace.wasm")) });
const texts = new Map(JSON.parse(node.catalogue()).scenarios.map((it) => [it.name, it.text]));
for (const it of runs) {
  const made = JSON.parse(node.run(it.scenario, texts.get(it.scenario), it.settings, it.mechanism, it.seed, false)).run.trace_hash;
  expect(made === it.hash, `${it.scenario}, ${it.mechanism}: ${made} in Node, ${it.hash} by the command`);
}
console.log(`${runs.length} runs have the command's trace hashes in Node`);

// Every link of the pages about papers names a scenario, knobs and mechanisms that are there.
const gallery = JSON.parse(await readFile(links, "utf8"));
for (const { address, command } of gallery) {
  const query = new URLSearchParams(address), name = query.get("s"), set = JSON.stringify(query.getAll("set").map((it) => it.split("=")));
  expect(texts.has(name), `${command}: there is no scenario ${name}`);
  try {
    node.check(name, texts.get(name), set);
    new node.Gathering(name, texts.get(name), set, JSON.stringify(query.get("m").split(" "))).free();
  } catch (error) {
    throw new Error(`${command}: ${error}`);
  }
}
console.log(`${gallery.length} links of the site can be run`);

const browser = await Browser.start();
let failed = null;
try {
  const page = await browser.page();
  await page.look(1400, false);
  await page.open(url);
  await page.until(`performance.getEntriesByName("first-result").length`, "the first result");
  const first = await page.value(`performance.getEntriesByName("first-result")[0].startTime`);
  // A value and no bound: ../../test runs this beside other work.
  console.log(`first result ${Math.round(first)} ms after a cold load`);
  const seenAll = `document.getElementById("progress")?.value === 1 && document.documentElement.dataset.drawn`;
  await page.until(seenAll, "all runs");
  const many = await page.value(`document.querySelectorAll("#table tbody tr").length`);
  expect(many === 4, `${many} rows`);
  expect(!/NaN|undefined|Infinity/.test(await page.value("document.body.innerText")), "every number is one");

  // The same runs in Chromium, as the page makes them.
  const made = await page.value(`(async () => {
    const texts = new Map(JSON.parse(coapace.catalogue()).scenarios.map((it) => [it.name, it.text]));
    return ${JSON.stringify(runs)}.map((it) => JSON.parse(coapace.run(it.scenario, texts.get(it.scenario), it.settings, it.mechanism, it.seed, false)).run.trace_hash);
  })()`);
  runs.forEach((it, i) => expect(made[i] === it.hash, `${it.scenario}, ${it.mechanism}: ${made[i]} in Chromium, ${it.hash} by the command`));
  console.log(`${runs.length} runs have the command's trace hashes in Chromium`);

  // A knob is moved by keys: the results, the address and the command follow.
  const before = await page.value("document.documentElement.dataset.drawn");
  await page.value(`document.getElementById("knob-clients").focus()`);
  for (const type of ["keyDown", "keyUp"]) await page.send("Input.dispatchKeyEvent", { type, key: "Home", code: "Home", windowsVirtualKeyCode: 36 });
  await page.until(`document.documentElement.dataset.drawn !== "${before}" && document.getElementById("progress").value === 1`, "results follow a knob");
  const command = await page.value(`document.getElementById("command").textContent`);
  expect(/^coapace run nb-iot --set clients=\d+ -m default/.test(command) && await page.value("location.hash.includes('clients')"), command);

  // Every scenario has results. The longest are not waited for. Where no run has a value of a metric, its cell stays "–".
  const numbers = `[...document.querySelectorAll("#table tbody td:not(:last-child)")].some((cell) => /\\d/.test(cell.textContent))`;
  for (const name of texts.keys()) {
    const earlier = await page.value("document.documentElement.dataset.drawn");
    await page.value(`document.getElementById("scenario").value = ${JSON.stringify(name)}, document.getElementById("scenario").dispatchEvent(new Event("change"))`);
    await page.until(`document.getElementById("command").textContent.startsWith("coapace run ${name} ") && document.documentElement.dataset.drawn !== "${earlier}" && ${numbers}`, `${name} has results`);
    expect(await page.value(`document.getElementById("fault").hidden`), `${name}: ${await page.value(`document.getElementById("fault").textContent`)}`);
  }
  console.log(`all ${texts.size} scenarios run`);

  // A scenario with a fault is refused with its line; a right one is opened.
  const drop = (name, text) => page.value(`(() => {
    const data = new DataTransfer();
    data.items.add(new File([${JSON.stringify(text)}], ${JSON.stringify(name)}));
    dispatchEvent(new DragEvent("drop", { dataTransfer: data, bubbles: true, cancelable: true }));
  })()`);
  await drop("mine.toml", texts.get("lossy-lan").replace("[clients]", "[clients]\ncuont = 3"));
  await page.until(`/^mine.toml:\\d+: unknown key/.test(document.getElementById("fault").textContent)`, "a fault has its line");
  await drop("mine.toml", texts.get("lossy-lan"));
  await page.until(`document.getElementById("fault").hidden && document.getElementById("command").textContent.includes("mine.toml")`, "a scenario is opened");
  const link = await page.value("location.href");

  // A link of each paper's page sets the page to what the site says.
  for (const paper of new Set(gallery.map((it) => it.paper))) {
    const { address, command } = gallery.find((it) => it.paper === paper);
    await page.open(`${url}#${address}`);
    await page.until(`document.getElementById("command").textContent === ${JSON.stringify(command)}`, `${command} of ${paper} is what the page shows`);
    expect(await page.value(`document.getElementById("fault").hidden`), `${paper}: ${await page.value(`document.getElementById("fault").textContent`)}`);
  }

  // What TCP does by itself is not drawn, and the page says so.
  await page.open(`${url}#s=nb-iot&m=tcp&n=1`);
  await page.until(`document.getElementById("command").textContent.includes("-m tcp") && document.getElementById("progress").value === 1`, "runs over TCP");
  for (const id of ["rto", "ladder"]) {
    await page.until(`/^tcp is not drawn: /.test(document.querySelector("#figure-${id} .note").textContent)`, `${id} says why tcp is missing`);
    expect(await page.value(`document.querySelector("#figure-${id} .chart").hidden && !document.getElementById("figure-${id}").hidden`), `${id} of tcp is empty`);
  }

  // While a knob is dragged, the page keeps drawing. A value and no bound: this machine has other work.
  await page.open(`${url}#s=nb-iot&m=default+cocoa+fasor+ebb&n=20`);
  await page.until(`document.getElementById("command").textContent.includes("-m fasor") && document.getElementById("progress").value === 1`, "all runs");
  const drag = await page.value(`(async () => {
    const input = document.getElementById("knob-clients"), times = [], most = Number(input.max);
    const end = performance.now() + 4000;
    let last = await new Promise(requestAnimationFrame), step = 0;
    while (last < end) {
      input.value = Math.round((0.5 - 0.5 * Math.cos(step++ / 12)) * most);
      input.dispatchEvent(new Event("input", { bubbles: true }));
      const now = await new Promise(requestAnimationFrame);
      times.push(now - last);
      last = now;
    }
    times.sort((a, b) => a - b);
    return { frames: 1000 * times.length / times.reduce((a, b) => a + b), slow: times[Math.floor(times.length * 0.95)], drawn: Number(document.documentElement.dataset.drawn) };
  })()`);
  console.log(`dragging: ${drag.frames.toFixed(1)} frames a second, 95 % of the frames within ${drag.slow.toFixed(0)} ms`);

  // A capture of a simulated run is read.
  await page.value(`document.getElementById("tab-capture").click(), document.getElementById("sample").click()`);
  await page.until(`!document.getElementById("advice").hidden`, "a capture is read");
  expect((await page.value(`document.querySelectorAll("#replays tbody tr").length`)) > 20, "mechanisms are replayed");

  // No violation of accessibility, in both themes, in all parts.
  const source = await readFile(axe, "utf8");
  const mesh = `${url}#s=mesh-grid&m=default&n=1&set=duration%3D120+s`;
  const visits = [["results", `${url}#s=nb-iot&set=clients%3D100&m=default+cocoa+fasor+ebb&n=20`], ["transfer", `${url}#s=fota-lte-m&m=default+tide+tcp&n=5`], ["mesh", mesh], ["own", link], ["capture", `${url}#s=lossy-lan`]];
  await mkdir(shots, { recursive: true });
  for (const [name, address] of visits) {
    for (const dark of [false, true]) {
      await page.look(1400, dark);
      await page.open("about:blank");
      await page.open(address);
      await page.until(seenAll, `${name}: all runs`);
      if (name === "capture") {
        await page.value(`document.getElementById("tab-capture").click(), document.getElementById("sample").click()`);
        await page.until(`!document.getElementById("advice").hidden`, "a capture is read");
      }
      if (name === "mesh") await page.until(`document.querySelector("iframe")?.contentDocument?.querySelector(".mote")`, "a film plays");
      await new Promise((done) => setTimeout(done, 400));
      if (name !== "own") {
        for (const width of [390, 900, 1400]) {
          await page.look(width, dark);
          await new Promise((done) => setTimeout(done, 300));
          const wide = await page.value("document.documentElement.scrollWidth");
          expect(wide <= width, `${name}: ${wide} px wide in a window of ${width}`);
          await writeFile(join(shots, `${name}-${width}-${dark ? "dark" : "light"}.png`), await page.picture());
        }
      }
      await page.value(source);
      const violations = await page.value(`axe.run(document, { resultTypes: ["violations"] }).then(({ violations }) => violations.map((it) => it.id + ": " + it.nodes.map((node) => node.html.slice(0, 160)).join(" | ")))`);
      expect(violations.length === 0, `${name}, ${dark ? "dark" : "light"}: ${violations.join("\n")}`);
    }
  }
  console.log("axe finds no violation");

  // Without a network it opens again, and makes runs.
  await page.value("navigator.serviceWorker.ready.then(() => true)");
  await page.until("navigator.serviceWorker.controller", "the service worker has the page");
  process.kill(Number(server));
  await page.open("about:blank");
  await page.open(url);
  await page.until(seenAll, "all runs without its server");
  console.log("it works without a network");
  const elsewhere = page.requests.filter((it) => !it.startsWith(url) && !/^(data|blob|about):/.test(it));
  expect(elsewhere.length === 0, `requests to others: ${elsewhere}`);
  expect(page.complaints.length === 0, `the console has: ${page.complaints.join("\n")}`);
} catch (error) {
  failed = error;
}
await browser.end();
if (failed) throw failed;
