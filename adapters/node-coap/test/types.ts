// Compiled, not run: what index.d.ts has to accept, and what it must not.
import * as coap from "coap";
import { Agent, MECHANISMS, State, afterTimeout, patientTimeout, type Gauges, type MechanismName } from "..";

coap.setGlobalAgent(new Agent());
const agent: coap.Agent = new Agent({ mechanism: "cocoa", type: "udp6" });
agent.request({ hostname: "host", pathname: "/" }).end();
const gauges: Gauges | undefined = new Agent().gauges("host");
const names: readonly MechanismName[] = MECHANISMS;

const state = new State("ebb");
const { exchange, timeoutUs } = state.start({ nowUs: 0, draw: 1, outstanding: 1 });
const next: number = state.retransmit(exchange, {});
state.end(exchange, "acked", {}, { sinceFirstUs: 1, sinceLastUs: 1, retransmits: 0 });
// @ts-expect-error: no such mechanism
new State("tcp");
// @ts-expect-error: no such outcome
state.end(exchange, "lost", {});

const patience = { ackTimeoutUs: 2e6, longestAckTimeoutUs: 3e6, maxRetransmit: 4 };
const { action, waitUs } = afterTimeout(patience, 1, 4);
export const used = [gauges, names, next, action, waitUs, patientTimeout(patience, timeoutUs, 0, 0, false, 1)];
