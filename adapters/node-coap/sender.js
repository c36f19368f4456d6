"use strict";

const { EventEmitter } = require("node:events");
const { performance } = require("node:perf_hooks");
const { parameters } = require("coap");
const { afterTimeout, patientTimeout } = require("./patience");

/** Options of requests that a server may know by their token: their copies keep it. */
const KNOWN_BY_TOKEN = new Set(["Observe", "Block1", "Block2", "Q-Block1", "Q-Block2", "19", "31"]);

const now = () => Math.floor(performance.now() * 1000);

/** Returns a message with the ordinal of a transmission appended to its token, which has fewer than 8 bytes. */
function marked(message, ordinal) {
  const end = 4 + (message[0] & 15);
  const copy = Buffer.concat([message.subarray(0, end), Buffer.of(ordinal), message.subarray(end)]);
  copy[0]++;
  return copy;
}

/** Sends the message of a request, and again by a mechanism. It is in the place of node-coap's RetrySend, with its methods and events. */
class Sender extends EventEmitter {
  #socket;
  #peer;
  #request;
  #maxRetransmit;
  #message;
  #exchange = null; // null if none is under way
  #sent = []; // { departedUs, timeoutUs } of each transmission
  #mayMark = false;
  #retry;
  #lifetime;

  constructor(request, peer, socket, stock) {
    super();
    this._host = stock._host;
    this._port = stock._port;
    this.#request = request;
    this.#peer = peer;
    this.#socket = socket;
    this.#maxRetransmit = stock._maxRetransmit;
  }

  /** Sends a message. Without a backoff it is sent once. */
  send(message, avoidBackoff) {
    this.reset();
    this.#message = message;
    this.#sent = [];
    this.#mayMark = this.#peer.state.marks && (message[0] & 15) > 0 && (message[0] & 15) < 8 &&
      !(this.#request._packet.options ?? []).some(({ name }) => KNOWN_BY_TOKEN.has(String(name)));
    if (avoidBackoff === true) this.#transmit(message);
    else this.#depart();
    const seconds = avoidBackoff === true ? parameters.maxRTT : parameters.exchangeLifetime;
    this.#lifetime = setTimeout(() => {
      const error = Object.assign(new Error(`No reply in ${seconds} seconds.`), { retransmitTimeout: seconds });
      this.#end("given-up");
      if (avoidBackoff === false) this.emit("error", error);
      this.emit("timeout", error);
    }, seconds * 1000);
  }

  /** Ends the transmissions. node-coap calls it after an answer, which receive() has counted, and where it loses interest. */
  reset() {
    clearTimeout(this.#lifetime);
    this.#end("cancelled");
  }

  /** Takes in an answer before node-coap sees it, and takes the ordinal from its token. */
  receive(packet) {
    const token = this.#request._packet.token;
    const last = this.#sent.length - 1;
    let ordinal = this.#mayMark && last > 0 ? 0 : undefined;
    if (packet.code === "0.00") {
      ordinal = undefined;
    } else if (!packet.token.equals(token)) {
      const found = packet.token[token.length];
      const isMarked = this.#mayMark && packet.token.length === token.length + 1 && packet.token.subarray(0, -1).equals(token);
      if (!isMarked || found === 0 || found > last) return; // node-coap ignores it
      ordinal = found;
      packet.token = token;
    }
    this.#peer.isSilent = false;
    if (packet.reset) {
      this.#end("reset");
      return;
    }
    if (this.#exchange === null) return;
    const nowUs = now();
    const sample = {
      sinceFirstUs: nowUs - this.#sent[0].departedUs, sinceLastUs: nowUs - this.#sent[last].departedUs, retransmits: Math.min(last, 255),
    };
    if (ordinal !== undefined) {
      const { departedUs, timeoutUs } = this.#sent[ordinal];
      // A server may have repeated an old answer for a later copy (RFC 7252 §4.5): such an answer names no transmission.
      if (ordinal === last || nowUs - departedUs < timeoutUs) {
        Object.assign(sample, { answered: ordinal, sinceAnsweredUs: nowUs - departedUs });
      }
    }
    this.#end("acked", sample);
  }

  #cue() {
    return { nowUs: now(), draw: Math.floor(Math.random() * 2 ** 32), outstanding: this.#peer.outstanding };
  }

  /** Counts a transmission and sends it. Its timeout is the mechanism's, or longer by patience. */
  #depart() {
    const { state } = this.#peer;
    const retransmits = this.#sent.length;
    if (retransmits === 0) this.#peer.outstanding++;
    const cue = this.#cue();
    let timeoutUs;
    if (retransmits === 0) ({ exchange: this.#exchange, timeoutUs } = state.start(cue));
    else timeoutUs = state.retransmit(this.#exchange, cue);
    const sinceFirstUs = retransmits === 0 ? 0 : cue.nowUs - this.#sent[0].departedUs;
    timeoutUs = patientTimeout(this.#patience(), timeoutUs, sinceFirstUs, retransmits, this.#peer.isSilent, cue.draw);
    this.#sent.push({ departedUs: cue.nowUs, timeoutUs });
    this.#wait(timeoutUs);
    this.#transmit(retransmits > 0 && this.#mayMark ? marked(this.#message, Math.min(retransmits, 255)) : this.#message);
  }

  #wait(us) {
    // A timer of Node.js counts milliseconds, and takes 2^31 of them for none.
    this.#retry = setTimeout(() => this.#timeOut(), Math.min(Math.ceil(us / 1000), 2 ** 31 - 1));
  }

  #timeOut() {
    const retransmits = this.#sent.length - 1;
    this.#peer.isSilent ||= retransmits >= this.#maxRetransmit;
    const { action, waitUs } = afterTimeout(this.#patience(), now() - this.#sent[0].departedUs, retransmits);
    if (action === "send-copy") this.#depart();
    else if (action === "wait") this.#wait(waitUs);
    else this.#end("given-up"); // an answer within the lifetime is still welcome
  }

  #patience() {
    const { ackTimeout, ackRandomFactor } = parameters;
    const ackTimeoutUs = Math.round(ackTimeout * 1e6);
    return { ackTimeoutUs, longestAckTimeoutUs: Math.round(ackTimeoutUs * ackRandomFactor), maxRetransmit: this.#maxRetransmit };
  }

  #transmit(message) {
    this.#socket.send(message, 0, message.length, this._port, this._host, (error, bytes) => {
      this.emit("sent", error, bytes);
      if (error != null) this.emit("error", error);
    });
    this.emit("sending", message);
  }

  #end(outcome, sample) {
    clearTimeout(this.#retry);
    if (this.#exchange === null) return;
    this.#peer.state.end(this.#exchange, outcome, this.#cue(), sample);
    this.#peer.outstanding--;
    this.#exchange = null;
  }
}

module.exports = { Sender };
