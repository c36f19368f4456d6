// client METHOD URI [non] [block=BYTES] [observe=N]: one request with node-coap.
"use strict";
const coap = require("coap");
const fs = require("fs");

const [method, uri, ...words] = process.argv.slice(2);
const flags = Object.fromEntries(words.map((word) => [...word.split("=", 2), ""].slice(0, 2)));
const { hostname, port, pathname, search } = new URL(uri);
const payload = fs.readFileSync(0);
const agent = new coap.Agent({ type: "udp4" });

const request = coap.request({
  hostname, port: Number(port), pathname, query: search.slice(1), method, agent,
  confirmable: !("non" in flags), observe: "observe" in flags,
});
if (payload.length > 0) request.setOption("Content-Format", "text/plain");
// The size exponent of the first block; a payload that fits into one block has no Block1.
const exponent = Math.log2(Number(flags.block || 1024)) - 4;
if (payload.length > 16 << exponent) request.setOption("Block1", Buffer.of(exponent));
if (method === "GET" && "block" in flags) request.setOption("Block2", Buffer.of(exponent));

const show = (code, bytes) => console.log(`${code} ${bytes.toString("hex")}`);
const fail = (error) => {
  console.error(error.message);
  process.exit(1);
};
request.on("error", fail);
request.on("timeout", fail);
request.on("response", (response) => {
  response.on("error", fail);
  if (!("observe" in flags)) {
    return show(response.code, response.payload);
  }
  let left = Number(flags.observe);
  response.on("data", (bytes) => {
    show(response.code, bytes);
    if (--left > 0) return;
    response.close(true);
    setTimeout(() => process.exit(0), 500);  // until the message is acknowledged
  });
});
request.end(payload.length > 0 ? payload : undefined);
