"use strict";

const { drawn } = require("./mechanism");

/** Returns the sum of so many timeouts that begin with this one and double, 2^53 - 1 at most. */
const sum = (firstUs, count) => Math.min(firstUs * (2 ** count - 1), Number.MAX_SAFE_INTEGER);

/** Says what to do as a timeout has passed. index.d.ts has the documentation. */
function afterTimeout({ ackTimeoutUs, longestAckTimeoutUs, maxRetransmit }, sinceFirstUs, retransmits) {
  if (retransmits < maxRetransmit) return { action: "send-copy", waitUs: 0 };
  if (sinceFirstUs >= sum(ackTimeoutUs, maxRetransmit + 1)) return { action: "give-up", waitUs: 0 };
  const untilUs = sum(longestAckTimeoutUs, Math.max(maxRetransmit, 1));
  if (sinceFirstUs < untilUs) return { action: "wait", waitUs: untilUs - sinceFirstUs };
  return { action: "send-copy", waitUs: 0 };
}

/** Returns the time to wait after a transmission. index.d.ts has the documentation. */
function patientTimeout(patience, timeoutUs, sinceFirstUs, retransmits, isSilent, draw) {
  const { ackTimeoutUs, longestAckTimeoutUs, maxRetransmit } = patience;
  if (retransmits > maxRetransmit) {
    // The rest of MAX_TRANSMIT_WAIT; if the copy is late, as long as between the least wait and that.
    const mostUs = sum(longestAckTimeoutUs, maxRetransmit + 1);
    return Math.max(mostUs - sum(ackTimeoutUs, maxRetransmit + 1), mostUs - sinceFirstUs);
  }
  if (!isSilent) return timeoutUs;
  const firstUs = ackTimeoutUs + drawn(longestAckTimeoutUs - ackTimeoutUs, draw);
  return Math.max(timeoutUs, Math.min(firstUs * 2 ** retransmits, Number.MAX_SAFE_INTEGER));
}

module.exports = { afterTimeout, patientTimeout };
