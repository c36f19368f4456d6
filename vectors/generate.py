#!/usr/bin/env python3
"""Writes the vectors beside this file: for every mechanism and preset a script of events, and what each event has to arm.

This is a second implementation of the mechanisms, written from RFC 6298, RFC 7252 and the drafts, in exact fractions of
a millisecond and with no regard for speed or size. What it shares with the crate is the reading of the sources: where
one is open, the choice is stated in the file of the mechanism in crates/control/src.

    python3 vectors/generate.py            writes the files
    python3 vectors/generate.py --check    tells, by its exit status, whether they are as it would write them
"""

import sys
from fractions import Fraction as F
from pathlib import Path

HERE = Path(__file__).resolve().parent
SECOND = F(1000)
MICROSECOND = F(1, 1000)


def apart(value, threshold, by=F(2, 1000)):
    """Refuses a script that decides on a hair's breadth: fixed point may fall on the other side."""
    assert value == threshold or abs(value - threshold) > by, f"{value} is too close to {threshold}"
    return value


def dithered(rto, draw, factor=F(3, 2)):
    return rto + draw * (factor * rto - rto)


class Rtt:
    """RFC 6298 section 2, with the first RTTVAR as a fraction of the first sample."""

    def __init__(self, first=F(1, 2)):
        self.first, self.srtt, self.rttvar = first, None, None

    def sample(self, r):
        if self.srtt is None:
            self.srtt, self.rttvar = r, self.first * r
        else:
            self.rttvar = F(3, 4) * self.rttvar + F(1, 4) * abs(self.srtt - r)
            self.srtt = F(7, 8) * self.srtt + F(1, 8) * r

    def rto(self, k=4):
        return self.srtt + max(MICROSECOND, k * self.rttvar)


class Exchange:
    def __init__(self, **facts):
        self.n = 0
        self.__dict__.update(facts)


class Default:
    """RFC 7252 section 4.2."""

    marked = False
    rto = 2 * SECOND

    def start(self, now, draw):
        x = Exchange(timeout=dithered(2 * SECOND, draw))
        return x, x.timeout

    def retransmit(self, x):
        x.timeout = min(2 * x.timeout, 60 * SECOND)
        return x.timeout

    def end(self, x, now, outcome, elapsed, answer):
        pass


class Linux:
    """RFC 6298 with Karn's rule, 1 s to 60 s."""

    marked = False

    def __init__(self, initial=2 * SECOND):
        self.rtt, self.rto = Rtt(), initial

    def start(self, now, draw):
        x = Exchange(timeout=self.rto)
        return x, x.timeout

    def retransmit(self, x):
        x.n += 1
        x.timeout = min(2 * x.timeout, 60 * SECOND)
        self.rto = x.timeout
        return x.timeout

    def end(self, x, now, outcome, elapsed, answer):
        if outcome == "ack" and x.n == 0:
            self.rtt.sample(elapsed)
            self.rto = min(max(self.rtt.rto(), 1 * SECOND), 60 * SECOND)


class Cocoa:
    """draft-ietf-core-cocoa-03 section 4; with other values CoCoA+."""

    marked = False

    def __init__(self, initial=2 * SECOND, cap=32 * SECOND, weak_up_to=2, large=F(3, 2), stepwise=False,
                 ageing="draft-03", strong_weight=F(1, 2)):
        self.cap, self.weak_up_to, self.large = cap, weak_up_to, large
        self.stepwise, self.ageing, self.strong_weight = stepwise, ageing, strong_weight
        self.strong, self.weak, self.rto, self.renewed = Rtt(), Rtt(), initial, None

    def vbf(self, rto):
        apart(rto, 1 * SECOND)
        apart(rto, 3 * SECOND)
        return 3 if rto < 1 * SECOND else self.large if rto > 3 * SECOND else 2

    def age(self, now):
        if self.renewed is None:
            return
        if self.ageing == "cocoa-plus" and self.rto > 2 * SECOND:
            if apart(now - self.renewed, 30 * SECOND, by=F(5)) >= 30 * SECOND:
                self.rto, self.renewed = (2 * SECOND + self.rto) / 2, now
        while self.ageing == "draft-03":
            if self.rto < 1 * SECOND:
                patience, aged = 16 * self.rto, 2 * self.rto
            elif self.rto > 3 * SECOND:
                patience, aged = 4 * self.rto, 1 * SECOND + self.rto / 2
            else:
                break
            if apart(now - self.renewed, patience, by=F(5)) <= patience:
                break
            self.rto, self.renewed = aged, self.renewed + patience

    def start(self, now, draw):
        self.age(now)
        x = Exchange(timeout=min(dithered(self.rto, draw), self.cap), factor=self.vbf(self.rto))
        return x, x.timeout

    def retransmit(self, x):
        x.n += 1
        factor = self.vbf(x.timeout) if self.stepwise else x.factor
        x.timeout = min(x.timeout * factor, self.cap)
        return x.timeout

    def end(self, x, now, outcome, elapsed, answer):
        if outcome != "ack" or x.n > self.weak_up_to:
            return
        rtt, k, weight = (self.strong, 4, self.strong_weight) if x.n == 0 else (self.weak, 1, F(1, 4))
        rtt.sample(elapsed)
        self.rto = min(weight * rtt.rto(k) + (1 - weight) * self.rto, self.cap)
        self.renewed = now


class Fasor:
    """draft-ietf-core-fasor-02 section 4; the thesis dithers the slow RTO too and has two more series."""

    def __init__(self, initial_k=1, slow_dither=False, variant="normal", marked=False):
        self.rtt = Rtt(F(initial_k, 8))
        self.slow_dither, self.variant, self.marked = slow_dither, variant, marked
        self.slow, self.state = None, "fast"

    def fast(self):
        return 2 * SECOND if self.rtt.srtt is None else self.rtt.rto()

    @property
    def rto(self):
        return min(self.fast(), 60 * SECOND)

    def start(self, now, draw):
        fast = self.fast()
        srtt = fast / 3 if self.rtt.srtt is None else self.rtt.srtt
        dither = srtt / 4 + draw * (srtt - srtt / 4)
        slow = None if self.slow is None else self.slow + (dither if self.slow_dither else 0)
        x = Exchange(series=self.series(self.state, fast + dither, slow))
        return x, next(x.series)

    @staticmethod
    def series(state, f, slow):
        def bounded(timeout):
            return min(timeout, 60 * SECOND)

        if state in ("fast-slow-fast", "fast-slow"):
            yield bounded(f)
            slot = max(slow, 2 * f)
            yield bounded(slot)
            base = 2 * f if state == "fast-slow-fast" else 2 * slot
        elif state == "slow-fast":
            yield bounded(slow)
            base = f
        else:
            base = slow if state == "slow" else f
        while True:
            yield bounded(base)
            base *= 2

    def retransmit(self, x):
        x.n += 1
        return next(x.series)

    def end(self, x, now, outcome, elapsed, answer):
        if outcome != "ack":
            return
        if answer is not None and self.marked:
            self.rtt.sample(answer)
        elif x.n == 0:
            self.rtt.sample(elapsed)
        if x.n == 0:
            self.state = "fast"
            return
        self.slow = F(3, 2) * elapsed
        after = {"fast": "fast-slow-fast"}.get(self.state, "slow-fast")
        self.state = {"normal": after, "slow": "slow", "fast-slow": "fast-slow"}[self.variant]


def decimal(value, places=3):
    """Rounded half up."""
    scaled = int(value * 10**places + F(1, 2))
    return f"{scaled // 10**places}.{scaled % 10**places:0{places}d}"


class Trace:
    """One mechanism driven through events; timers fire when they are due."""

    def __init__(self, name, mechanism):
        self.name, self.mechanism, self.now = name, mechanism, F(0)
        self.rows, self.x = [], None
        self.luck = 7

    def draw(self):
        """0, 0.5, and others in between, of at most six places."""
        self.luck = (self.luck * 7919 + 12345) % 1000003
        return ["", "0.5", "0.999999"][self.luck % 3] if self.luck % 5 == 0 else f"0.{self.luck % 1000000:06d}"

    def row(self, event, draw="", answered="", timeout=None):
        armed = "" if timeout is None else decimal(timeout)
        self.rows.append(f"{decimal(self.now)},{event},{draw},{answered},{armed},{decimal(self.mechanism.rto)}")

    def start(self, draw=""):
        self.x, timeout = self.mechanism.start(self.now, F(draw or 0))
        self.departures = [self.now]
        self.due = self.now + F(decimal(timeout))
        self.row("start", draw, timeout=timeout)

    def timeout(self, draw=""):
        self.now = self.due
        timeout = self.mechanism.retransmit(self.x)
        self.departures.append(self.now)
        self.due = self.now + F(decimal(timeout))
        self.row("timeout", draw, timeout=timeout)

    def end(self, event, answered=None):
        elapsed = self.now - self.departures[0]
        answer = None if answered is None else self.now - self.departures[answered]
        self.mechanism.end(self.x, self.now, event, elapsed, answer)
        self.row(event, answered="" if answered is None else str(answered))

    def exchange(self, lost=0, after=None, rtt=None, answered=None, end="ack", draw=None):
        """Starts, loses that many transmissions, and ends `after` the last of them, or `rtt` after the first."""
        self.start(self.draw() if draw is None else draw)
        for _ in range(lost):
            self.timeout(self.draw() if draw is None else "")
        self.now = self.departures[0] + rtt if rtt is not None else self.departures[-1] + F(after)
        assert self.now >= self.departures[-1], "answered before it departed"
        self.end(end, answered)

    def give_up(self, lost, draw=None):
        self.start(self.draw() if draw is None else draw)
        for _ in range(lost):
            self.timeout()
        self.now = self.due
        self.end("giveup")

    def idle(self, ms):
        self.now += ms

    def text(self):
        header = "at_ms,event,draw,answered,timeout_ms,rto_ms"
        return "\n".join([f"# mechanism {self.name}", header, *self.rows]) + "\n"

    def rto(self, *expected):
        """Compares the RTO after each acknowledgement with published numbers."""
        told = [row.split(",")[5] for row in self.rows if ",ack," in row]
        assert told == [f"{rto:.3f}" for rto in expected], told


def whole_life(trace):
    """Every branch of every mechanism: strong, weak and ambiguous samples, give-up, reset, bounds, ageing."""
    for rtt in ("612.345", "587.2", "640", "1204.75"):
        trace.exchange(after=rtt)
    trace.exchange(lost=1, after="55.5", answered=0)  # the first transmission is answered late
    for rtt in ("600.001", "599.999"):
        trace.exchange(after=rtt, answered=0)
    for lost in (1, 1, 1, 2, 3, 4):  # a chain of ambiguous answers
        trace.exchange(lost=lost, after="431.017", answered=lost)
    trace.exchange(lost=1, after="700")  # the answer does not tell
    trace.exchange(after="12.5", end="reset")
    trace.exchange(lost=2, after="12.5", end="reset")
    trace.exchange(after="650")
    trace.give_up(4)
    trace.exchange(after="620.5")
    trace.exchange(lost=8, after="333.333", answered=8)  # to the upper bound
    trace.exchange(lost=1, after="333.333", answered=1)
    trace.exchange(lost=3, after="333.333", answered=2)
    trace.give_up(8)
    trace.exchange(lost=2, after="1900", answered=2)
    trace.idle(100_000)
    trace.exchange(lost=1, after="800")
    trace.idle(900_000)
    trace.exchange(after="1500")
    for _ in range(14):  # a short round-trip time, then a small RTO
        trace.exchange(after="20.25")
    trace.exchange(lost=3, after="20.25", answered=3)
    trace.exchange(after="20.125")
    trace.idle(3_000)
    trace.exchange(lost=2, after="20.25")
    trace.idle(400_000)
    trace.exchange(lost=1, after="21", answered=1)
    trace.exchange(after="0.001")
    trace.exchange(after="0")
    trace.exchange(after="40000.5")


def round_trips(trace, *samples):
    for rtt, lost in samples:
        trace.exchange(lost=lost, rtt=F(rtt), draw="")


COCOA_SAMPLES = (1000, 0), (1000, 0), (1000, 0), (3500, 1), (9000, 2), (20000, 3), (1200, 0)
FASOR_SAMPLES = (100, 0), (100, 0), (100, 0), (200, 0), (100, 0)


THESIS = {"slow_dither": True}
LIBCOAP = {"stepwise": True, "ageing": "off"}
PLUS = {"cap": 60 * SECOND, "weak_up_to": 1, "large": F(13, 10), "ageing": "cocoa-plus"}


def mechanisms():
    """Name, as the registry has it, and the mechanism."""
    yield "default", Default()
    yield "default:preset=rfc7252", Default()
    yield "linux-rto", Linux()
    yield "linux-rto:preset=rfc6298", Linux(initial=1 * SECOND)
    yield "cocoa", Cocoa()
    yield "cocoa:preset=draft-03", Cocoa()
    yield "cocoa:preset=libcoap-2019", Cocoa(**LIBCOAP)
    yield "cocoa-plus", Cocoa(**PLUS)
    yield "cocoa-plus:preset=draft-03", Cocoa()
    yield "cocoa-plus:preset=libcoap-2019", Cocoa(**LIBCOAP)
    for name, marked in (("fasor", False), ("fasor-token", True), ("fasor-option", True)):
        yield name, Fasor(marked=marked)
        yield f"{name}:preset=draft-02", Fasor(marked=marked)
        yield f"{name}:preset=libcoap-2019", Fasor(marked=marked, **THESIS)
        yield f"{name}:preset=slow", Fasor(marked=marked, variant="slow", **THESIS)
        yield f"{name}:preset=fast-slow", Fasor(marked=marked, variant="fast-slow", **THESIS)


def worked():
    """Tables of worked numbers, each row from a state of its own. A strong weight of 0 lets an RTO count as measured
    without changing it."""
    ageing = [("0.05", 10, 400), ("0.3", 20, 1200), ("0.3", 100, 1200), ("32", 60, 32000), ("32", 200, 9500),
              ("10", 300, 3000), ("10", 40, 10000), ("0.3", F("4.8"), 300), ("0.3", F("4.81"), 600)]
    for rto, idle, aged in ageing:
        mechanism = Cocoa(initial=F(rto) * SECOND, strong_weight=F(0))
        trace = Trace(f"cocoa:initial_rto={rto}s,strong_weight=0", mechanism)
        trace.exchange(after=25, draw="")
        trace.idle(idle * SECOND)
        trace.start()
        assert mechanism.rto == aged, (rto, idle, mechanism.rto)
        yield trace
    trace = Trace("cocoa:initial_rto=32s,strong_weight=0", Cocoa(initial=32 * SECOND, strong_weight=F(0)))
    trace.exchange(after=25, draw="")
    for seconds in (150, 50):  # 128 s and 68 s of them age it, though it was looked at in between
        trace.idle(seconds * SECOND)
        trace.exchange(after=0, end="reset", draw="")
    assert trace.mechanism.rto == 9500
    yield trace
    vbf = [("0.3", "36.3", "17.4"), ("0.9", "68.0", "29.3"), ("1", "31.0", None), ("2", "62.0", "34.5"),
           ("3", "77.0", None), ("3.1", "40.9", "40.9"), ("7", "88.9", "88.9"), ("10", "111.5", "111.5"),
           ("20", "146.0", "146.0"), ("32", "160.0", "160.0")]
    for rto, *sums in vbf:
        for stepwise, total in zip((False, True), sums):
            if total is None:
                continue
            suffix = ",vbf_on=current" if stepwise else ""
            trace = Trace(f"cocoa:initial_rto={rto}s{suffix}", Cocoa(initial=F(rto) * SECOND, stepwise=stepwise))
            trace.give_up(4, draw="")
            assert decimal(trace.now / SECOND, 1) == total, (rto, stepwise, trace.now)
            yield trace
    trace = Trace("cocoa:ageing=off", Cocoa(ageing="off"))
    round_trips(trace, *COCOA_SAMPLES)
    trace.rto(2500, 2500, 2312.5, 3046.875, 4003.906, 4003.906, 3036.328)
    yield trace
    for initial_k, expected in ((1, (150, 137.5, 128.125, 233.594, 214.258)), (4, (300, 250, 212.5, 296.875, 261.719))):
        trace = Trace(f"fasor:initial_k={initial_k}", Fasor(initial_k=initial_k))
        round_trips(trace, *FASOR_SAMPLES)
        trace.rto(*expected)
        yield trace
    for draw, first in (("", "2166.667"), ("0.5", "2416.667")):
        trace = Trace("fasor", Fasor())
        trace.exchange(after=100, draw=draw)
        assert f",{first}," in trace.rows[0]
        yield trace


def files():
    for name, mechanism in mechanisms():
        trace = Trace(name, mechanism)
        if isinstance(mechanism, Fasor):
            round_trips(trace, *FASOR_SAMPLES)
        elif name == "cocoa":
            round_trips(trace, *COCOA_SAMPLES)
        whole_life(trace)
        yield name.replace(":preset=", "@") + ".csv", trace.text()
    yield "worked.csv", "".join(trace.text() for trace in worked())


def main():
    check = sys.argv[1:] == ["--check"]
    stale = []
    for name, text in files():
        path = HERE / name
        if check and (not path.exists() or path.read_text(encoding="utf-8") != text):
            stale.append(name)
        elif not check:
            path.write_text(text, encoding="utf-8", newline="\n")
    if stale:
        sys.exit("not as generated: " + ", ".join(stale))


if __name__ == "__main__":
    main()
