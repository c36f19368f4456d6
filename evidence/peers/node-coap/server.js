// server ADDRESS PORT PATH PAYLOAD: one resource.
"use strict";
const coap = require("coap");

const [address, port, path, payload] = process.argv.slice(2);
const server = coap.createServer((request, response) => {
  if (request.method === "GET" && request.url === `/${path}`) {
    response.end(payload);
  } else {
    response.code = "4.04";
    response.end();
  }
});
// Datagrams that cannot be parsed are reported here. Without a listener they would end the process.
server.on("error", () => {});
server.listen(Number(port), address);
