"""default, linux-rto, basic-rto."""

from . import scripts
from .estimator import Rtt
from .mechanism import Exchange, Mechanism, Timer
from .units import MICROSECOND, MILLISECOND, SECOND, F, apart, down, nearest


class Default(Mechanism):
    """RFC 7252 section 4.2: a timeout of ACK_TIMEOUT, dithered, doubled, forgotten. Stacks differ: they have another factor
    (`backoff_after` retransmissions are without it), draw each timeout (`dither=each`), add a time, or look for exchanges to
    retransmit in every `tick` alone, which begins with the exchange, or anywhere (`dither=phase`). A timeout begins at the
    end of the one before, or (`restart`) at the tick of its retransmission."""

    ack_timeout = 2 * SECOND
    backoff_factor = F(2)
    backoff_after = 0
    boost = MICROSECOND  # which adds nothing
    dither = "once"
    restart = False

    @property
    def rto(self):
        return self.ack_timeout

    def start(self, now, draw, outstanding):
        x = Exchange(None, draw=draw, elapsed=F(0), departed_after=F(0))
        self.arm(x)
        return x

    def retransmit(self, x, draw):
        if self.dither == "each":
            x.draw = draw
        self.arm(x)

    def arm(self, x):
        base = self.ack_timeout * self.backoff_factor ** max(x.n - self.backoff_after, 0)
        added = F(0) if self.boost == MICROSECOND else self.boost
        x.timeout = min(self.dithered(base, x.draw) + added, self.max_rto)
        if self.tick != MICROSECOND:
            x.elapsed = (x.departed_after if self.restart else x.elapsed) + x.timeout
            after = x.departed_after
            x.departed_after = max(self.next_tick(x), after + self.tick if x.n > 0 else 0)
            x.timeout = x.departed_after - after

    def next_tick(self, x):
        """Returns the first tick that is not before the end of all timeouts so far, since the first transmission."""
        if x.n == 0:
            x.phase = x.elapsed + x.draw * self.tick if self.dither == "phase" else F(0)
        phase = x.phase
        whole = max(-((phase - x.elapsed) // self.tick), 0)
        if phase + whole * self.tick != x.elapsed:  # nobody can tell the tick before from the tick after
            apart(x.elapsed, phase + whole * self.tick)
            apart(x.elapsed, phase + (whole - 1) * self.tick)
        return phase + whole * self.tick


class LinuxRto(Timer):
    """RFC 6298 with Karn's rule, 1 s to 60 s; `rttvar=linux` is Californium's LinuxRto."""

    min_rto = 1 * SECOND
    max_timeout = 60 * SECOND
    ack_random_factor = F(1)
    rttvar = "rfc6298"
    min_mdev = 50 * MILLISECOND
    shortest = F(0)

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.rtt, self.linux = Rtt(tick=self.tick), LinuxRttvar(self.tick, self.min_mdev)

    def measured(self, r):
        if self.rttvar == "linux":
            rto = self.linux.sample(in_ticks(r, self.tick))
        else:
            self.rtt.sample(r)
            rto = self.rtt.rto()
        return max(rto, self.min_rto)


class LinuxRttvar:
    """Linux's mean deviation, which a falling round-trip time hardly raises, and RTTVAR, which follows its peak at once
    and its fall slowly. Each sample begins a new peak, except that the first two share one (Californium)."""

    def __init__(self, tick, min_mdev):
        self.tick, self.min_mdev = tick, min_mdev
        self.samples, self.srtt, self.mdev, self.rttvar = 0, None, None, None

    def sample(self, r):
        self.samples += 1
        if self.samples == 1:
            self.srtt, self.mdev = r, down(r / 2, self.tick)
            self.rttvar = max(self.mdev, self.min_mdev)
            return self.srtt + 4 * self.rttvar
        shared = self.mdev if self.samples == 2 else F(0)
        self.srtt = nearest(self.srtt + (r - self.srtt) / 8, self.tick)
        fell = apart(r, self.srtt - self.mdev) < self.srtt - self.mdev
        deviation = abs(r - self.srtt)
        if fell:
            self.mdev = nearest(F(31, 32) * self.mdev + F(1, 32) * deviation, self.tick)
        else:  # Californium rounds both parts
            self.mdev = nearest(F(3, 4) * self.mdev, self.tick) + nearest(F(1, 4) * deviation, self.tick)
        peak = max(shared, self.mdev, self.min_mdev)
        if peak > self.rttvar:
            self.rttvar = peak
        elif peak < self.rttvar:
            self.rttvar = nearest(F(3, 4) * self.rttvar + F(1, 4) * peak, self.tick)
        return self.srtt + 4 * self.rttvar


class BasicRto(Timer):
    """Californium's BasicRto: 1.5 times the last sample, strong or weak."""

    factor = F(3, 2)
    max_weak_n = 2
    ack_random_factor = F(1)
    min_rto = 500 * MILLISECOND
    max_rto = 32 * SECOND
    max_timeout = 60 * SECOND
    keep_backoff = False

    def acked(self, x, now, elapsed, answer, draw):
        if x.n <= self.max_weak_n:
            self.estimate = min(down(self.factor * in_ticks(elapsed, self.tick), self.tick), self.max_rto)


def in_ticks(r, tick):
    """Rounds a sample of whole microseconds like a clock with that tick: whole ticks, at least one."""
    return r if tick == MICROSECOND else max(r // tick * tick, tick)


CALIFORNIUM_LINUX = {
    "rttvar": "linux",
    "min_rto": 500 * MILLISECOND,
    "max_rto": 32 * SECOND,
    "keep_backoff": False,
    "tick": MILLISECOND,
}

CONSTANT = {"ack_random_factor": F(1), "backoff_factor": F(1)}
MATTER = {"ack_random_factor": F(5, 4), "backoff_factor": F(16, 10), "backoff_after": 1, "dither": "each"}
DEFAULTS = {
    "rfc7252": {},
    "erbium": {"ack_timeout": 3 * SECOND, "final_wait": False},
    "libcoap-4": {},
    "californium-3": {},
    "aiocoap": {},
    "openthread": {},
    "node-coap": {},
    "coap-rs": {},
    "zephyr": {},
    "zephyr-3": {"tick": 500 * MILLISECOND},
    "riot": {"dither": "each"},
    "contiki-ng": {"ack_timeout": 3 * SECOND, "max_rto": 72 * SECOND},
    "wakaama": {"ack_random_factor": F(1)},
    "go-coap": {"dither": "phase", "tick": 4 * SECOND, "restart": True},
    "go-coap-3.5": {**CONSTANT, "dither": "phase", "tick": 4 * SECOND},
    "coap-rs-0.26": CONSTANT,
    "nrf-nbiot": {"ack_timeout": 15 * SECOND, "max_rto": 360 * SECOND},
    "matter": {**MATTER, "ack_timeout": 330 * MILLISECOND},
    "matter-thread": {**MATTER, "ack_timeout": 2201 * MILLISECOND, "boost": F(1500)},
}

MECHANISMS = [
    ("default", Default, {}, DEFAULTS),
    ("linux-rto", LinuxRto, {}, {"rfc6298": {"initial_rto": 1 * SECOND}, "californium-3": CALIFORNIUM_LINUX}),
    ("basic-rto", BasicRto, {}, {"californium-3": {"tick": MILLISECOND}}),
]
BEFORE = {
    "linux-rto@californium-3": [scripts.deviations],
    "basic-rto": [scripts.deviations],
}
