"use strict";

const assert = require("node:assert");
const fs = require("node:fs");
const path = require("node:path");
const test = require("node:test");
const { MECHANISMS, State } = require("../mechanism");

/** Reads a number of milliseconds with at most three places, in microseconds. */
function us(text) {
  assert.match(text, /^\d+\.\d{3}$/);
  return Number(text.replace(".", ""));
}

/** Reads a number below 1 with at most six places: the nearest multiple of 2^-32. */
function draw(text) {
  assert.match(text, /^(0\.\d{1,6})?$/);
  const millionths = BigInt(text.slice(2).padEnd(6, "0"));
  return Number(((millionths << 32n) + 500000n) / 1000000n);
}

const OUTCOMES = { ack: "acked", reset: "reset", giveup: "given-up" };

/** Plays one row of a run. `open` has the exchanges by their number. */
function step(state, open, row) {
  const key = row.exchange ?? "";
  const at = us(row.at_ms);
  let timeoutUs;
  assert.strictEqual(open.has(key), row.event !== "start");
  if (row.event === "start") open.set(key, { departed: [] });
  const one = open.get(key);
  const cue = { nowUs: at, draw: draw(row.draw), outstanding: open.size };
  if (row.event === "start") {
    one.departed.push(at);
    ({ exchange: one.exchange, timeoutUs } = state.start(cue));
  } else if (row.event === "timeout") {
    one.departed.push(at);
    timeoutUs = state.retransmit(one.exchange, cue);
  } else {
    assert.ok(row.event in OUTCOMES, row.event);
    const sample = { sinceFirstUs: at - one.departed[0], sinceLastUs: at - one.departed.at(-1), retransmits: one.departed.length - 1 };
    if (row.answered !== "" && state.marks) {
      sample.answered = Number(row.answered);
      assert.ok(sample.answered < one.departed.length);
      sample.sinceAnsweredUs = at - one.departed[sample.answered];
    }
    state.end(one.exchange, OUTCOMES[row.event], cue, sample);
    open.delete(key);
  }
  for (const value of Object.values(one.exchange)) assert.ok(typeof value !== "number" || Number.isSafeInteger(value));
  assert.strictEqual(timeoutUs !== undefined, row.timeout_ms !== "");
  if (timeoutUs !== undefined) assert.ok(Math.abs(timeoutUs - us(row.timeout_ms)) <= 1, `a timeout of ${timeoutUs} µs`);
  assert.ok(Math.abs(state.gauges().rtoUs - us(row.rto_ms)) <= 1, `an RTO of ${state.gauges().rtoUs} µs`);
}

for (const mechanism of MECHANISMS) {
  test(`${mechanism} meets its vectors`, (t) => {
    const lines = fs.readFileSync(path.join(__dirname, "../../../vectors", `${mechanism}.csv`), "utf8").trim().split("\n");
    let runs = 0, steps = 0, state, open, titles;
    lines.forEach((line, index) => {
      if (line.startsWith("# mechanism ")) {
        state = new State(line.slice("# mechanism ".length));
        open = new Map();
        titles = undefined;
        runs++;
      } else if (titles === undefined) {
        titles = line.split(",");
      } else {
        const fields = line.split(",");
        try {
          step(state, open, Object.fromEntries(titles.map((title, place) => [title, fields[place] ?? ""])));
        } catch (error) {
          error.message = `line ${index + 1}, ${line}: ${error.message}`;
          throw error;
        }
        steps++;
      }
    });
    assert.ok(runs >= 2 && steps >= 100, `${runs} runs with ${steps} steps are too few`);
    t.diagnostic(`${runs} runs, ${steps} steps`);
  });
}
