"use strict";

const assert = require("node:assert");
const dgram = require("node:dgram");
const test = require("node:test");
const coap = require("coap");
const { generate, parse } = require("coap-packet");
const { Agent } = require("..");

const TIMING = { ackTimeout: 2, ackRandomFactor: 1.5, maxRetransmit: 4, maxLatency: 100 };

/** A server on loopback. `answer(packet, copy, reply)` is called for every datagram; `copy` counts the earlier ones with its Message ID. */
async function serve(t, answer) {
  const socket = dgram.createSocket("udp4");
  const copies = new Map();
  const received = [];
  socket.on("message", (bytes, from) => {
    const packet = parse(bytes);
    const copy = copies.get(packet.messageId) ?? 0;
    copies.set(packet.messageId, copy + 1);
    received.push({ ...packet, at: performance.now() });
    answer(packet, copy, (fields) => socket.send(generate({ messageId: packet.messageId, ...fields }), from.port, from.address));
  });
  await new Promise((resolve) => socket.bind(0, "127.0.0.1", resolve));
  t.after(() => socket.close());
  return { port: socket.address().port, received };
}

const content = (packet, token = packet.token) => ({ ack: true, code: "2.05", token, payload: Buffer.from("x") });

function agent(t, mechanism) {
  const socket = dgram.createSocket("udp4");
  t.after(() => socket.close());
  return new Agent({ mechanism, socket });
}

/** Makes a request, and returns its response, or the error that it ends with. */
function get(of, port, fields = {}) {
  return new Promise((resolve) => {
    const request = of.request({ hostname: "127.0.0.1", port, pathname: "/", ...fields });
    request.on("response", (response) => resolve({ request, response }));
    request.on("error", (error) => resolve({ request, error }));
    request.end();
  });
}

test("a lost request is sent again after the round trip that was measured, with its ordinal in the token", async (t) => {
  const lost = new Set([2, 3]);
  let number = 0;
  const server = await serve(t, (packet, copy, reply) => {
    if (!lost.has(number++)) setTimeout(() => reply(content(packet)), 100);
  });
  const client = agent(t, "ebb");
  assert.ok((await get(client, server.port)).response);
  assert.ok((await get(client, server.port)).response);
  const before = client.gauges("127.0.0.1", server.port);
  const begun = performance.now();
  const { response, request } = await get(client, server.port);
  assert.strictEqual(response.code, "2.05");
  assert.ok(performance.now() - begun < 1900, "not sooner than without a round trip that was measured");
  assert.strictEqual(server.received.length, 5);
  const [first, second, third] = server.received.slice(2);
  assert.strictEqual(first.token.length, 7);
  assert.deepStrictEqual(second.token, Buffer.concat([first.token, Buffer.of(1)]));
  assert.deepStrictEqual(third.token, Buffer.concat([first.token, Buffer.of(2)]));
  assert.strictEqual(first.messageId, third.messageId);
  assert.deepStrictEqual(request._packet.token, first.token);
  // The sample counts from the copy that was answered. From the first transmission it would raise SRTT by more than 30 ms.
  const { srttUs } = client.gauges("127.0.0.1", server.port);
  assert.ok(srttUs !== before.srttUs && srttUs < before.srttUs + 30000, `${before.srttUs} µs became ${srttUs}`);
});

test("an answer to the first transmission after a copy is accepted, and others are not", async (t) => {
  let first;
  const server = await serve(t, (packet, copy, reply) => {
    if (copy === 0) {
      first = packet.token;
      return;
    }
    reply(content(packet, Buffer.concat([first, Buffer.of(2)]))); // no such copy
    reply(content(packet, Buffer.from("another")));
    reply(content(packet, first));
  });
  const client = agent(t, "ebb");
  const { response } = await get(client, server.port);
  assert.strictEqual(response.code, "2.05");
  assert.strictEqual(server.received.length, 2);
});

test("an answer that may be old is no sample", async (t) => {
  let requests = 0;
  const server = await serve(t, (packet, copy, reply) => {
    requests++;
    if (requests === 1 || copy === 2) reply(content(packet, packet.token.subarray(0, 7))); // the token of the first transmission
  });
  const client = agent(t, "ebb");
  await get(client, server.port);
  const before = client.gauges("127.0.0.1", server.port);
  await get(client, server.port);
  assert.ok(before.srttUs > 0);
  assert.strictEqual(client.gauges("127.0.0.1", server.port).srttUs, before.srttUs);
});

test("one more acknowledgement is ignored", async (t) => {
  const server = await serve(t, (packet, copy, reply) => {
    reply(content(packet));
    reply(content(packet));
  });
  const client = agent(t, "ebb");
  for (let i = 0; i < 20; i++) assert.ok((await get(client, server.port)).response);
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepStrictEqual(server.received.filter(({ code }) => code !== "0.01"), []);
});

test("without a marking the copies are the same bytes", async (t) => {
  const server = await serve(t, (packet, copy, reply) => {
    if (copy === 1) reply(content(packet));
  });
  assert.ok((await get(agent(t, "ebb-plain"), server.port)).response);
  assert.deepStrictEqual(server.received[0].token, server.received[1].token);
  assert.strictEqual(server.received[0].token.length, 8);
});

test("copies of observations and of blocks keep their token", async (t) => {
  const server = await serve(t, (packet, copy, reply) => {
    if (copy === 1) reply(content(packet));
  });
  const client = agent(t, "ebb");
  const { request, response } = await get(client, server.port, { observe: true });
  response.close();
  assert.ok(request);
  assert.ok((await get(client, server.port, { options: { Block2: Buffer.of(2) } })).response);
  const tokens = server.received.map(({ token }) => token.toString("hex"));
  assert.strictEqual(tokens[0], tokens[1]);
  assert.strictEqual(new Set(tokens.slice(2, 4)).size, 1);
});

test("a separate response to a copy finds its request", async (t) => {
  const server = await serve(t, (packet, copy, reply) => {
    if (packet.ack || copy === 0) return;
    reply({ ack: true, code: "0.00" });
    setTimeout(() => reply({ confirmable: true, code: "2.05", messageId: 7, token: packet.token, payload: Buffer.from("x") }), 20);
  });
  const { response } = await get(agent(t, "ebb"), server.port);
  assert.strictEqual(response.payload.toString(), "x");
  await new Promise((resolve) => setTimeout(resolve, 20));
  assert.deepStrictEqual(server.received.filter(({ ack }) => ack).map(({ messageId }) => messageId), [7]);
});

test("a Reset ends a request", async (t) => {
  const server = await serve(t, (packet, copy, reply) => reply({ reset: true, code: "0.00" }));
  await get(agent(t, "ebb"), server.port);
  await new Promise((resolve) => setTimeout(resolve, 50));
  assert.strictEqual(server.received.length, 1);
});

test("a silent peer is given up when node-coap says so, after copies that patience allows", async (t) => {
  // ACK_TIMEOUT 0.4 s, one retransmission: the last copy at 0.6 s (MAX_TRANSMIT_SPAN), MAX_TRANSMIT_WAIT 1.8 s, EXCHANGE_LIFETIME 2 s.
  coap.updateTiming({ ackTimeout: 0.4, ackRandomFactor: 1.5, maxRetransmit: 1, maxLatency: 0.5 });
  t.after(() => coap.updateTiming(TIMING));
  const lifetime = coap.parameters.exchangeLifetime;
  const server = await serve(t, (packet, copy, reply) => {
    if (server.received.length === 1) reply(content(packet));
  });
  const client = agent(t, "ebb");
  await get(client, server.port);
  const begun = performance.now();
  const { error } = await get(client, server.port);
  const seconds = (performance.now() - begun) / 1000;
  assert.strictEqual(error.retransmitTimeout, lifetime);
  assert.ok(seconds >= lifetime - 0.01, `${seconds} s`);
  const departed = server.received.slice(1).map(({ at }) => (at - begun) / 1000);
  assert.strictEqual(departed.length, 3, `departed at ${departed}`);
  assert.ok(departed[2] >= 0.59, `departed at ${departed}`);
  // The peer is silent now: the first timeout of the next request is RFC 7252's.
  await get(client, server.port);
  const [first, second] = server.received.slice(4);
  assert.ok(second.at - first.at >= 350, `${second.at - first.at} ms`);
});

test("non-confirmable requests are node-coap's own", async (t) => {
  const server = await serve(t, (packet, copy, reply) => reply({ ...content(packet), ack: false, messageId: 9 }));
  const client = agent(t, "ebb");
  assert.ok((await get(client, server.port, { confirmable: false })).response);
  assert.strictEqual(client.gauges("127.0.0.1", server.port), undefined);
});

test("1,024 destinations are kept", (t) => {
  const client = agent(t, "cocoa");
  for (let port = 1; port <= 1025; port++) client.request({ hostname: "127.0.0.1", port });
  assert.strictEqual(client.gauges("127.0.0.1", 1), undefined);
  assert.strictEqual(client.gauges("127.0.0.1", 2).rtoUs, 2000000);
  assert.throws(() => new Agent({ mechanism: "tcp" }), /choose one of/);
});
