"use strict";

const assert = require("node:assert");
const test = require("node:test");
const { MECHANISMS, State, drawn, rfc7252Timeout } = require("../mechanism");
const { afterTimeout, patientTimeout } = require("../patience");

test("products of 32 by 49 bits are exact", () => {
  let seed = 2463534242;
  const any = () => {
    seed ^= seed << 13;
    seed ^= seed >>> 17;
    seed ^= seed << 5;
    return seed >>> 0;
  };
  const edges = [0, 1, 2 ** 16 - 1, 2 ** 16, 2 ** 31, 2 ** 32 - 1];
  const values = [...edges, 2 ** 32, 2 ** 40 - 1, 2 ** 49 - 1];
  for (let i = 0; i < 100000; i++) {
    const draw = i < 100 ? edges[i % edges.length] : any();
    const value = i < 100 ? values[Math.floor(i / edges.length) % values.length] : (any() % 2 ** 17) * 2 ** 32 + any();
    assert.strictEqual(BigInt(drawn(value, draw)), (BigInt(value) * BigInt(draw) + 2n ** 31n) >> 32n, `${value} by ${draw}`);
  }
});

test("no number leaves the safe integers", () => {
  const cue = { nowUs: Number.MAX_SAFE_INTEGER, draw: 2 ** 32 - 1, outstanding: 65535 };
  const times = { sinceFirstUs: Number.MAX_SAFE_INTEGER, sinceLastUs: 2 ** 40, sinceAnsweredUs: 2 ** 40 };
  for (const mechanism of MECHANISMS) {
    const state = new State(mechanism);
    for (let round = 0; round < 300; round++) {
      const { exchange, timeoutUs } = state.start(cue);
      assert.ok(timeoutUs > 0 && timeoutUs <= 268435456);
      for (let copy = 0; copy <= round; copy++) assert.ok(Number.isSafeInteger(state.retransmit(exchange, cue)));
      for (const value of Object.values(exchange)) assert.ok(typeof value !== "number" || Number.isSafeInteger(value));
      const sample = { ...times, retransmits: round % 3, answered: round % 2 ? 0 : undefined };
      state.end(exchange, round % 5 ? "acked" : "given-up", cue, sample);
      for (const value of Object.values(state.gauges())) assert.ok(Number.isSafeInteger(value));
    }
  }
});

test("mistakes are named, and change nothing", () => {
  assert.throws(() => new State("ebb:k=3"), /choose one of default, linux-rto/);
  for (const mechanism of MECHANISMS) {
    const state = new State(mechanism);
    const { exchange } = new State(mechanism).start({});
    const before = state.gauges();
    assert.strictEqual(state.retransmit(exchange, {}), 3000000);
    state.end(exchange, "given-up", {});
    assert.deepStrictEqual(state.gauges(), before);
    const own = state.start({ nowUs: 0 }).exchange;
    assert.throws(() => state.end(own, "acked", {}), /not an outcome/);
    state.end(own, "cancelled", {});
    assert.strictEqual(state.retransmit(own, {}), 3000000);
  }
});

test("patience", () => {
  const patience = { ackTimeoutUs: 2e6, longestAckTimeoutUs: 3e6, maxRetransmit: 4 };
  assert.deepStrictEqual(afterTimeout(patience, 1000, 0), { action: "send-copy", waitUs: 0 });
  assert.deepStrictEqual(afterTimeout(patience, 200e6, 3), { action: "send-copy", waitUs: 0 });
  assert.deepStrictEqual(afterTimeout(patience, 1e6, 4), { action: "wait", waitUs: 44e6 });
  assert.deepStrictEqual(afterTimeout(patience, 45e6, 4), { action: "send-copy", waitUs: 0 });
  assert.deepStrictEqual(afterTimeout(patience, 62e6, 4), { action: "give-up", waitUs: 0 });
  assert.deepStrictEqual(afterTimeout(patience, 93e6, 5), { action: "give-up", waitUs: 0 });
  assert.strictEqual(patientTimeout(patience, 1000, 0, 0, false, 0), 1000);
  assert.strictEqual(patientTimeout(patience, 1000, 45e6, 5, false, 0), 48e6);
  assert.strictEqual(patientTimeout(patience, 1000, 61e6, 5, false, 0), 32e6);
  for (let retransmits = 0; retransmits <= 4; retransmits++) {
    for (const draw of [0, 2 ** 31, 2 ** 32 - 1]) {
      const apart = patientTimeout(patience, 1000, 0, retransmits, true, draw) - rfc7252Timeout(retransmits, draw);
      assert.ok(Math.abs(apart) <= 8, `${apart} µs apart`);
    }
  }
});
