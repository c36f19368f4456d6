"use strict";

const coap = require("coap");
const { State } = require("./mechanism");
const { Sender } = require("./sender");

/** The number of destinations that an agent remembers. */
const MAX_PEERS = 1024;

/** node-coap's Agent, whose confirmable requests are sent again by a mechanism. index.d.ts has the documentation. */
class Agent extends coap.Agent {
  #mechanism;
  #peers = new Map(); // by host and port; the one that was used last is at the end

  constructor({ mechanism = "ebb", ...options } = {}) {
    super(options);
    this.#mechanism = new State(mechanism).mechanism;
  }

  request(url) {
    const request = super.request(url);
    if (url.confirmable === false || url.multicast === true) return request;
    const stock = request.sender;
    const sender = new Sender(request, this.#peer(`${stock._host}:${stock._port}`), this._sock, stock);
    for (const event of stock.eventNames()) {
      for (const listener of stock.rawListeners(event)) sender.on(event, listener);
    }
    request.sender = sender;
    return request;
  }

  gauges(host, port = coap.parameters.coapPort) {
    return this.#peers.get(`${host}:${port}`)?.state.gauges();
  }

  _nextToken() {
    const token = super._nextToken();
    // Room for the ordinal of a copy.
    return this.#mechanism === "ebb" ? token.subarray(0, 7) : token;
  }

  _handle(packet, ...rest) {
    const request = this.#answered(packet);
    // One more acknowledgement is to be ignored in silence (RFC 7252 §4.2). node-coap would send a Reset.
    if (packet.ack && request === undefined) return;
    if (request?.sender instanceof Sender) request.sender.receive(packet);
    super._handle(packet, ...rest);
  }

  /** Returns the request that a packet answers. A Message ID counts for acknowledgements and Resets alone: others have the server's. */
  #answered({ ack, reset, messageId, token }) {
    const request = ack || reset ? this._msgIdToReq.get(messageId) : undefined;
    return request ?? this._tkToReq.get(token.toString("hex")) ?? this._tkToReq.get(token.subarray(0, -1).toString("hex"));
  }

  #peer(key) {
    const peer = this.#peers.get(key) ?? { state: new State(this.#mechanism), outstanding: 0, isSilent: false };
    this.#peers.delete(key);
    this.#peers.set(key, peer);
    if (this.#peers.size > MAX_PEERS) this.#peers.delete(this.#peers.keys().next().value);
    return peer;
  }
}

module.exports = { Agent };
