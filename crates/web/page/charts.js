// Charts as SVG that stands by itself: every colour is an attribute, so that it can be saved as it is.

const NS = "http://www.w3.org/2000/svg";
const FONT = 'system-ui, "Segoe UI", Roboto, "Helvetica Neue", Arial, sans-serif';
const dark = matchMedia("(prefers-color-scheme: dark)");

export const isDark = () => dark.matches;
export const onTheme = (act) => dark.addEventListener("change", act);
const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(`--${name}`).trim();

/** Makes an element of HTML with properties and children. */
export function html(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name in element) element[name] = value;
    else element.setAttribute(name, value);
  }
  element.append(...children);
  return element;
}

export function make(tag, attributes = {}, parent = null, text) {
  const element = document.createElementNS(NS, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  parent?.append(element);
  return element;
}

/** A number with so many significant digits; a dash if it is not known. */
export function number(x, digits = 3) {
  if (x === null || x === undefined || !Number.isFinite(x)) return "–";
  if (x === 0) return "0";
  if (Math.abs(x) >= 10 ** digits) return Math.round(x).toLocaleString("en-GB").replaceAll(",", "\u202f");
  return x.toFixed(Math.max(0, digits - 1 - Math.floor(Math.log10(Math.abs(x)))));
}

const px = (x) => Math.round(x * 10) / 10;
const ticks = (high, most) => {
  const raw = high / most, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((digit) => digit * power).find((it) => it >= raw);
  return Array.from({ length: Math.floor(high / step + 1e-9) + 1 }, (_, i) => i * step);
};
const tick = (x) => {
  const [by, prefix] = Math.abs(x) >= 1e6 ? [1e6, " M"] : Math.abs(x) >= 1e4 ? [1e3, " k"] : [1, ""];
  return Number((x / by).toPrecision(6)) + prefix;
};

// An empty drawing on paper, with the texts that a screen reader has of it.
function drawing(width, height, label) {
  const svg = make("svg", { xmlns: NS, viewBox: `0 0 ${width} ${px(height)}`, width, height: px(height), role: "img", "aria-label": label, "font-family": FONT, "font-size": 13 });
  make("rect", { width, height: px(height), fill: colour("paper") }, svg);
  return svg;
}
const text = (svg, x, y, value, more = {}) => make("text", { x: px(x), y: px(y), fill: colour("ink"), ...more }, svg, value);
const line = (svg, x1, y1, x2, y2, more = {}) =>
  make("line", { x1: px(x1), y1: px(y1), x2: px(x2), y2: px(y2), stroke: colour("line"), ...more }, svg);
// About the width of a text of 13 px.
const wide = (value) => 7.1 * String(value).length;
const cut = (value, room) => (wide(value) > room ? value.slice(0, Math.max(4, Math.floor(room / 7.1) - 1)) + "…" : value);

function axis(svg, low, high, place, { y0, y1, title, x0, x1 }) {
  for (const value of ticks(high, Math.max(2, Math.floor((x1 - x0) / 85)))) {
    line(svg, place(value), y0, place(value), y1, { stroke: colour("grid") });
    text(svg, place(value), y1 + 17, tick(value), { "text-anchor": "middle", fill: colour("soft"), "font-size": 12 });
  }
  line(svg, x0, y1, x1, y1, { stroke: colour("soft") });
  text(svg, x1, y1 + 35, title, { "text-anchor": "end", fill: colour("soft") });
}

/**
 * Rows of boxes or points with intervals. A row has `name`, `look`, `quantiles` (10, 25, 50, 75 and 90 %; null where there is no end) or
 * null, `mean` and `half`.
 */
export function boxes(rows, { title, label }, width) {
  const narrow = width < 520, row = narrow ? 46 : 30, left = narrow ? 8 : Math.min(190, 14 + Math.max(...rows.map((it) => wide(it.name))));
  const [y0, right] = [6, 14], y1 = y0 + row * rows.length + 4, x1 = width - right;
  const known = rows.flatMap((it) => [...(it.quantiles ?? []), it.mean + (it.half ?? 0)]).filter((x) => Number.isFinite(x) && x !== null);
  const high = (Math.max(...known, 0) || 1) * 1.03;
  const place = (x) => left + (x / high) * (x1 - left);
  const svg = drawing(width, y1 + 44, label);
  axis(svg, 0, high, place, { y0, y1, x0: left, x1, title });
  rows.forEach((it, i) => {
    const top = y0 + row * i, y = top + (narrow ? 31 : row / 2);
    text(svg, narrow ? left : left - 10, narrow ? top + 14 : y + 4.5, cut(it.name, narrow ? x1 - left : 185), narrow ? {} : { "text-anchor": "end" });
    const ink = it.look.colour, group = make("g", {}, svg);
    make("title", {}, group, it.text);
    const q = it.quantiles;
    if (q && q[0] !== null) {
      const at = (i) => (q[i] === null ? x1 : place(q[i]));
      line(group, at(0), y, at(4), y, { stroke: ink, "stroke-width": 1.5, ...(q[4] === null ? { "stroke-dasharray": "2 3" } : {}) });
      for (const end of [0, 4]) if (q[end] !== null) line(group, at(end), y - 4, at(end), y + 4, { stroke: ink, "stroke-width": 1.5 });
      make("rect", { x: px(at(1)), y: y - 8, width: px(Math.max(1, at(3) - at(1))), height: 16, fill: ink, "fill-opacity": 0.28, stroke: ink, rx: 1.5 }, group);
      if (q[2] !== null) line(group, at(2), y - 8, at(2), y + 8, { stroke: ink, "stroke-width": 3 });
    }
    if (Number.isFinite(it.mean) && it.mean !== null) {
      const below = q ? y + 12 : y;
      if (it.half) line(group, place(Math.max(0, it.mean - it.half)), below, place(Math.min(high, it.mean + it.half)), below, { stroke: ink, "stroke-width": 4, "stroke-opacity": q ? 0.75 : 0.5, "stroke-linecap": "round" });
      if (!q) make("circle", { cx: px(place(it.mean)), cy: px(y), r: 5, fill: ink, stroke: colour("paper") }, group);
    } else if (!q) {
      text(group, left + 6, y + 4.5, it.runs ? "not known" : "…", { fill: colour("soft") });
    }
  });
  return svg;
}

/** Lines over time. A series has `name`, `look` and `points`, pairs of seconds and a value. `steps` draws stairs. */
export function lines(series, { title, label, steps = false }, width) {
  const left = 52, right = 14, x1 = width - right;
  // The legend, in as many lines as it needs.
  const entries = [];
  let [x, rows] = [left, 0];
  for (const it of series) {
    const own = wide(it.name) + 46;
    if (x + own > x1 && x > left) [x, rows] = [left, rows + 1];
    entries.push({ it, x, row: rows });
    x += own;
  }
  const y0 = 24 + 20 * rows + 28, y1 = y0 + Math.max(170, Math.min(260, width * 0.32));
  const all = series.flatMap((it) => it.points);
  const last = all.reduce((most, [t]) => Math.max(most, t), 0) || 1;
  const high = (all.reduce((most, [, v]) => Math.max(most, v), 0) || 1) * 1.05;
  const place = (t) => left + (t / last) * (x1 - left), height = (v) => y1 - (v / high) * (y1 - y0);
  const svg = drawing(width, y1 + 44, label);
  for (const { it, x, row } of entries) {
    const y = 12 + 20 * row;
    line(svg, x, y, x + 26, y, { stroke: it.look.colour, "stroke-width": 2.5, "stroke-dasharray": it.look.dash });
    text(svg, x + 32, y + 4.5, it.name);
  }
  text(svg, 8, y0 - 12, title, { fill: colour("soft") });
  for (const value of ticks(high, 5)) {
    line(svg, left, height(value), x1, height(value), { stroke: colour("grid") });
    text(svg, left - 7, height(value) + 4, tick(value), { "text-anchor": "end", fill: colour("soft"), "font-size": 12 });
  }
  axis(svg, 0, last, place, { y0: y1, y1, x0: left, x1, title: "time in seconds" });
  for (const it of series) {
    const path = it.points.map(([t, v], i) => (i === 0 ? "M" : steps ? `H${px(place(t))}V` : "L") + (steps && i > 0 ? px(height(v)) : `${px(place(t))} ${px(height(v))}`)).join("");
    make("path", { d: path, fill: "none", stroke: it.look.colour, "stroke-width": 1.8, "stroke-dasharray": it.look.dash, "stroke-linejoin": "round" }, svg);
  }
  return svg;
}

const BAD = { lost: "lost on the way", dropped: "no room in a queue", discarded: "dropped by queue management" };

/** The messages of an exchange between two ends, time downwards. */
export function ladder(exchange, label, width) {
  const start = exchange.messages[0]?.sent_s ?? 0;
  const ends = exchange.messages.flatMap((it) => [it.sent_s, it.end_s ?? it.sent_s]);
  const span = Math.max(...ends) - start || 1;
  const narrow = width < 560, side = narrow ? 62 : 84, [xa, xb] = [side, Math.min(width - side, side + 620)];
  const y0 = 34, tall = Math.max(150, Math.min(620, 74 * exchange.messages.length)), y1 = y0 + tall;
  const place = (t) => y0 + 8 + ((t - start) / span) * (tall - 16);
  const svg = drawing(width, y1 + 16, label);
  for (const [x, name] of [[xa, `client ${exchange.client}`], [xb, "server"]]) {
    text(svg, x, 16, name, { "text-anchor": "middle", "font-weight": 600 });
    line(svg, x, 24, x, y1 + 8, { stroke: colour("soft"), "stroke-width": 1.5 });
  }
  const bad = colour("bad"), taken = { [xa]: -99, [xb]: -99 };
  const before = { [xa]: -99, [xb]: -99 };
  for (const it of exchange.messages) {
    const [from, to] = it.goes_out ? [xa, xb] : [xb, xa], sign = Math.sign(to - from);
    const isLost = it.fate in BAD, ink = isLost ? bad : it.fate ? colour("ink") : colour("soft");
    const reach = isLost ? from + (to - from) * 0.55 : to;
    const [ya, yb] = [place(it.sent_s), place(it.end_s ?? it.sent_s + span / 50)];
    const group = make("g", {}, svg);
    make("title", {}, group, messageText(it, start));
    line(group, from, ya, reach, yb, { stroke: ink, "stroke-width": 1.7, ...(it.fate ? {} : { "stroke-dasharray": "4 4" }) });
    const [ux, uy] = [reach - from, yb - ya].map((d) => d / Math.hypot(reach - from, yb - ya || 1e-9));
    if (isLost) make("path", { d: `M${px(reach - 5)} ${px(yb - 5)}l10 10M${px(reach - 5)} ${px(yb + 5)}l10-10`, stroke: bad, "stroke-width": 2 }, group);
    else make("path", { d: `M${px(reach)} ${px(yb)}L${px(reach - 9 * ux - 4 * uy)} ${px(yb - 9 * uy + 4 * ux)}L${px(reach - 9 * ux + 4 * uy)} ${px(yb - 9 * uy - 4 * ux)}Z`, fill: ink }, group);
    // Labels that would cover one another are left out; the list below the drawing has all.
    const nth = it.goes_out && it.copy > 0 ? `${it.label}, copy ${it.copy + 1}` : it.label, y = ya + (yb - ya) * 0.22 - 5;
    if (y - before[from] >= 14) {
      text(group, from + sign * (xb - xa) * 0.22, y, isLost ? `${nth}: ${it.fate}` : nth, { "text-anchor": "middle", "font-size": 12, fill: ink, stroke: colour("paper"), "stroke-width": 3, "paint-order": "stroke" });
      before[from] = y;
    }
    for (const [x, t, y] of [[from, it.sent_s, ya], ...(it.fate === "delivered" ? [[to, it.end_s, yb]] : [])]) {
      if (y - taken[x] < 13) continue;
      taken[x] = y;
      text(group, x + (x === xa ? -8 : 8), y + 4, `${number(t - start)} s`, { "text-anchor": x === xa ? "end" : "start", "font-size": 11.5, fill: colour("soft") });
    }
  }
  return svg;
}

export const messageText = (it, start) => `${number(it.sent_s - start)} s: the ${it.goes_out ? "client" : "server"} sends ${it.label}` +
  (it.goes_out && it.copy ? ` for the ${it.copy + 1}${["st", "nd", "rd"][it.copy] ?? "th"} time` : "") + `, ${it.bytes} bytes with headers; ` +
  (it.fate === "delivered" ? `it arrives after ${number(it.end_s - it.sent_s)} s` : BAD[it.fate] ?? "still under way at the end") + ".";

// ---- Files -------------------------------------------------------------------------------------------------------------------
export function download(name, parts, type) {
  const href = URL.createObjectURL(new Blob([parts].flat(), { type }));
  html("a", { href, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(href), 10_000);
}

async function png(svg) {
  const { width, height } = svg.viewBox.baseVal, image = new Image();
  image.src = `data:image/svg+xml,${encodeURIComponent(new XMLSerializer().serializeToString(svg))}`;
  await image.decode();
  const canvas = html("canvas", { width: 2 * width, height: 2 * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((done) => canvas.toBlob(done, "image/png"));
}

/** Draws a chart into its figure, again whenever the width or the theme changes. `draw` gets the width, and returns the chart or null. */
export class Chart {
  constructor(id, name) {
    this.figure = document.getElementById(id);
    this.room = this.figure.querySelector(".chart");
    const save = (kind) => html("button", { type: "button", textContent: kind.toUpperCase(), title: `Save the chart as ${kind.toUpperCase()}`, "aria-label": `Save the chart “${this.figure.querySelector("h2").textContent}” as ${kind.toUpperCase()}`, onclick: () => this.save(kind, name) });
    this.buttons = html("div", { className: "save" }, save("svg"), save("png"));
    this.room.append(this.buttons);
    this.note = html("p", { className: "soft note" });
    this.room.before(this.note);
    this.width = 0;
    new ResizeObserver(() => { if (Math.abs(this.room.clientWidth - this.width) > 1) this.redraw(); }).observe(this.room);
    onTheme(() => this.redraw());
  }
  /** Shows a chart, a note about what it leaves out, or both; without either, nothing. */
  show(draw, note = "") {
    this.draw = draw;
    this.figure.hidden = !draw && !note;
    this.room.hidden = !draw;
    this.note.textContent = note;
    this.note.hidden = !note;
    this.redraw();
  }
  redraw() {
    this.width = this.room.clientWidth;
    if (!this.draw || this.width < 50) return;
    const made = [this.draw(this.width)].flat().filter(Boolean);
    this.room.replaceChildren(this.buttons, ...made);
  }
  async save(kind, name) {
    const svg = this.room.querySelector("svg");
    if (!svg) return;
    const file = `coapace-${name}.${kind}`;
    if (kind === "svg") download(file, new XMLSerializer().serializeToString(svg), "image/svg+xml");
    else download(file, await png(svg), "image/png");
  }
}
