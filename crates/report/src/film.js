"use strict";
(() => {
  const find = (id) => document.getElementById("film-" + id);
  const read = (id) => JSON.parse(document.getElementById(id).textContent);
  const labels = read("films");
  const titles = [...find("title").options].map((option) => (option.text === "–" ? "" : option.text));
  const player = find("player"), stage = find("stage"), slider = find("slider");
  const still = matchMedia("(prefers-reduced-motion: reduce)");

  // ---- Drawing and text ------------------------------------------------------------------------------------------------
  function make(tag, attributes, parent, text) {
    const element = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
    if (text !== undefined) element.textContent = text;
    parent.append(element);
    return element;
  }
  // Sets an attribute if its value is new. Most of a frame is like the one before.
  function put(element, name, value) {
    const text = String(value);
    if (element.getAttribute(name) !== text) element.setAttribute(name, text);
  }
  const show = (element, shown) => put(element, "visibility", shown ? "visible" : "hidden");
  const px = (x) => Math.round(x * 100) / 100;
  const decimals = (x) => (Number.isInteger(x) ? 0 : Number.isInteger(x * 10) ? 1 : 2);
  const digits = (x, n) => (x === 0 ? "0" : x.toFixed(Math.max(0, n - 1 - Math.floor(Math.log10(Math.abs(x))))));
  const joules = (mj) => (mj >= 1000 ? digits(mj / 1000, 3) + " J" : digits(mj, 3) + " mJ");
  const many = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

  // ---- Films: packed in columns, unpacked when a film is chosen ---------------------------------------------------------
  const films = new Map();
  function film(number) {
    if (!films.has(number)) films.set(number, unpack(read("film-" + number)));
    return films.get(number);
  }
  function unpack({ columns, ...film }) {
    const size = film.nodes.length * film.frames;
    const column = (name) => {
      const values = new Float64Array(size), packed = columns[name] ?? [];
      for (let i = 0, at = 0; i < packed.length; i++) {
        if (packed[i] === 0) at += packed[++i];
        else values[at++] = packed[i];
      }
      for (let at = 0; at < size; at++) if (at % film.frames) values[at] += values[at - 1];
      return (node, k) => values[node * film.frames + k];
    };
    const since = (of) => (node, k) => of(node, k) - (k ? of(node, k - 1) : 0);
    const [x, y, parent, rto] = ["x_dm", "y_dm", "parent", "rto_cs"].map(column);
    const [queued, sent, collided, dropped, energy] = ["queued", "sent", "collided", "dropped", "energy_mj"].map(column);
    const steps = [...Array(film.frames).keys()], nodes = [...film.nodes.keys()];
    const total = (of) => steps.map((k) => nodes.reduce((sum, node) => sum + of(node, k), 0));
    const most = (of) => nodes.reduce((a, node) => steps.reduce((b, k) => Math.max(b, of(node, k)), a), 0);
    const now = { sent: since(sent), collided: since(collided), dropped: since(dropped) };
    return {
      ...film, steps, now, queued, sent, collided, dropped, energy,
      x: (node, k) => x(node, k) / 10, y: (node, k) => y(node, k) / 10,
      parent: (node, k) => parent(node, k) - 1,
      rto: (node, k) => (rto(node, k) ? rto(node, k) / 100 : null),
      moves: nodes.some((node) => steps.some((k) => x(node, k) !== x(node, 0) || y(node, k) !== y(node, 0))),
      room: film.queue_frames || most(queued) || 1,
      busiest: most(now.sent) || 1,
      totals: { sent: total(now.sent), collided: total(now.collided), queued: total(queued) },
      // Returns the nodes on the way to the root. It ends where a route becomes a circle.
      route(node, k) {
        const way = [node];
        for (let next = this.parent(node, k); next >= 0 && !way.includes(next); next = this.parent(next, k)) way.push(next);
        return way;
      },
    };
  }

  // ---- The state of the player ------------------------------------------------------------------------------------------
  let shown = null; // the film
  let picked = 0; // the node
  let at = 0; // the moment, in steps; the fraction is the part of the way to the next frame
  let playing = false;
  let scene = null, charts = [];
  const time = (k) => (k * shown.step_s).toFixed(decimals(shown.step_s)) + " s";

  // ---- The network -------------------------------------------------------------------------------------------------------
  const SHAPES = {
    root: (r) => ["rect", { x: -r, y: -r, width: 2 * r, height: 2 * r, rx: r * 0.28 }],
    sink: (r) => ["path", { d: `M0${px(-r * 1.32)} ${px(r * 1.32)} 0 0 ${px(r * 1.32)} ${px(-r * 1.32)} 0Z` }],
    client: (r) => ["circle", { r }],
  };
  function build() {
    const nodes = [...shown.nodes.keys()];
    const range = (of) => nodes.reduce(([low, high], node) => shown.steps.reduce(([low, high], k) =>
      [Math.min(low, of(node, k)), Math.max(high, of(node, k))], [low, high]), [Infinity, -Infinity]);
    const [left, right] = range(shown.x), [top, bottom] = range(shown.y);
    // The median distance to the nearest neighbour.
    const nearest = nodes.map((node) => nodes.reduce((least, other) => (other === node ? least
      : Math.min(least, Math.hypot(shown.x(node, 0) - shown.x(other, 0), shown.y(node, 0) - shown.y(other, 0)))), Infinity));
    const apart = nearest.sort((a, b) => a - b)[nodes.length >> 1];
    const spacing = Number.isFinite(apart) && apart > 0 ? apart : Math.max(right - left, bottom - top, 1) / 10;

    const width = stage.clientWidth || 640, pad = 30;
    const scale = Math.min((width - 2 * pad) / (right - left || 1e-9), (Math.min(600, width * 1.1) - 2 * pad) / (bottom - top || 1e-9), 96 / spacing);
    const height = Math.max(190, (bottom - top) * scale + 2 * pad + 14);
    const [dx, dy] = [width / 2 - (left + right) / 2 * scale, (height - 10) / 2 - (top + bottom) / 2 * scale];
    const r = px(Math.max(3.5, Math.min(14, spacing * scale * 0.29)));

    stage.replaceChildren();
    const svg = make("svg", { viewBox: `0 0 ${px(width)} ${px(height)}`, "aria-hidden": "true" }, stage);
    const reach = ["interference", "range"].map((name) => make("circle", { class: name, r: px(shown[name + "_m"] * scale) }, svg));
    reach.forEach((circle, i) => show(circle, shown[["interference_m", "range_m"][i]] > 0));
    const links = make("g", {}, svg);
    const ways = make("g", {}, svg);
    const motes = make("g", {}, svg);
    scene = {
      r, reach, ways,
      place: (node, k, part) => {
        const next = Math.min(k + 1, shown.frames - 1);
        const between = (of) => of(node, k) + (of(node, next) - of(node, k)) * part;
        return [px(dx + between(shown.x) * scale), px(dy + between(shown.y) * scale)];
      },
      links: nodes.map(() => make("line", { class: "link" }, links)),
      motes: shown.nodes.map(({ role, name }, node) => {
        const group = make("g", { class: "mote", "data-node": node }, motes);
        const pulse = make("circle", { class: "pulse" }, group);
        const [tag, shape] = SHAPES[role](r);
        const body = make(tag, { class: "node", ...shape }, group);
        const label = /^\d{1,3}$/.test(name) ? name : String(node);
        if (r >= 8) make("text", { "font-size": px(r * (label.length > 2 ? 0.78 : 0.95)) }, group, label);
        const collision = make("circle", { class: "collision", r: px(r + 3.5) }, group);
        const s = px(Math.max(3, r * 0.38)), c = px(r * 0.95);
        const drop = make("path", { class: "drop", d: `M${c - s} ${-c - s} ${c + s} ${-c + s}M${c - s} ${-c + s} ${c + s} ${-c - s}` }, group);
        make("title", {}, group, name);
        return { group, pulse, body, collision, drop };
      }),
    };
    // The scale bar has a round length.
    const metres = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].findLast((m) => m * scale <= Math.max(60, width / 6)) ?? 1;
    if (metres * scale > width / 2) return; // All nodes are in one place.
    const [x0, y0] = [14, px(height - 10)];
    make("path", { class: "scale", d: `M${x0} ${y0 - 4}v4h${px(metres * scale)}v-4` }, svg);
    make("text", { class: "scale-text", x: px(x0 + metres * scale / 2), y: y0 - 4 }, svg, `${metres} m`);
  }

  // Places the nodes and spreads the rings. This runs for every picture.
  function place() {
    const k = Math.floor(at), part = still.matches ? 0 : at - k;
    const places = scene.motes.map((_, node) => scene.place(node, k, part));
    const spread = playing && !still.matches ? part : 0.45;
    scene.motes.forEach(({ group, pulse }, node) => {
      put(group, "transform", `translate(${places[node][0]} ${places[node][1]})`);
      if (shown.now.sent(node, k) > 0) {
        put(pulse, "r", px(scene.r * (1 + 0.95 * spread)));
        put(pulse, "opacity", px(1 - spread));
      }
      const parent = shown.parent(node, k);
      if (parent < 0) return;
      const [x1, y1, x2, y2] = [...places[node], ...places[parent]];
      for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) put(scene.links[node], name, value);
    });
    const ms = at * shown.step_s * 1000;
    for (const hop of journey?.hops ?? []) {
      show(hop.line, hop.ms <= ms);
      const [x1, y1, x2, y2] = [...places[hop.from], ...places[hop.to]];
      for (const [name, value] of Object.entries({ x1, y1, x2, y2 })) put(hop.line, name, value);
    }
    const last = journey?.rows.findLastIndex((row) => row.ms <= ms);
    journey?.rows.forEach(({ button, bad }, i) => put(button, "class", (i <= last ? "past" : "") + (i === last ? " now" : "") + (bad ? " bad" : "")));
    for (const circle of scene.reach) {
      put(circle, "cx", places[picked][0]);
      put(circle, "cy", places[picked][1]);
    }
  }

  // ---- A message on its way: its frames up to this moment, and a list of all its events -----------------------------------
  let journey = null; // the message, with its hops and the text of each step
  const NOBODY = 4294967295;
  const clock = (ms) => (ms / 1000).toFixed(3) + " s";
  const span = (ms) => (ms < 1000 ? `${ms} ms` : `${digits(ms / 1000, 3)} s`);
  // Returns the outcome of a message, with the number of packets of its exchange.
  function outcome({ from, to, steps }) {
    const packets = (event, sender) => steps.filter((step) => step[1] === event && step[2] === sender);
    const sent = packets(0, from), arrived = packets(1, from), back = packets(1, to);
    const lost = packets(2, from).length + packets(2, to).length;
    const after = (step) => span(step[0] - sent[0][0]);
    return (back.length ? `answered after ${after(back[0])}` : arrived.length ? `arrived after ${after(arrived[0])}, no answer came back` : "did not arrive") +
      `: ${many(sent.length, "transmission")}, ${many(steps.filter((step) => step[1] === 3).length, "frame")}, ` +
      `${many(steps.filter((step) => step[1] === 5).length, "collision")}` + (lost ? `, ${many(lost, "packet")} dropped` : "");
  }
  function told(steps) {
    const name = (node) => (node === NOBODY ? "all" : shown.nodes[node]?.name ?? node);
    const since = new Map(); // the time at which a node received the frame that it sends on
    return steps.map(([ms, event, from, to, transmission]) => {
      const hop = `${name(from)} → ${name(to)}`, nth = transmission ? `, transmission ${transmission + 1}` : "";
      let text;
      if (event === 0) text = `${name(from)} sends to ${name(to)}${nth}`;
      else if (event === 1) text = `arrives at ${name(to)}${nth}`;
      else if (event === 2) text = `dropped${nth}`;
      else if (event === 3) text = `frame ${hop}` + (since.has(from) ? `, after ${span(ms - since.get(from))}` : "");
      else text = `${hop}: ${{ 4: "received", 5: "destroyed by another transmission", 6: "missed", 7: "given up, not acknowledged", 8: "given up, channel busy", 9: "no room in the queue" }[event]}`;
      if (event === 0 || event === 3) since.set(from, ms);
      if (event === 4) since.set(to, ms);
      return { ms, text, bad: event === 2 || event > 4 };
    });
  }
  function follow(number) {
    const chosen = shown.journeys?.[number];
    find("journey").replaceChildren();
    find("outcome").textContent = "";
    scene.ways.replaceChildren();
    journey = null;
    if (chosen) {
      const hops = new Map(), nodes = new Set();
      for (const [ms, event, from, to] of chosen.steps) {
        if (event !== 3 || to === NOBODY) continue;
        nodes.add(from).add(to);
        if (!hops.has(`${from} ${to}`)) hops.set(`${from} ${to}`, { ms, from, to, line: make("line", { class: "way" }, scene.ways) });
      }
      const rows = told(chosen.steps).map(({ ms, text, bad }) => {
        const row = document.createElement("li"), button = document.createElement("button");
        button.type = "button";
        button.append(Object.assign(document.createElement("span"), { textContent: clock(ms) }), Object.assign(document.createElement("span"), { textContent: text }));
        button.addEventListener("click", () => {
          play(false);
          go(Math.ceil(ms / 1000 / shown.step_s));
        });
        row.append(button);
        find("journey").append(row);
        return { ms, button, bad };
      });
      journey = { hops: [...hops.values()], nodes, rows };
      find("outcome").textContent = `${shown.nodes[chosen.from].name} to ${shown.nodes[chosen.to].name}, exchange ${chosen.exchange}: ${outcome(chosen)}.`;
      go(Math.ceil(chosen.steps[0][0] / 1000 / shown.step_s));
    }
    step();
    place();
  }
  // Lists the messages of a node.
  function listMessages() {
    const sender = Number(find("sender").value);
    const own = (shown.journeys ?? []).map((it, number) => [it, number]).filter(([it]) => it.from === sender);
    find("message").replaceChildren(new Option("none", -1), ...own.map(([it, number]) =>
      new Option(`${clock(it.steps[0][0])}, exchange ${it.exchange}: ${outcome(it).split(":")[0]}`, number)));
    follow(-1);
  }
  function listSenders() {
    const senders = [...new Set((shown.journeys ?? []).map((it) => it.from))].sort((a, b) => a - b);
    find("following").hidden = !senders.length;
    find("sender").replaceChildren(...senders.map((node) => new Option(shown.nodes[node].name, node)));
    if (senders.includes(picked)) find("sender").value = picked;
    listMessages();
  }
  find("sender").addEventListener("change", listMessages);
  find("message").addEventListener("change", () => follow(Number(find("message").value)));

  // Draws the changes from one step to the next.
  function step() {
    const k = Math.floor(at), now = shown.now;
    const route = new Set(shown.route(picked, k).slice(0, -1));
    scene.motes.forEach(({ group, pulse, body, collision, drop }, node) => {
      const link = scene.links[node], parent = shown.parent(node, k);
      show(link, parent >= 0);
      put(link, "class", route.has(node) ? "link route" : "link");
      put(link, "stroke-width", px(1.2 + 6 * Math.sqrt(now.sent(node, k) / shown.busiest) + (route.has(node) ? 1 : 0)));
      put(group, "class", "mote" + (node === picked ? " picked" : "") + (journey?.nodes.has(node) ? " on-way" : ""));
      put(body, "style", `--queue:${Math.round(100 * Math.min(1, shown.queued(node, k) / shown.room))}%`);
      show(pulse, now.sent(node, k) > 0);
      put(pulse, "stroke-width", px(0.8 + 2.6 * now.sent(node, k) / shown.busiest));
      show(collision, now.collided(node, k) > 0);
      put(collision, "stroke-width", px(Math.min(5, 1.6 + 0.5 * now.collided(node, k))));
      show(drop, now.dropped(node, k) > 0);
    });
    slider.value = k;
    slider.setAttribute("aria-valuetext", `${time(k)} of ${time(shown.frames - 1)}`);
    find("time").textContent = `${time(k)} of ${time(shown.frames - 1)}`;
    const { sent, collided, queued } = shown.totals;
    const fullest = shown.nodes.reduce((most, _, node) => (shown.queued(node, k) > shown.queued(most, k) ? node : most), 0);
    find("now").textContent = `${many(sent[k], "frame")} sent in the last ${time(1)}, ${many(collided[k], "reception")} destroyed, ` +
      `${many(queued[k], "frame")} waiting` + (queued[k] ? `, most at ${shown.nodes[fullest].name} (${waiting(fullest, k)}).` : ".");
    for (const { cursor, value } of [...charts, strip]) {
      put(cursor, "x1", k);
      put(cursor, "x2", k);
      value?.(k);
    }
    numbers(k);
  }
  const waiting = (node, k) => shown.queued(node, k) + (shown.queue_frames ? ` of ${shown.queue_frames}` : "");

  // ---- The strip above the slider: frames sent, and receptions destroyed in red --------------------------------------------
  const strip = { svg: find("strip") };
  function drawStrip() {
    const { sent, collided } = shown.totals;
    const high = Math.max(1, ...sent, ...collided), last = Math.max(1, shown.frames - 1);
    const bars = (values) => values.map((value, k) => (value ? `M${k - 0.4} 100V${px(100 - 96 * value / high)}h.8V100Z` : "")).join("");
    strip.svg.replaceChildren();
    put(strip.svg, "viewBox", `0 0 ${last} 100`);
    put(strip.svg, "preserveAspectRatio", "none");
    make("path", { class: "sent", d: bars(sent) }, strip.svg);
    make("path", { class: "destroyed", d: bars(collided) }, strip.svg);
    make("title", {}, strip.svg, "Frames sent in each step, and in red receptions destroyed");
    strip.cursor = make("line", { class: "cursor", y1: 0, y2: 100 }, strip.svg);
  }
  // Returns the step under the pointer, in a drawing over time.
  const pointed = (event, inset) => {
    const box = event.currentTarget.getBoundingClientRect();
    return Math.round((event.clientX - box.left - inset) / Math.max(1, box.width - 2 * inset) * (shown.frames - 1));
  };
  strip.svg.addEventListener("click", (event) => go(pointed(event, 8)));

  // ---- The picked node -----------------------------------------------------------------------------------------------------
  const QUANTITIES = [
    { title: "RTO", of: (node, k) => shown.rto(node, k), text: (x) => digits(x, 3) + " s" },
    { title: "Queue", of: (node, k) => shown.queued(node, k), text: (x) => many(x, "frame"), high: () => shown.queue_frames },
    { title: "Energy", of: (node, k) => shown.energy(node, k), text: joules },
  ];
  function drawCharts() {
    find("charts").replaceChildren();
    charts = QUANTITIES.map(({ title, of, text, high }) => {
      const values = shown.steps.map((k) => of(picked, k));
      const most = Math.max(high?.() ?? 0, ...values);
      const figure = document.createElement("figure");
      figure.className = "film-chart";
      figure.innerHTML = "<figcaption><span></span><output></output></figcaption><svg aria-hidden=\"true\"></svg><div class=\"axis-ends\"><span></span><span></span></div>";
      find("charts").append(figure);
      const [name, output, start, end] = figure.querySelectorAll("span, output");
      name.textContent = title;
      start.textContent = `0 s to ${time(shown.frames - 1)}`;
      end.textContent = values.some((value) => value !== null) ? `0 to ${text(most)}` : "not known";
      const svg = figure.querySelector("svg");
      put(svg, "viewBox", `0 -4 ${Math.max(1, shown.frames - 1)} 108`);
      put(svg, "preserveAspectRatio", "none");
      const height = (value) => px(100 - 100 * value / (most || 1));
      const known = (k) => k >= 0 && values[k] !== null;
      make("path", { d: values.map((value, k) => (known(k) ? (known(k - 1) ? `H${k}V` : `M${k} `) + height(value) : "")).join("") }, svg);
      const cursor = make("line", { class: "cursor", y1: -4, y2: 104 }, svg);
      svg.addEventListener("click", (event) => go(pointed(event, 0)));
      return { cursor, value: (k) => { output.textContent = values[k] === null ? "–" : text(values[k]); } };
    });
  }
  function numbers(k) {
    const { role } = shown.nodes[picked], { now } = shown;
    const parent = shown.parent(picked, k), way = shown.route(picked, k);
    const arrives = shown.nodes[way.at(-1)].role === "root";
    const [rto, energy] = [shown.rto(picked, k), shown.energy(picked, k)];
    const count = (of) => `${now[of](picked, k)}, ${shown[of](picked, k)} in all`;
    const rows = [
      ["Role", role],
      ["Parent", parent < 0 ? "–" : shown.nodes[parent].name],
      ["Hops to the root", arrives ? way.length - 1 : "–"],
      ["Queue", waiting(picked, k)],
      ["Sent", count("sent")],
      ["Destroyed here", count("collided")],
      ["Given up", count("dropped")],
      ["RTO", rto === null ? "–" : digits(rto, 3) + " s"],
      ["Energy", joules(energy) + (k ? `, ${digits(energy / (k * shown.step_s), 3)} mW` : "")],
    ];
    const table = find("numbers");
    while (table.rows.length < rows.length) {
      const row = table.insertRow();
      row.append(Object.assign(document.createElement("th"), { scope: "row" }));
      row.insertCell();
    }
    rows.forEach(([name, value], i) => {
      const [th, td] = table.rows[i].cells;
      if (th.textContent !== name) th.textContent = name;
      if (td.textContent !== String(value)) td.textContent = value;
    });
  }
  function pick(node) {
    picked = Math.max(0, Math.min(shown.nodes.length - 1, node));
    find("node").value = picked;
    drawCharts();
    step();
    place();
  }
  find("node").addEventListener("change", () => pick(Number(find("node").value)));
  stage.addEventListener("click", (event) => {
    const mote = event.target.closest(".mote");
    if (mote) pick(Number(mote.dataset.node));
  });

  // ---- Time --------------------------------------------------------------------------------------------------------------
  const RATES = [1, 2, 5, 10, 20, 40]; // steps a second
  let rate = 10;
  function go(moment) {
    const before = Math.floor(at);
    at = Math.max(0, Math.min(shown.frames - 1, moment));
    if (Math.floor(at) !== before) step();
    place();
  }
  let last = null; // the time of the last picture
  function tick(now) {
    if (!playing) return;
    const moment = at + (now - (last ?? now)) / 1000 * rate;
    last = now;
    go(moment);
    if (moment >= shown.frames - 1) play(false);
    else requestAnimationFrame(tick);
  }
  function play(on) {
    if (on === playing) return;
    playing = on;
    const button = find("play");
    button.textContent = on ? "❚❚" : "▶";
    button.setAttribute("aria-label", on ? "Pause" : "Play");
    // A screen reader cannot read ten sentences a second.
    find("now").setAttribute("aria-live", on ? "off" : "polite");
    last = null;
    if (on) {
      if (at >= shown.frames - 1) go(0);
      requestAnimationFrame(tick);
    } else {
      go(Math.floor(at));
    }
  }
  const by = (steps) => {
    play(false);
    go(Math.floor(at) + steps);
  };
  find("play").addEventListener("click", () => play(!playing));
  find("back").addEventListener("click", () => by(-1));
  find("on").addEventListener("click", () => by(1));
  slider.addEventListener("input", () => go(Number(slider.value)));
  const speed = find("speed");
  speed.addEventListener("change", () => { rate = Number(speed.value); });
  const faster = (places) => {
    speed.selectedIndex = Math.max(0, Math.min(RATES.length - 1, speed.selectedIndex + places));
    rate = Number(speed.value);
  };
  const KEYS = {
    " ": () => play(!playing), ArrowLeft: () => by(-1), ArrowRight: () => by(1), ArrowUp: () => faster(1), ArrowDown: () => faster(-1),
    PageDown: () => by(10), PageUp: () => by(-10), Home: () => by(-Infinity), End: () => by(Infinity),
  };
  player.addEventListener("keydown", (event) => {
    const own = { SELECT: true, INPUT: event.key !== " ", BUTTON: event.key === " " }[event.target.tagName];
    if (own || event.ctrlKey || event.altKey || event.metaKey || !Object.hasOwn(KEYS, event.key)) return;
    event.preventDefault();
    KEYS[event.key]();
  });

  // ---- The choice of a film ---------------------------------------------------------------------------------------------
  function choose(number) {
    const before = shown && { moment: Math.floor(at) * shown.step_s, nodes: shown.nodes.length };
    shown = film(number);
    journey = null; // It was a message of the film before, whose nodes this one may lack.
    find("mechanism").value = labels[number].m;
    find("title").selectedIndex = Math.max(0, titles.indexOf(labels[number].title));
    slider.max = shown.frames - 1;
    speed.replaceChildren(...RATES.map((steps) => new Option(digits(steps * shown.step_s, 2) + " × real time", steps)));
    speed.value = rate;
    find("node").replaceChildren(...shown.nodes.map(({ name, role }, node) => new Option(name.includes(role) ? name : `${name}, ${role}`, node)));
    find("ramp").textContent = `queue, 0 to ${many(shown.room, "frame")}`;
    for (const name of ["range", "interference"]) find("key-" + name).hidden = !(shown[name + "_m"] > 0);
    // A film with equally many nodes keeps the moment and the node. Another begins where most frames wait, with the client
    // that has the longest route to the root.
    const { queued } = shown.totals;
    at = before?.nodes === shown.nodes.length ? Math.max(0, Math.min(shown.frames - 1, Math.round(before.moment / shown.step_s)))
      : queued.indexOf(Math.max(...queued));
    const far = (node) => (shown.nodes[node].role === "client" ? shown.route(node, at).length : 0);
    if (before?.nodes !== shown.nodes.length) picked = shown.nodes.reduce((most, _, node) => (far(node) > far(most) ? node : most), 0);
    build();
    drawStrip();
    pick(picked);
    listSenders();
  }
  // Shows the film of both choices. If there is none, it shows one of the choice that was just made.
  function chosen(by) {
    const m = Number(find("mechanism").value), title = titles[find("title").selectedIndex];
    const both = labels.findIndex((label) => label.m === m && label.title === title);
    choose(both >= 0 ? both : labels.findIndex((label) => (by === "mechanism" ? label.m === m : label.title === title)));
  }
  for (const by of ["mechanism", "title"]) find(by).addEventListener("change", () => chosen(by));
  let width = stage.clientWidth;
  addEventListener("resize", () => {
    if (stage.clientWidth === width || document.documentElement.classList.contains("printing")) return;
    width = stage.clientWidth;
    const followed = Number(find("message").value);
    build();
    follow(followed);
  });
  choose(0);
})();
