// server PORT IDENTITY KEY: the resources of evidence/interop with node-coap, over UDP.
"use strict";
const coap = require("coap");

const stored = new Map();
let count = 0;

function large(size) {
  let text = "";
  for (let offset = 0; offset < size; offset += 64) text += `${offset}`.padEnd(63) + "\n";
  return text.slice(0, size);
}

const seconds = () => String(Math.floor(Date.now() / 1000));

function clock(request, response) {
  if (request.headers.Observe !== 0) return response.end(seconds());
  response.write(seconds());
  const timer = setInterval(() => response.write(seconds()), 1000);
  response.on("finish", () => clearInterval(timer));
}

function store(path, request, response) {
  switch (request.method) {
    case "PUT":
      response.code = stored.has(path) ? "2.04" : "2.01";
      stored.set(path, request.payload);
      return response.end();
    case "DELETE":
      stored.delete(path);
      response.code = "2.02";
      return response.end();
    default:
      if (!stored.has(path)) response.code = "4.04";
      return response.end(stored.get(path));
  }
}

const server = coap.createServer((request, response) => {
  const { pathname: path, searchParams: query } = new URL(request.url, "coap://localhost");
  switch (path) {
    case "/hello":
      return response.end("Hello");
    case "/echo":
      response.code = request.method === "FETCH" ? "2.05" : "2.04";
      return response.end(request.payload);
    case "/delayed":
      return setTimeout(() => response.end(`${query.get("s")} s later`), 1000 * query.get("s"));
    case "/large":
      return response.end(large(Number(query.get("bytes") ?? 8192)));
    case "/counter":
      if (request.method === "POST") {
        response.code = "2.04";
        count++;
      }
      return response.end(String(count));
    case "/clock":
      return clock(request, response);
    case "/.well-known/core":
      response.setOption("Content-Format", "application/link-format");
      return response.end("</hello>,</echo>,</delayed>,</large>,</counter>,</clock>;obs,</store>");
  }
  if (path.startsWith("/store/")) return store(path, request, response);
  response.code = "4.04";
  response.end();
});
server.listen(Number(process.argv[2]), "127.0.0.1", () => console.log("ready"));
