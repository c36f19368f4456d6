// Walks a newcomer's ten questions through the built site: walk.mjs SITE SHOTS AXE. SITE is its folder, SHOTS gets pictures, and AXE is
// axe-core's file, without which accessibility is not judged. Each question is
// answered within two clicks from the start page, and by one search from there: the first five pages that the search finds have the page
// of the answer. The answer has to be read there: it is on the page, and not hidden.
import { existsSync } from "node:fs";
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { Browser } from "../playground/browser.mjs";

const [site, shots, axe] = process.argv.slice(2).map((it) => resolve(it));
// The question, the links to follow (a part of their text each), the page, what it says there, and what to search for.
const questions = [
  ["Which mechanism should I use for NB-IoT?", ["which mechanism should I use?"], "rank", "`coapace rank nb-iot`|10 to 400 clients behind an NB-IoT-like link", "which mechanism should I use"],
  ["How do I model my link?", ["My network in ten minutes"], "my-network", "You know your link roughly: its rate, its delay, its losses", "my network"],
  ["What does ±0.9 mean?", ["statistics"], "statistics", "± is half of its 95 % confidence interval", "confidence interval"],
  ["How do I write my own mechanism?", ["In Python, Rust and C, side by side"], "write-a-mechanism", "A mechanism answers three calls", "write a mechanism"],
  ["How do I cite?", ["Figures for a paper: cite"], "figures", "Cite Coapace, and the papers of the mechanisms that you use", "cite"],
  ["How do I put it into libcoap?", [/stacks|libcoap/], "stacks", "libcoap", "libcoap"],
  ["What does serve need to run as a service?", ["A unit of systemd, a directory, and keys"], "operating", "runs the server under its own account without privileges", "systemd"],
  ["How do I get one PDF chart in IEEE's width?", ["One command"], "figures", "--figure-size column", "pdf chart ieee"],
  ["What does the relay do?", ["how messages pass"], "relay", "the request, by the mechanism", "relay messages"],
  ["Is it safe to switch on?", ["coexistence"], "coexistence", "How much do clients with different mechanisms at one bottleneck take from each other", "coexistence"],
];
const expect = (truth, what) => { if (!truth) throw new Error(what); };
// The references have every public name.
const repository = (path) => readFile(join(import.meta.dirname, "../..", path), "utf8");
const names = /__all__ = \[(.*?)\]/s.exec(await repository("crates/py/python/coapace/__init__.py"))[1].match(/\w+/g).filter((it) => it !== "__version__");
const references = [["python-api", names.map((it) => `id="coapace.${it}"`)]];
for (const [name, path] of [["c-source", "c/coapace.h"], ["c-library", "crates/ffi/include/coapace.h"]]) {
  const declared = (await repository(path)).match(/^(?:static )?(?:inline )?(?:const )?\w+[ \w]*[ *]+coapace_\w+(?=\()/gm).map((it) => /\w+$/.exec(it)[0]);
  references.push([name, declared.map((it) => `id="${it}"`)]);
}
for (const [name, wanted] of references) {
  const html = await readFile(join(site, `${name}.html`), "utf8");
  const missing = wanted.filter((it) => !html.includes(it));
  expect(wanted.length > 10 && !missing.length, `${name}.html lacks ${missing} of ${wanted.length}`);
  console.log(`${name}.html has all ${wanted.length} names`);
}
const start = pathToFileURL(join(site, "index.html")).href;
const browser = await Browser.start();
let failed = null;
try {
  const page = await browser.page();
  await page.look(1400, false);
  const at = (name) => `location.pathname.endsWith("/${name}.html") && document.readyState === "complete"`;
  const opened = async () => {
    await page.open("about:blank");
    await page.open(start);
    await page.until(at("index"), "the start page");
  };
  const says = (text) => page.value(`(() => {
    const plain = (it) => it.replaceAll("\`", "").replace(/\\s+/g, " ");
    const read = plain(document.querySelector("article").innerText);
    return ${JSON.stringify(text)}.split("|").some((it) => read.includes(plain(it)));
  })()`);
  /** Opens a page as a first visitor with this window and theme does. */
  const fresh = async (name, width, dark) => {
    await page.open("about:blank");
    await page.until(`location.href === "about:blank"`);
    await page.look(width, dark);
    // The site keeps the theme of the first visit.
    await page.send("Storage.clearDataForOrigin", { origin: "file://", storageTypes: "local_storage" });
    await page.open(pathToFileURL(join(site, `${name}.html`)).href);
    await page.until(at(name.split("/").pop()), name);
    await page.value("document.fonts.ready.then(() => true)");
    await page.until(`document.body.dataset.mdColorScheme === "${dark ? "slate" : "default"}"`, `${name} has the theme of the system`);
    // Colours change over a quarter of a second.
    await new Promise((done) => setTimeout(done, 400));
  };
  for (const [question, links, name, text, query] of questions) {
    await opened();
    // The start page asks the question in these words, and the first link is in its answer.
    for (const [place, link] of links.entries()) {
      // The click comes after the answer, which a page that is being left would not give.
      const found = await page.value(`(() => {
        const items = [...document.querySelectorAll("article li")].filter((it) => ${place} || it.querySelector("strong")?.innerText.startsWith(${JSON.stringify(question.slice(0, 12))}));
        const wanted = ${link instanceof RegExp ? String(link) : JSON.stringify(link)};
        const fits = (it) => wanted instanceof RegExp ? wanted.test(it.innerText + it.href) : it.innerText.includes(wanted);
        const one = items.flatMap((it) => [...it.querySelectorAll("a")]).find(fits);
        setTimeout(() => one?.click());
        return one ? one.href : null;
      })()`);
      expect(found, `${question}: the start page has no link ${link}`);
      await page.until(`location.href === ${JSON.stringify(found)} && document.readyState === "complete"`, `${question}: ${found}`);
    }
    await page.until(at(name), `${question}: ${name}`);
    expect(await says(text), `${question}: ${name}.html does not say: ${text}`);
    // One search.
    await opened();
    await page.value(`(() => {
      const input = document.querySelector("[data-md-component=search-query]");
      input.focus();
      input.value = ${JSON.stringify(query)};
      input.dispatchEvent(new Event("focus"));
      input.dispatchEvent(new KeyboardEvent("keyup", { bubbles: true }));
      input.dispatchEvent(new Event("input", { bubbles: true }));
    })()`);
    await page.until(`document.querySelectorAll(".md-search-result__item").length`, `${question}: a search for ${query} finds something`);
    const pages = await page.value(`[...document.querySelectorAll(".md-search-result__item > a")].slice(0, 5).map((it) => it.pathname.split("/").pop())`);
    expect(pages.includes(`${name}.html`), `${question}: a search for "${query}" finds ${pages}, and not ${name}.html`);
    console.log(`${question} ${links.length === 1 ? "one click" : `${links.length} clicks`}, or search "${query}" (${pages.indexOf(`${name}.html`) + 1}.): ${name}.html`);
  }

  // The pages are accessible, but for two habits of the theme: code that scrolls has no focus, and its buttons share a name.
  if (existsSync(axe)) {
    const source = await readFile(axe, "utf8");
    for (const name of ["index", "reproductions/betzler2015", "reproductions/meng2017", "python-api", "c-source"]) {
      for (const dark of [false, true]) {
        await fresh(name, 1400, dark);
        await page.value(source);
        const violations = await page.value(`axe.run(document, { resultTypes: ["violations"], rules: { "scrollable-region-focusable": { enabled: false }, "landmark-unique": { enabled: false } } })
          .then(({ violations }) => violations.map((it) => it.id + ": " + it.nodes.map((node) => node.html.slice(0, 160)).join(" | ")))`);
        expect(violations.length === 0, `${name}, ${dark ? "dark" : "light"}: ${violations.join("\n")}`);
      }
    }
    console.log("axe finds no violation");
  } else {
    console.log("skipped: accessibility (axe-core is not there)");
  }

  // Every paper's page has charts with titles and descriptions, links to the playground, and fits the window.
  await mkdir(shots, { recursive: true });
  for (const name of ["index", "reproductions/raitahila2019", "reproductions/betzler2015", "reproductions/meng2017", "reproductions/ancillotti2018", "reproductions/rathod2022"]) {
    for (const [width, dark] of [[390, false], [390, true], [900, false], [900, true], [1400, false], [1400, true]]) {
      await fresh(name, width, dark);
      const wide = await page.value("document.documentElement.scrollWidth");
      expect(wide <= width, `${name}: ${wide} px wide in a window of ${width}`);
      if (["index", "reproductions/raitahila2019", "reproductions/betzler2015"].includes(name)) {
        await writeFile(join(shots, `${name.split("/").pop()}-${width}-${dark ? "dark" : "light"}.png`), await page.picture());
      }
    }
    if (name === "index") continue;
    const charts = await page.value(`[...document.querySelectorAll(".gallery figure")].map((it) => ({
      title: it.querySelector("svg > title")?.textContent, desc: it.querySelector("svg > desc")?.textContent,
      link: it.querySelector("a")?.getAttribute("href"), command: it.querySelector("code")?.textContent,
      small: Math.min(...[...it.querySelectorAll("svg text")].map((text) => text.getBoundingClientRect().height)),
    }))`);
    expect(charts.length > 0, `${name} has no charts`);
    for (const it of charts) {
      expect(it.title && it.desc && !/NaN|undefined|None/.test(it.desc), `${name}: a chart without a description: ${JSON.stringify(it)}`);
      expect(it.link?.startsWith("../playground/index.html#s=") && it.command?.startsWith("coapace run "), `${name}: ${it.title} has no link or command`);
    }
    console.log(`${name}: ${charts.length} charts`);
  }
  const elsewhere = page.requests.filter((it) => !/^(file|data|blob|about):/.test(it));
  expect(elsewhere.length === 0, `requests to others: ${elsewhere}`);
} catch (error) {
  failed = error;
}
await browser.end();
if (failed) throw failed;
