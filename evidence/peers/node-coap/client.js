// client ADDRESS PORT PATH PAYLOAD: for every number N on standard input, makes N GETs one after the other, and prints the
// number answered with the payload.
"use strict";
const coap = require("coap");
const dgram = require("dgram");
const readline = require("readline");

const [hostname, port, path, payload] = process.argv.slice(2);
// All requests use one socket; the default agent would open one for each request.
const agent = new coap.Agent({ socket: dgram.createSocket("udp4") });

function get() {
  return new Promise((resolve) => {
    const request = coap.request({ hostname, port: Number(port), pathname: `/${path}`, agent });
    request.on("response", (response) =>
      resolve(response.code === "2.05" && response.payload.toString() === payload));
    request.on("error", () => resolve(false));
    request.end();
  });
}

async function main() {
  for await (const line of readline.createInterface({ input: process.stdin })) {
    let answered = 0;
    for (let left = Number(line); left > 0; left--) {
      if (await get()) answered++;
    }
    console.log(String(answered));
  }
  process.exit(0);
}

main();
