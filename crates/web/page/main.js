// The page: its state, its controls, and the runs that they ask for.
import init, * as coapace from "./coapace.js";
import { Chart, boxes, download, html, isDark, ladder, lines, make, messageText, number, onTheme } from "./charts.js";
import { Pool } from "./pool.js";
import { showFilm } from "./film-frame.js";
import { readCapture, setUpCapture } from "./capture.js";

const find = (id) => document.getElementById(id);
const STEP_MS = 60; // the shortest time between two pictures of the same results
const FIRST = ["default", "cocoa", "fasor", "ebb"]; // the mechanisms of a first visit, if the scenario suits them
const SERIES = 8; // the most mechanisms whose runs are recorded over time

let catalogue, pool, about, gathering;
// What is asked for. `text` is the file of a scenario that is not built in.
let state = { name: "nb-iot", text: null, set: {}, mechanisms: [], seeds: 20 };
let turn = 0; // the number of the request that runs belong to
let series = new Map(), sums = null, asked = null;
let hop = null; // the hop that was chosen
const charts = {};

// ---- The state in the address -------------------------------------------------------------------------------------------------
async function packed(text, Stream) {
  const stream = new Blob([text]).stream().pipeThrough(new Stream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
async function remember() {
  const query = new URLSearchParams({ s: state.name, m: state.mechanisms.join(" "), n: state.seeds });
  for (const [key, value] of Object.entries(state.set)) query.append("set", `${key}=${value}`);
  if (state.text !== null) {
    query.set("t", btoa(String.fromCharCode(...await packed(state.text, CompressionStream))).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", ""));
  }
  history.replaceState(null, "", `#${query}`);
}
async function recalled() {
  const query = new URLSearchParams(location.hash.slice(1)), found = { ...state, text: null, set: {} };
  // A first visit sees a network that is busy.
  if (!query.has("s")) found.set.clients = "100";
  if (query.has("t")) {
    try {
      const bytes = Uint8Array.from(atob(query.get("t").replaceAll("-", "+").replaceAll("_", "/")), (c) => c.charCodeAt(0));
      found.text = new TextDecoder().decode(await packed(bytes, DecompressionStream));
    } catch {
      fault("The link is damaged: its scenario cannot be read.");
    }
  }
  if (query.has("s")) found.name = query.get("s");
  if (found.text === null && !builtin(found.name)) found.name = "nb-iot";
  for (const setting of query.getAll("set")) {
    const at = setting.indexOf("=");
    if (at > 0) found.set[setting.slice(0, at)] = setting.slice(at + 1);
  }
  found.mechanisms = (query.get("m") ?? "").split(" ").filter(Boolean);
  if (query.has("n")) found.seeds = Math.min(1000, Math.max(1, Number(query.get("n")) || 20));
  return found;
}

const builtin = (name) => catalogue.scenarios.find((it) => it.name === name);
const text = () => state.text ?? builtin(state.name).text;
const settings = () => JSON.stringify(Object.entries(state.set));
function fault(message) {
  find("fault").textContent = message ?? "";
  find("fault").hidden = !message;
}

// ---- The look of mechanisms ---------------------------------------------------------------------------------------------------
function look(label) {
  const own = catalogue.mechanisms.find((it) => it.name === label) ?? catalogue.mechanisms.find((it) => it.name === label.split(/[:+*]/)[0]);
  const { colours, dash } = own ?? { colours: ["#57534e", "#b8b3a9"], dash: "5 2" };
  return { colour: colours[isDark() ? 1 : 0], dash };
}
function key(label) {
  const svg = make("svg", { class: "key", viewBox: "0 0 24 12", "aria-hidden": "true" });
  const { colour, dash } = look(label);
  make("line", { x1: 0, x2: 24, y1: 6, y2: 6, stroke: colour, "stroke-width": 4, "stroke-dasharray": dash }, svg);
  return svg;
}

// ---- Controls -------------------------------------------------------------------------------------------------------------------
function open(name, file = null) {
  let found;
  try {
    found = JSON.parse(coapace.describe(name, file ?? builtin(name).text));
  } catch (error) {
    fault(String(error));
    return false;
  }
  fault();
  about = found;
  const isSame = state.name === name && state.text === file;
  state.name = name;
  state.text = file;
  if (!isSame) [state.set, state.mechanisms] = [{}, []];
  const known = new Set(about.knobs.map((knob) => knob.name));
  state.set = Object.fromEntries(Object.entries(state.set).filter(([knob]) => known.has(knob) || knob.includes(".")));
  if (!state.mechanisms.length) {
    state.mechanisms = name === "nb-iot" ? [...FIRST] : about.mechanisms.slice(0, 6);
  }
  const own = find("scenario").querySelector("[data-own]");
  own?.remove();
  if (file !== null) find("scenario").append(html("option", { value: "", textContent: `${name} (your file)`, "data-own": "" }));
  find("scenario").value = file === null ? name : "";
  find("summary").textContent = about.summary;
  controls();
  begin();
  return true;
}

const words = (name) => name.replaceAll(/[-_]/g, " ");
function knob(it) {
  const now = () => state.set[it.name] ?? it.value, id = `knob-${it.name}`;
  const output = html("output", { textContent: now() });
  output.htmlFor = id;
  const row = html("div", { className: "knob" });
  const name = html("span", { textContent: words(it.name) });
  const set = (value) => {
    if (value === it.value) delete state.set[it.name];
    else state.set[it.name] = value;
    output.textContent = value;
    row.classList.toggle("changed", it.name in state.set);
    later();
  };
  let input;
  if (it.kind === "range") {
    const place = Math.max(0, it.steps.indexOf(now()));
    input = html("input", { type: "range", min: 0, max: it.steps.length - 1, value: place, "aria-valuetext": now() });
    input.addEventListener("input", () => {
      input.setAttribute("aria-valuetext", it.steps[input.value]);
      set(it.steps[input.value]);
    });
  } else if (it.kind === "choice") {
    const steps = it.steps.includes(now()) ? it.steps : [now(), ...it.steps];
    input = html("select", {}, ...steps.map((step) => html("option", { textContent: step })));
    input.value = now();
    input.addEventListener("change", () => set(input.value));
  } else {
    input = html("input", { type: "text", value: now(), title: it.accepts });
    input.addEventListener("change", () => set(input.value.trim() || it.value));
  }
  input.id = id;
  row.classList.toggle("changed", it.name in state.set);
  const label = html("label", { className: "name", htmlFor: id }, name);
  if (it.kind === "range") label.append(output);
  row.append(label, input);
  return row;
}
function controls() {
  find("knobs").replaceChildren(...(about.knobs.length ? about.knobs.map(knob) : [html("p", { className: "soft", textContent: "This scenario has none." })]));
  find("seeds").value = state.seeds;
  if (find("seeds").value === "") find("seeds").append(new Option(state.seeds, state.seeds, true, true));
  const box = (label, summary) => {
    const input = html("input", { type: "checkbox", checked: state.mechanisms.includes(label) });
    input.addEventListener("change", () => {
      state.mechanisms = input.checked ? [...state.mechanisms, label] : state.mechanisms.filter((it) => it !== label);
      begin();
    });
    return html("label", { title: summary }, input, key(label), label);
  };
  const offered = catalogue.mechanisms.filter((it) => it.is_bulk ? about.has_transfers : !(it.name === "tcp" && (about.is_mesh || about.has_flows)));
  const summary = (label) => offered.find((it) => it.name === label)?.summary ?? "";
  const shown = [...new Set([...state.mechanisms, ...about.mechanisms, ...FIRST])].filter((label) => label.includes(":") || label.includes("+") || summary(label));
  const others = offered.filter((it) => !shown.includes(it.name));
  find("mechanisms").replaceChildren(...shown.map((label) => box(label, summary(label))),
    html("details", {}, html("summary", { textContent: `${others.length} more` }), ...others.map((it) => box(it.name, it.summary))),
    stack());
}
/** A list of the timers that stacks ship, of which one can be added. */
function stack() {
  const list = html("select", { "aria-label": "Your stack" }, new Option("Your stack…", ""));
  for (const { label, name, summary } of catalogue.stacks.filter((it) => !state.mechanisms.includes(it.label))) {
    const option = new Option(name, label);
    option.title = summary;
    list.append(option);
  }
  list.addEventListener("change", () => {
    state.mechanisms = [...state.mechanisms, list.value];
    controls();
    begin();
  });
  return list;
}

// ---- Runs -----------------------------------------------------------------------------------------------------------------------
let timer = null;
function later() {
  timer ??= setTimeout(() => {
    timer = null;
    begin();
  }, 40);
}
function begin() {
  pool.cancel("runs");
  const mine = ++turn;
  gathering?.free();
  gathering = null;
  remember();
  const made = { name: state.name, text: text(), settings: settings(), mechanisms: [...state.mechanisms] };
  find("command").textContent = command();
  if (!made.mechanisms.length) {
    fault("Choose a mechanism.");
    return;
  }
  try {
    coapace.check(made.name, made.text, made.settings);
    gathering = new coapace.Gathering(made.name, made.text, made.settings, JSON.stringify(made.mechanisms));
  } catch (error) {
    fault(String(error));
    return;
  }
  fault();
  asked = made;
  series = new Map();
  const all = made.mechanisms.length * state.seeds;
  let done = 0;
  find("progress").value = 0;
  for (let seed = 1; seed <= state.seeds; seed++) {
    made.mechanisms.forEach((label, place) => {
      // The first run of each is recorded over time.
      const isRecorded = seed === 1 && place < SERIES;
      pool.call("run", [made.name, made.text, made.settings, label, seed, isRecorded], { group: "runs" }).then((result) => {
        if (turn !== mine) return;
        const parts = /^\{"run":(.*),"film":(.*)\}$/s.exec(result);
        gathering.add(place, parts[1]);
        if (isRecorded) series.set(label, { run: JSON.parse(parts[1]), film: parts[2] === "null" ? null : parts[2] });
        done++;
        find("progress").value = done / all;
        find("status").textContent = done < all ? `${done} of ${all} runs` : all === 1 ? "1 run made" : `${all} runs made`;
        picture(isRecorded && (series.size === Math.min(SERIES, made.mechanisms.length) || series.size === 1), done === all);
      }, (error) => {
        if (turn === mine) fault(`${label}: ${error}`);
      });
    });
    if (seed === 1) askLadder();
  }
}

let drawn = 0, waiting = null, isNew = false;
function picture(hasSeries, isLast) {
  isNew ||= hasSeries;
  if (waiting) return;
  waiting = setTimeout(() => {
    waiting = null;
    drawn = performance.now();
    if (!gathering) return;
    sums = JSON.parse(gathering.sums());
    results();
    if (isNew) overTime();
    isNew = false;
    performance.getEntriesByName("first-result").length || performance.mark("first-result");
    document.documentElement.dataset.drawn = turn;
  }, isLast ? 0 : Math.max(0, STEP_MS - (performance.now() - drawn)));
}

// ---- Results --------------------------------------------------------------------------------------------------------------------
const interval = (metric, value) => (value ? number(value[0], metric.digits) + (value[1] === null ? "" : ` ± ${number(value[1], 2)}`) : "–");
function results() {
  find("verdict").textContent = sums.sentences.join(" ").replaceAll(" %", "\u00a0%") || (sums.rows.length > 1 ? "" : "Choose a second mechanism to compare.");
  const [main] = sums.metrics, title = main.title[0].toUpperCase() + main.title.slice(1);
  find("boxes-title").textContent = title;
  find("boxes-text").textContent = `${sums.boxes ? `A box is the middle half of the ${sums.boxes.replace(/ in seconds$/, "")} over all runs, its whiskers reach from 10 to 90 %, and the bar below it is the 95 % interval of the ${main.title}.` : `A point is the mean of the runs, and the bar its 95 % interval.`} ${main.better ? `${main.better[0].toUpperCase()}${main.better.slice(1)} is better.` : ""}`;
  const rows = sums.rows.map((row) => ({
    name: row.mechanism, look: look(row.mechanism), quantiles: row.quantiles, runs: row.runs,
    mean: row.values[0]?.[0] ?? null, half: row.values[0]?.[1] ?? null,
    text: `${row.mechanism}: ${main.axis} ${interval(main, row.values[0])}, ${row.runs} runs`,
  }));
  charts.boxes.show((width) => boxes(rows.map((row) => ({ ...row, look: look(row.name) })), { title: sums.boxes || main.axis, label: `${title}. ${rows.map((row) => row.text).join("; ")}.` }, width));
  const best = sums.metrics.map((metric, i) => {
    const known = sums.rows.map((row) => row.values[i]?.[0]).filter((it) => it !== undefined);
    return metric.better && new Set(known).size > 1 ? Math[metric.better === "lower" ? "min" : "max"](...known) : null;
  });
  const head = html("tr", {}, html("th", { scope: "col", textContent: "mechanism" }),
    ...sums.metrics.map((metric) => html("th", { scope: "col", title: metric.about, textContent: metric.title + (metric.unit ? ` (${metric.unit})` : "") })), html("th", { scope: "col", textContent: "runs" }));
  const body = sums.rows.map((row) => html("tr", {}, html("th", { scope: "row", textContent: row.mechanism }), ...sums.metrics.map((metric, i) => {
    const value = row.values[i], cell = html("td", { className: value && value[0] === best[i] ? "best" : "" }, value ? number(value[0], metric.digits) : "–");
    if (value && value[1] !== null) cell.append(html("small", { textContent: ` ± ${number(value[1], 2)}` }));
    return cell;
  }), html("td", { textContent: row.runs })));
  find("table").replaceChildren(html("caption", { className: "soft", textContent: "Values of each mechanism, the best of a column in bold" }), html("thead", {}, head), html("tbody", {}, ...body));
}

const TCP = "tcp"; // the mechanism that is no timer of CoAP
function chartOfSeries(chart, of, title, steps, note = "") {
  const found = asked.mechanisms.flatMap((label) => {
    const own = series.has(label) ? of(series.get(label).run) : null;
    return own?.points.length ? [{ name: label, points: own.points, step: own.name }] : [];
  });
  chart.show(found.length ? (width) => lines(found.map((it) => ({ ...it, look: look(it.name) })), { title, steps, label: `${title} over time: ${found.map((it) => `${it.name} up to ${number(Math.max(...it.points.map(([, v]) => v)))}`).join(", ")}` }, width) : null, note);
}
function overTime() {
  const without = asked.mechanisms.includes(TCP) ? `${TCP} is not drawn: its retransmission timer is the TCP stack's own, which CoAP does not see.` : "";
  chartOfSeries(charts.rto, (run) => run.rto[0], "timeout in seconds", true, without);
  chartOfSeries(charts.bytes, (run) => run.arrived[0], "bytes moved", true);
  // The longest queue comes first.
  const peaks = new Map();
  for (const { run } of series.values()) for (const { name, points } of run.queues) {
    peaks.set(name, points.reduce((most, [, bytes]) => Math.max(most, bytes), peaks.get(name) ?? 0));
  }
  const hops = [...peaks.keys()].sort((a, b) => peaks.get(b) - peaks.get(a));
  const before = find("hop").value;
  find("hop").replaceChildren(...hops.map((name) => new Option(name)));
  if (hops.includes(before) && hop === before) find("hop").value = before;
  queue();
  const films = [...series].filter(([, it]) => it.film).map(([label]) => label);
  const film = find("film-of").value;
  find("film-of").replaceChildren(...films.map((label) => new Option(label)));
  if (films.includes(film)) find("film-of").value = film;
  find("figure-film").hidden = !films.length;
  if (films.length) filmOf();
}
const queue = () => chartOfSeries(charts.queue, (run) => run.queues.find((it) => it.name === find("hop").value), "bytes that wait", true);
function filmOf() {
  const label = find("film-of").value, own = series.get(label);
  if (own?.film) showFilm(find("film"), own.film, label);
}

// ---- The ladder -----------------------------------------------------------------------------------------------------------------
let exchanges = [];
function askLadder(first = false) {
  const list = find("ladder-mechanism"), before = list.value;
  const labels = asked.mechanisms.filter((label) => label !== TCP);
  find("ladder-choice").hidden = !labels.length;
  list.replaceChildren(...labels.map((label) => new Option(label)));
  if (labels.includes(before)) list.value = before;
  const without = labels.length === asked.mechanisms.length ? "" : `${TCP} is not drawn: TCP carries the messages in its segments, and sends these again by itself.`;
  if (!labels.length) return charts.ladder.show(null, without);
  const mine = turn;
  pool.call("ladder", [asked.name, asked.text, asked.settings, list.value, 1], { group: "runs", first }).then((result) => {
    if (turn !== mine) return;
    exchanges = JSON.parse(result).exchanges;
    const copies = (it) => it.messages.filter((message) => message.goes_out).length;
    find("ladder-exchange").replaceChildren(...exchanges.map((it, i) =>
      new Option(`client ${it.client}, exchange ${it.exchange}: ${copies(it)} ${copies(it) === 1 ? "transmission" : "transmissions"}`, i)));
    // The first exchange that shows the timer at work.
    const shown = Math.max(0, exchanges.findIndex((it) => copies(it) > 1 && copies(it) < 6));
    find("ladder-exchange").value = shown;
    drawLadder(without);
  }, () => charts.ladder.show(null));
}
function drawLadder(note = charts.ladder.note.textContent) {
  const exchange = exchanges[Number(find("ladder-exchange").value)];
  if (!exchange) return charts.ladder.show(null, note);
  const start = exchange.messages[0]?.sent_s ?? 0;
  const listed = exchange.messages.map((it) => messageText(it, start));
  charts.ladder.show((width) => [
    ladder(exchange, `Exchange ${exchange.exchange} of client ${exchange.client}, ${exchange.messages.length} messages. They are listed below.`, width),
    html("details", {}, html("summary", { textContent: "As a list", className: "soft" }), html("ol", { className: "list soft" }, ...listed.map((line) => html("li", { textContent: line })))),
  ], note);
}

// ---- Taking the results along -----------------------------------------------------------------------------------------------------
const quoted = (word) => (/^[\w.:/,=+%@-]+$/.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
function command() {
  const set = Object.entries(state.set).map(([knob, value]) => `--set ${quoted(`${knob}=${value}`)}`);
  return ["coapace run", state.text === null ? state.name : `${state.name}.toml`, ...set, ...state.mechanisms.map((label) => `-m ${quoted(label)}`), `--seeds ${state.seeds}`].join(" ");
}
async function copied(button, what) {
  const before = button.textContent;
  try {
    await navigator.clipboard.writeText(what);
    button.textContent = "Copied";
  } catch {
    button.textContent = "The browser refuses";
  }
  setTimeout(() => { button.textContent = before; }, 1500);
}
export async function packetsOf(mechanism) {
  const now = asked ?? { name: state.name, text: text(), settings: settings() };
  return pool.call("capture", [now.name, now.text, now.settings, mechanism ?? now.mechanisms[0], 1], { first: true });
}

// ---- Set-up ---------------------------------------------------------------------------------------------------------------------
function tab(name) {
  for (const it of ["simulate", "capture"]) {
    const isIt = it === name;
    find(`tab-${it}`).setAttribute("aria-selected", isIt);
    find(`tab-${it}`).tabIndex = isIt ? 0 : -1;
    find(it).hidden = !isIt;
  }
}
async function openFile(file) {
  if (/\.(pcap|pcapng|cap)$/i.test(file.name)) {
    tab("capture");
    readCapture(file.name, new Uint8Array(await file.arrayBuffer()));
  } else if (file.size > 1 << 16) {
    fault(`${file.name} is neither a capture (.pcap, .pcapng) nor a scenario: it is longer than 64 KiB.`);
  } else {
    tab("simulate");
    const name = file.name.replace(/\.[^.]*$/, "");
    open(name, await file.text());
  }
}
function setUp() {
  Object.assign(charts, { boxes: new Chart("figure-boxes", "results"), rto: new Chart("figure-rto", "timeouts"), bytes: new Chart("figure-bytes", "bytes"), queue: new Chart("figure-queue", "queue"), ladder: new Chart("figure-ladder", "exchange") });
  for (const name of ["rto", "bytes", "queue"]) charts[name].show(null);
  find("scenario").replaceChildren(...catalogue.scenarios.map((it) => new Option(`${it.title} (${it.name})`, it.name)));
  find("scenario").addEventListener("change", () => find("scenario").value && open(find("scenario").value));
  find("open").addEventListener("click", () => find("file").click());
  find("file").addEventListener("change", () => find("file").files[0] && openFile(find("file").files[0]));
  find("reset").addEventListener("click", () => { state.set = {}; controls(); begin(); });
  find("seeds").addEventListener("change", () => { state.seeds = Number(find("seeds").value); begin(); });
  find("controls").addEventListener("submit", (event) => event.preventDefault());
  find("hop").addEventListener("change", () => { hop = find("hop").value; queue(); });
  find("film-of").addEventListener("change", filmOf);
  find("ladder-mechanism").addEventListener("change", () => askLadder(true));
  find("ladder-exchange").addEventListener("change", () => drawLadder());
  const file = (ending) => `coapace-${state.name}.${ending}`;
  find("csv").addEventListener("click", () => gathering && download(file("csv"), gathering.csv(false), "text/csv"));
  find("csv-each").addEventListener("click", () => gathering && download(file("runs.csv"), gathering.csv(true), "text/csv"));
  find("toml").addEventListener("click", () => asked && download(file("toml"), JSON.parse(coapace.check(asked.name, asked.text, asked.settings)).toml, "application/toml"));
  find("pcapng").addEventListener("click", async () => download(file("pcapng"), await packetsOf(find("ladder-mechanism").value), "application/octet-stream"));
  find("link").addEventListener("click", () => copied(find("link"), location.href));
  find("copy").addEventListener("click", () => copied(find("copy"), find("command").textContent));
  const tabs = ["simulate", "capture"];
  for (const name of tabs) {
    find(`tab-${name}`).addEventListener("click", () => tab(name));
    find(`tab-${name}`).addEventListener("keydown", (event) => {
      if (event.key !== "ArrowLeft" && event.key !== "ArrowRight") return;
      const other = tabs.find((it) => it !== name);
      tab(other);
      find(`tab-${other}`).focus();
    });
  }
  addEventListener("dragover", (event) => { event.preventDefault(); document.body.classList.add("dragging"); });
  addEventListener("dragleave", (event) => { if (!event.relatedTarget) document.body.classList.remove("dragging"); });
  addEventListener("drop", (event) => {
    event.preventDefault();
    document.body.classList.remove("dragging");
    if (event.dataTransfer.files[0]) openFile(event.dataTransfer.files[0]);
  });
  addEventListener("hashchange", async () => { state = await recalled(); open(state.name, state.text); });
  onTheme(() => { controls(); filmOf(); });
  // On a narrow screen the results stay in sight while knobs are moved.
  new IntersectionObserver(([it]) => document.body.classList.toggle("choosing", it.isIntersecting)).observe(find("controls"));
  setUpCapture({ pool, look, packetsOf });
  find("version").textContent = catalogue.version;
}

try {
  const module = await WebAssembly.compileStreaming(fetch("coapace.wasm"));
  pool = new Pool(module);
  await init({ module_or_path: module });
  catalogue = JSON.parse(coapace.catalogue());
  setUp();
  state = await recalled();
  if (!open(state.name, state.text)) open("nb-iot");
  // Tests repeat runs in the browser.
  globalThis.coapace = coapace;
  if ("serviceWorker" in navigator && isSecureContext) navigator.serviceWorker.register("sw.js");
} catch (error) {
  fault(`The playground cannot be started: ${error.message ?? error}`);
}
