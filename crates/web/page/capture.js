// Captures: what they show, and what each mechanism would have done.
import { Chart, boxes, download, html, number } from "./charts.js";

const find = (id) => document.getElementById(id);
let tools, chart, shown = null, last = null;

const seconds = (s) => (s >= 1 ? `${number(s)} s` : s >= 1e-3 ? `${number(1e3 * s)} ms` : `${number(1e6 * s)} µs`);
const count = (x) => x.toLocaleString("en-GB").replaceAll(",", "\u202f");
const percent = (share) => `${number(100 * share, share < 0.1 ? 2 : 3)} %`;

function facts({ findings: it }) {
  const rtt = it.round_trips, loss = it.loss, timeouts = it.timeouts;
  const nearest = timeouts?.nearest;
  return [
    ["Exchanges", count(it.exchanges), `${count(it.completed)} answered, ${it.given_up} given up; ${it.clients} ${it.clients === 1 ? "client" : "clients"}, ${it.servers} ${it.servers === 1 ? "server" : "servers"}`],
    ["Retransmissions", count(it.retransmissions), it.spurious === null ? "" : `${it.spurious} spurious: an earlier copy was answered`],
    ["Round trip, median", rtt ? seconds(rtt.p50_s) : "–", rtt ? `${seconds(rtt.min_s)} to ${seconds(rtt.max_s)}, 95 % below ${seconds(rtt.p95_s)}` : "the capture shows none"],
    ["Lost", loss ? percent(loss.share) : "–", loss ? `95 % interval ${percent(loss.low)} to ${percent(loss.high)}` : "the capture does not show it"],
    ["First timeout, median", timeouts ? seconds(timeouts.first_p50_s) : "–", timeouts ? `${seconds(timeouts.first_min_s)} to ${seconds(timeouts.first_max_s)}` : "no request was sent again"],
    ["Acts like", nearest?.mechanism ?? "–", nearest ? "the known mechanism that is nearest to the timeouts" : "the capture does not show it"],
    ["Taken", { client: "beside the clients", server: "beside the server", middle: "between both" }[it.side] ?? it.side, { said: "as you say", looks: "by its copies and answers", assumed: "assumed: nothing in it shows where" }[it.side_because] ?? ""],
    ["Packets", count(it.reading.packets), `${count(it.reading.messages)} CoAP messages in ${seconds(it.reading.seconds)}`],
  ];
}

function show(name, advice) {
  shown = advice;
  const { findings, replays } = advice;
  const nearest = findings.timeouts?.nearest?.mechanism, own = replays.find((it) => it.mechanism === nearest), best = replays[0];
  let verdict = `${name}: ${count(findings.exchanges)} exchanges, ${findings.given_up} given up.`;
  if (best && own && own !== best) verdict += ` The clients act like ${nearest}, with which an answer takes ${seconds(own.mean_s)} here on average; with ${best.mechanism} it would take ${seconds(best.mean_s)}.`;
  else if (best) verdict += ` In the replay ${best.mechanism} has the shortest mean time to an answer: ${seconds(best.mean_s)}.`;
  else verdict += " The server’s side shows no round trips, so nothing can be replayed; capture beside the clients.";
  find("advice-verdict").textContent = verdict;
  find("facts").replaceChildren(...facts(advice).map(([term, value, more]) =>
    html("div", {}, html("dt", { textContent: term }), html("dd", {}, String(value), html("small", { textContent: more })))));
  const rows = replays.map((it) => ({ name: it.mechanism, quantiles: null, runs: 1, mean: it.mean_s, half: null, until: it.p95_s, text: `${it.mechanism}: mean ${seconds(it.mean_s)}, 95 % within ${seconds(it.p95_s)}` }));
  chart.show(rows.length ? (width) => boxes(rows.map((row) => ({ ...row, look: tools.look(row.name), quantiles: [row.mean, row.mean, row.mean, row.mean, row.until] })),
    { title: "seconds to the answer: mean, and 95 % within", label: `Time to the answer. ${rows.map((row) => row.text).join("; ")}.` }, width) : null);
  const share = (count, of) => percent(count / Math.max(1, of));
  const columns = [["mechanism", (it) => it.mechanism], ["first timeout, median", (it) => seconds(it.first_timeout_s)], ["retransmissions per exchange", (it) => share(it.retransmissions, it.exchanges)], ["spurious", (it) => share(it.spurious, it.exchanges)], ["given up", (it) => share(it.given_up, it.exchanges)], ["mean time", (it) => seconds(it.mean_s)], ["95 % within", (it) => seconds(it.p95_s)]];
  find("replays").replaceChildren(html("thead", {}, html("tr", {}, ...columns.map(([title]) => html("th", { scope: "col", textContent: title })))),
    html("tbody", {}, ...replays.map((it) => html("tr", {}, ...columns.map(([, of], i) => (i ? html("td", { textContent: of(it) }) : html("th", { scope: "row", textContent: of(it) })))))));
  find("replays").parentElement.hidden = !replays.length;
  find("advice-text").textContent = advice.text;
  find("advice").hidden = false;
}

/** Reads the bytes of a capture, and shows what it says. */
export async function readCapture(name, bytes) {
  last = { name, bytes };
  const ports = find("ports").value.split(/[\s,]+/).filter(Boolean).map(Number);
  const options = { ports: ports.filter((port) => Number.isInteger(port) && port > 0 && port < 65536), side: find("side").value || null };
  find("capture-status").textContent = `Reading ${name}…`;
  try {
    const result = JSON.parse(await tools.pool.call("advise", [name, bytes, JSON.stringify(options)], { first: true }));
    find("capture-status").textContent = "";
    show(name, result);
  } catch (error) {
    find("advice").hidden = true;
    find("capture-status").textContent = `${error}`;
  }
}

export function setUpCapture(own) {
  tools = own;
  chart = new Chart("figure-replays", "replays");
  const again = () => last && readCapture(last.name, last.bytes);
  find("capture-form").addEventListener("submit", (event) => { event.preventDefault(); again(); });
  find("capture-file").addEventListener("change", async () => {
    const [file] = find("capture-file").files;
    if (file) readCapture(file.name, new Uint8Array(await file.arrayBuffer()));
  });
  for (const id of ["side", "ports"]) find(id).addEventListener("change", again);
  find("sample").addEventListener("click", async () => readCapture("simulated.pcapng", await tools.packetsOf()));
  find("advice-json").addEventListener("click", () => shown && download("coapace-findings.json", JSON.stringify(shown, null, 1), "application/json"));
}
