// The mechanisms: a port of c/coapace.c, step by step, with integers alone.
//
// Integers are numbers, not BigInts: no intermediate result reaches 2^53. The largest are the timeout of cocoa with 65,535 exchanges under
// way (3·2^48) and a span by 64 (2^46). Numbers of 32 by 64 bits are multiplied in halves of 16 bits (drawn).
"use strict";

// A span is a time in units of 1/4096 µs, LONGEST at most. Averages in microseconds would stall.
const LONGEST = 2 ** 40 - 1; // 268 s
const MS = 4096 * 1000;
const SECOND = 1000 * MS;
const GRANULARITY = MS; // G, RFC 6298 §2.3

/** The names of the mechanisms. */
const MECHANISMS = Object.freeze(["default", "linux-rto", "cocoa", "fasor", "ebb", "ebb-plain"]);

/** Returns a time in microseconds as an integer from 0 to 2^53 - 1. */
const whole = (us) => (us > 0 ? Math.min(Math.floor(us), Number.MAX_SAFE_INTEGER) : 0);
const spanOf = (us) => (whole(us) >= 2 ** 28 ? LONGEST : whole(us) * 4096);
const usOf = (span) => Math.floor((span + 2048) / 4096);

/** Returns value / 2^shift, to the nearest integer, halves up. The shift is 1 at least. */
const part = (value, shift) => Math.floor((value + 2 ** (shift - 1)) / 2 ** shift);

/** Returns a step of a moving average, with a weight of 1/2^shift for the new value. */
const blend = (old, next, shift) => part(old * 2 ** shift - old + next, shift);

/** Returns U(0, value), to the nearest integer. */
function drawn(value, draw) {
  const high = Math.floor(value / 2 ** 32);
  const low = value - high * 2 ** 32;
  const below = low * (draw & 0xffff) + 2 ** 31;
  return high * draw + Math.floor((low * (draw >>> 16) + Math.floor(below / 2 ** 16)) / 2 ** 16);
}

/** Returns a timeout in microseconds that is drawn from 2 to 3 s and doubled by each retransmission, 60 s at most (RFC 7252 §4.2). */
function rfc7252Timeout(retransmits, draw) {
  const least = 2000000 * 2 ** Math.min(retransmits, 5);
  return Math.min(least + drawn(least / 2, draw), 60000000);
}

/** Returns a measured time as a span of 1 µs at least. */
const rttOf = (us) => spanOf(Math.max(whole(us), 1));

/** Returns the round-trip time of a sample, or zero if there is none or it is ambiguous: Karn's algorithm. */
function clearRtt(sample) {
  if (sample === null || (sample.answered === undefined && sample.retransmits > 0)) return 0;
  return rttOf(sample.answered === undefined ? sample.sinceFirstUs : sample.sinceAnsweredUs);
}

/** SRTT and RTTVAR (RFC 6298). SRTT is zero before the first sample, and never after. */
class Estimator {
  constructor() {
    this.srtt = 0;
    this.rttvar = 0;
  }

  /** Takes in a sample. RTTVAR is 1/2^first of the first one. Later ones weigh 1/2^gain in it. */
  learn(rtt, first, gain) {
    if (this.srtt === 0) {
      this.srtt = rtt;
      this.rttvar = part(rtt, first);
      return;
    }
    this.rttvar = blend(this.rttvar, Math.abs(this.srtt - rtt), gain);
    this.srtt = blend(this.srtt, rtt, 3);
  }

  /** Returns SRTT + max(G, k·RTTVAR) within bounds. */
  rto(k, shortest, longest) {
    return Math.min(Math.max(this.srtt + Math.max(k * this.rttvar, GRANULARITY), shortest), longest);
  }
}

// A kind of mechanism has arm(exchange, cue): a transmission departs, and the timeout is returned as a span; end(exchange, sample, cue): the
// exchange was answered, or given up if the sample is null; rto(): the RTO as a span.

class Default {
  arm(exchange, cue) {
    // Every timeout is computed from the draw of the exchange, so errors of rounding do not add up.
    if (exchange.retransmits === 0) exchange.draw = cue.draw;
    return spanOf(rfc7252Timeout(exchange.retransmits, exchange.draw));
  }

  end() {}

  rto() {
    return 2 * SECOND;
  }
}

class LinuxRto {
  constructor() {
    this.estimator = new Estimator();
    this.kept = 0; // zero before there is one
  }

  rto() {
    return this.kept || 2 * SECOND;
  }

  arm(exchange) {
    let timeout = this.rto();
    if (exchange.retransmits > 0) {
      // Exchanges that overlap lose the same packets. Their backoffs do not add up: the longest is kept.
      const backedOff = Math.min(2 * exchange.timeout, 60 * SECOND);
      this.kept = Math.max(timeout, backedOff);
      timeout = backedOff;
    }
    exchange.timeout = timeout;
    return timeout;
  }

  end(exchange, sample) {
    const rtt = clearRtt(sample);
    if (rtt === 0) return;
    this.estimator.learn(rtt, 1, 2);
    this.kept = this.estimator.rto(4, SECOND, 60 * SECOND);
  }
}

/** Returns a moment in ms modulo 2^32. */
const msOf = (us) => ((us - (us % 1000)) / 1000) % 2 ** 32;

class Cocoa {
  constructor() {
    this.estimator = new Estimator(); // of exchanges without a copy
    this.weak = new Estimator(); // of exchanges with copies
    this.kept = 0; // zero before there is one
    this.renewed = 0; // in ms modulo 2^32
  }

  rto() {
    return this.kept || 2 * SECOND;
  }

  /** Ages an RTO that was not renewed. Below 1 s it doubles after 16 RTO. Above 3 s it halves after 4 RTO (draft-ietf-core-cocoa-03 §4.3). */
  age(nowUs) {
    let idleUs = 1000 * ((msOf(nowUs) - this.renewed + 2 ** 32) % 2 ** 32);
    while (this.kept < SECOND || this.kept > 3 * SECOND) {
      const isShort = this.kept < SECOND;
      const patienceUs = usOf(this.kept) * (isShort ? 16 : 4);
      if (idleUs <= patienceUs) return;
      idleUs -= patienceUs;
      this.kept = isShort ? 2 * this.kept : SECOND + part(this.kept, 1);
      this.renewed = msOf(nowUs - Math.min(nowUs, idleUs));
    }
  }

  arm(exchange, cue) {
    if (exchange.retransmits > 0) { // a first timeout of more than 32 s stays
      const backedOff = Math.min(part(exchange.timeout * exchange.factor, 1), 32 * SECOND);
      exchange.timeout = Math.max(exchange.timeout, backedOff);
      return exchange.timeout;
    }
    let times = Math.max(cue.outstanding, 1);
    if (this.kept !== 0) {
      this.age(cue.nowUs);
      times = 1; // before the first sample, the k-th exchange under way waits k times the RTO
    }
    let timeout = this.rto();
    exchange.factor = timeout < SECOND ? 6 : timeout > 3 * SECOND ? 3 : 4; // in halves
    timeout *= times;
    exchange.timeout = Math.min(timeout + drawn(part(timeout, 1), cue.draw), 60 * SECOND);
    return exchange.timeout;
  }

  end(exchange, sample, cue) {
    if (sample === null || sample.retransmits > 2) return;
    const isStrong = sample.retransmits === 0;
    const estimator = isStrong ? this.estimator : this.weak;
    const weight = isStrong ? 2 : 1; // in quarters of the RTO. K, 4 or 1, is its square
    estimator.learn(rttOf(sample.sinceFirstUs), 1, 2);
    const rto = part(this.rto() * (4 - weight) + estimator.rto(weight * weight, 0, LONGEST) * weight, 2);
    this.kept = Math.min(Math.max(rto, 50 * MS), 60 * SECOND);
    this.renewed = msOf(cue.nowUs);
  }
}

// The series of timeouts of an exchange (draft-ietf-core-fasor-02 §4.2). f is the fast RTO with its dither, s the slow RTO:
// f, 2f, 4f…; f, max(s, 2f), 2f, 4f…; s, f, 2f, 4f…
const FAST = 0;
const FAST_SLOW_FAST = 1;
const SLOW_FAST = 2;

class Fasor {
  constructor() {
    this.estimator = new Estimator();
    this.slow = 0;
    this.series = FAST;
    this.ambiguous = 0; // counts ambiguous answers, modulo 256
  }

  rto() {
    return this.estimator.srtt === 0 ? 2 * SECOND : this.estimator.rto(4, 50 * MS, 60 * SECOND);
  }

  arm(exchange, cue) {
    let doublings = exchange.retransmits;
    if (doublings === 0) {
      const srtt = this.estimator.srtt || Math.floor((2 * SECOND + 1) / 3);
      exchange.fast = Math.min(this.rto() + part(srtt, 2) + drawn(srtt - part(srtt, 2), cue.draw), LONGEST);
      exchange.slow = this.slow;
      exchange.series = this.series;
      exchange.round = this.ambiguous;
    }
    let timeout = exchange.fast;
    if (exchange.series === SLOW_FAST && doublings === 0) timeout = exchange.slow;
    else if (exchange.series === FAST_SLOW_FAST && doublings === 1) timeout = Math.max(exchange.slow, 2 * timeout);
    if (exchange.series !== FAST && doublings > 0) doublings--;
    for (; doublings > 0 && timeout < 60 * SECOND; doublings--) timeout *= 2;
    timeout = Math.min(timeout, 60 * SECOND);
    exchange.timeout = Math.min(exchange.timeout + timeout, LONGEST); // the sum of all
    return timeout;
  }

  end(exchange, sample) {
    const rtt = clearRtt(sample);
    if (rtt !== 0) this.estimator.learn(rtt, 3, 2);
    if (sample !== null && sample.retransmits === 0) {
      // An exchange that began before the last ambiguous answer does not return to the fast RTO.
      if (exchange.round === this.ambiguous) this.series = FAST;
      return;
    }
    const elapsed = sample === null ? exchange.timeout : rttOf(sample.sinceFirstUs);
    this.slow = Math.min(part(3 * elapsed, 1), LONGEST);
    this.ambiguous = (this.ambiguous + 1) % 256;
    this.series = this.series === FAST ? FAST_SLOW_FAST : SLOW_FAST;
  }
}

class Ebb {
  constructor() {
    this.estimator = new Estimator();
    this.least = 0; // the least round-trip time
    this.held = 0; // the timeout that later exchanges hold
  }

  /** Returns whether the path has no standing queue, by SRTT and by how late an answer came. It does not before a sample. */
  isCalm(late) {
    const longer = Math.max(this.estimator.srtt, late);
    return this.least !== 0 && (longer * 20 <= this.least * 23 + 10 || longer <= this.least + 60 * MS);
  }

  rto() {
    let rto = 2 * SECOND; // also the least RTO with a queue
    if (this.least !== 0) rto = this.estimator.rto(3, this.isCalm(0) ? 50 * MS : rto, 247 * SECOND);
    return Math.max(rto, this.held);
  }

  arm(exchange, cue) {
    if (exchange.retransmits === 0) {
      const rto = this.rto();
      exchange.timeout = Math.min(rto + drawn(part(rto, 2), cue.draw), 247 * SECOND);
      return exchange.timeout;
    }
    const blind = exchange.retransmits === 1 ? 6 : 4; // in halves
    const factor = this.least !== 0 ? 3 : blind;
    exchange.timeout = Math.max(exchange.timeout, Math.min(part(exchange.timeout * factor, 1), 60 * SECOND));
    return exchange.timeout;
  }

  end(exchange, sample) {
    if (sample === null) {
      this.held = exchange.timeout;
      return;
    }
    let rtt = clearRtt(sample);
    let late = 0;
    let isSpurious = sample.answered !== undefined && sample.answered < sample.retransmits;
    if (rtt === 0 && sample.retransmits === 1 && 2 * spanOf(sample.sinceLastUs) < this.least) {
      // The copy cannot have been answered in half of the shortest time before. The first one was.
      rtt = rttOf(sample.sinceFirstUs);
      isSpurious = true;
    }
    if (rtt !== 0) {
      this.estimator.learn(rtt, 1, 1);
      // It rises by 1/64 of its distance to SRTT, so that a longer route is learnt.
      const risen = this.least !== 0 ? blend(this.least, this.estimator.srtt, 6) : rtt;
      this.least = Math.min(risen, rtt);
    } else {
      late = spanOf(sample.sinceLastUs);
    }
    this.held = sample.retransmits > 0 && !isSpurious && !this.isCalm(late) ? exchange.timeout : 0;
  }
}

const KINDS = { default: Default, "linux-rto": LinuxRto, cocoa: Cocoa, fasor: Fasor, ebb: Ebb, "ebb-plain": Ebb };

class Exchange {
  constructor(state) {
    this.state = state;
    this.isOpen = true;
    this.retransmits = 0; // 255 if more
    this.timeout = 0; // the last one; fasor: the sum of all
    this.draw = 0; // default
    this.factor = 0; // cocoa: of the backoff, in halves
    this.fast = 0; // fasor: the RTOs, the series and the count of ambiguous answers at the start
    this.slow = 0;
    this.series = FAST;
    this.round = 0;
  }
}

const checked = ({ nowUs = 0, draw = 0, outstanding = 1 }) => ({
  nowUs: whole(nowUs), draw: draw >>> 0, outstanding: Math.min(whole(outstanding), 65535),
});

/** What a mechanism knows of one destination. index.d.ts has the documentation. */
class State {
  #kind;

  constructor(mechanism) {
    if (!MECHANISMS.includes(mechanism)) {
      throw new RangeError(`no mechanism "${mechanism}": choose one of ${MECHANISMS.join(", ")}`);
    }
    this.mechanism = mechanism;
    this.#kind = new KINDS[mechanism]();
  }

  get marks() {
    return this.mechanism === "ebb";
  }

  start(cue) {
    const exchange = new Exchange(this);
    return { exchange, timeoutUs: usOf(this.#kind.arm(exchange, checked(cue))) };
  }

  retransmit(exchange, cue) {
    if (!exchange.isOpen || exchange.state !== this) return 3000000;
    exchange.retransmits = Math.min(exchange.retransmits + 1, 255);
    return usOf(this.#kind.arm(exchange, checked(cue)));
  }

  end(exchange, outcome, cue, sample) {
    if (!exchange.isOpen || exchange.state !== this) return;
    if (!["acked", "reset", "cancelled", "given-up"].includes(outcome) || (outcome === "acked" && !sample)) {
      throw new TypeError(`"${outcome}" is not an outcome: acked with a sample, reset, cancelled or given-up`);
    }
    exchange.isOpen = false;
    if (outcome === "acked") this.#kind.end(exchange, sample, checked(cue));
    else if (outcome === "given-up") this.#kind.end(exchange, null, checked(cue));
  }

  gauges() {
    const { estimator, weak } = this.#kind;
    const { srtt = 0, rttvar = 0 } = (estimator?.srtt ? estimator : weak) ?? {};
    return { rtoUs: usOf(this.#kind.rto()), srttUs: usOf(srtt), rttvarUs: usOf(rttvar) };
  }
}

module.exports = { MECHANISMS, State, drawn, rfc7252Timeout };
