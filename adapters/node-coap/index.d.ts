import { Agent as StockAgent } from "coap";

/** The names of the mechanisms. */
export type MechanismName = "default" | "linux-rto" | "cocoa" | "fasor" | "ebb" | "ebb-plain";

/**
 * The mechanisms: `default` (RFC 7252 §4.2: 2 to 3 s, doubled by every retransmission), `linux-rto` (the timer of TCP, RFC 6298), `cocoa`
 * (draft-ietf-core-cocoa-03), `fasor` (draft-ietf-core-fasor-02), `ebb` (docs/ebb.md, with the ordinal in the token of retransmissions) and
 * `ebb-plain` (without it).
 */
export const MECHANISMS: readonly MechanismName[];

/** The options of node-coap's Agent, and the mechanism: `ebb` if it is left out. An unknown name throws a RangeError. */
export type Options = NonNullable<ConstructorParameters<typeof StockAgent>[0]> & { mechanism?: MechanismName };

/**
 * node-coap's Agent, whose confirmable requests are sent again by a mechanism. What the mechanism knows of a destination, a host and port as
 * the request names them, is kept for the 1,024 destinations that were used last. Non-confirmable and multicast requests are as before.
 *
 * A request fails when node-coap says so, after `parameters.exchangeLifetime` (247 s). It gets at most `parameters.maxRetransmit` + 2
 * transmissions, and a silent destination at most `maxRetransmit` + 1 in any MAX_TRANSMIT_SPAN (45 s, RFC 7252 §4.8.2).
 */
export class Agent extends StockAgent {
  constructor(options?: Options);
  /** Returns the estimates for a destination, or undefined if none is kept. The port is 5683 if it is left out. */
  gauges(host: string, port?: number): Gauges | undefined;
}

/** Estimates, to be shown. Times are integers in microseconds. */
export interface Gauges {
  /** The RTO that the next exchange starts from, before its random part: 50,000 to 268,435,456. */
  rtoUs: number;
  /** The smoothed round-trip time; 0 before the first sample. */
  srttUs: number;
  /** The variation of the round-trip time; 0 before the first sample. */
  rttvarUs: number;
}

/** What comes with every call: time, randomness and load. */
export interface Cue {
  /** The present moment, in microseconds since an origin that the caller chooses once: an integer from 0 to 2^53 - 1. 0 if it is left out. */
  nowUs?: number;
  /** An integer from 0 to 2^32 - 1, uniformly random, drawn again for every call. 0 if it is left out. */
  draw?: number;
  /** Exchanges to this destination that are under way, this one included: 1 to 65,535. 1 if it is left out. */
  outstanding?: number;
}

/** The facts of an acknowledgement. Times are integers in microseconds. */
export interface Sample {
  /** Time since the first transmission departed. */
  sinceFirstUs: number;
  /** Time since the last transmission departed. */
  sinceLastUs: number;
  /** Retransmissions made: 0 to 255, and 255 for more. */
  retransmits: number;
  /** The ordinal of the transmission that was answered, 0 for the first; left out if it is unknown. */
  answered?: number;
  /** Time since that transmission departed; if `answered` is there. */
  sinceAnsweredUs?: number;
}

/** How an exchange ended. `cancelled`: the application lost interest. `given-up`: the timeout after the last retransmission passed. */
export type Outcome = "acked" | "reset" | "cancelled" | "given-up";

/** An exchange under way: one confirmable message with its retransmissions. Opaque. */
export interface Exchange {
  readonly isOpen: boolean;
}

/**
 * What a mechanism knows of one destination. It has no timers, sockets or random numbers: the caller brings them. Bit by bit the arithmetic
 * of c/coapace.c, in numbers that are integers below 2^53.
 */
export class State {
  /** Throws a RangeError at an unknown name. */
  constructor(mechanism: MechanismName);
  readonly mechanism: MechanismName;
  /** Whether retransmissions carry their ordinal as the last byte of the token, so that an answer tells which transmission it answers. */
  readonly marks: boolean;
  /** Begins an exchange, as its first transmission departs. `timeoutUs` is the time to wait for an answer: 1 to 268,435,456. */
  start(cue: Cue): { exchange: Exchange; timeoutUs: number };
  /**
   * Backs off, as the timeout has passed and a retransmission departs. Returns the next time to wait. For an exchange that is over, or of
   * another state, it changes nothing and returns 3,000,000, the longest first timeout of RFC 7252 §4.8.
   */
  retransmit(exchange: Exchange, cue: Cue): number;
  /** Ends an exchange; one that is over, or of another state, is left alone. `acked` needs the sample, or a TypeError is thrown. */
  end(exchange: Exchange, outcome: Outcome, cue: Cue, sample?: Sample): void;
  gauges(): Gauges;
}

/** What patience is made of. Times are integers in microseconds. */
export interface Patience {
  /** ACK_TIMEOUT: 2,000,000 in RFC 7252 §4.8. */
  ackTimeoutUs: number;
  /** ACK_TIMEOUT times ACK_RANDOM_FACTOR: 3,000,000. */
  longestAckTimeoutUs: number;
  /** MAX_RETRANSMIT: 4. */
  maxRetransmit: number;
}

/**
 * Says what to do as the timeout of a transmission has passed without an answer. A mechanism says when to send a copy, not when a peer is
 * dead: with the numbers of RFC 7252 this waits until 45 s after the first transmission (MAX_TRANSMIT_SPAN), has one more copy sent then,
 * and gives up after 93 s (MAX_TRANSMIT_WAIT). An exchange whose own timeouts add up to 62 s ends without that copy.
 */
export function afterTimeout(
  patience: Patience, sinceFirstUs: number, retransmits: number,
): { action: "send-copy" | "wait" | "give-up"; waitUs: number };

/**
 * Returns the time to wait after a transmission for which the mechanism says `timeoutUs`. `retransmits` counts this transmission if it is a
 * copy. `isSilent`: the last timeout of an exchange with this peer has passed (afterTimeout was called with retransmits >= maxRetransmit),
 * and nothing came from it since. A silent peer gets no more datagrams than RFC 7252 §4.2 sends.
 */
export function patientTimeout(
  patience: Patience, timeoutUs: number, sinceFirstUs: number, retransmits: number, isSilent: boolean, draw: number,
): number;
