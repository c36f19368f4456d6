// requests MECHANISM HOST:PORT COUNT CLIENTS: see the script client.
"use strict";

const coap = require("coap");
const dgram = require("node:dgram");
const { performance } = require("node:perf_hooks");
const { Agent } = require(".");

const [mechanism, target, count, clients] = process.argv.slice(2);
const { hostname, port } = new URL(`coap://${target}`);

/** Makes a client with a socket of its own, and its requests one after another. */
async function client(number) {
  const socket = dgram.createSocket("udp4");
  const agent = mechanism === "stock" ? new coap.Agent({ socket }) : new Agent({ mechanism, socket });
  for (let i = 0; i < Number(count); i++) {
    const begun = performance.now();
    const result = await new Promise((resolve) => {
      const request = agent.request({ hostname, port: Number(port), pathname: "/" });
      request.on("response", () => resolve("ok"));
      request.on("timeout", () => resolve("failed"));
      request.on("error", () => {}); // a timeout follows, or a copy was not sent
      request.end();
    });
    process.stdout.write(`${number} ${(performance.now() - begun).toFixed(3)} ${result}\n`);
  }
  socket.close();
}

Promise.all(Array.from({ length: Number(clients) }, (_, number) => client(number)));
