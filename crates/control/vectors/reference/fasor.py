"""fasor, fasor-token, fasor-option."""

from . import scripts
from .estimator import Rtt
from .mechanism import Exchange, Mechanism
from .units import MICROSECOND, MIN_RTO, F


class Fasor(Mechanism):
    """draft-ietf-core-fasor-02 section 4. The thesis dithers the slow RTO too, and has two more variants (section
    7.1.1)."""

    min_rto = MIN_RTO
    initial_k = 1  # RTTVAR of the first sample, in eighths of the sample
    slow_dither = False
    variant = "normal"
    give_up = "advance"
    marked = False
    shortest = F(0)
    ambiguous = 0  # ambiguous answers so far

    slow = None
    state = "fast"

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.rtt = Rtt(F(self.initial_k, 8))

    def fast(self):
        return max(self.initial_rto if self.rtt.srtt is None else self.rtt.rto(), self.min_rto)

    @property
    def rto(self):
        return min(self.fast(), self.max_rto)

    def start(self, now, draw, outstanding):
        fast = self.fast()
        srtt = fast / 3 if self.rtt.srtt is None else self.rtt.srtt
        dither = srtt / 4 + draw * (srtt - srtt / 4)
        slow = None if self.slow is None else self.slow + (dither if self.slow_dither else 0)
        series = self.series(self.state, fast + dither, slow)
        x = Exchange(next(series), series=series, before=self.ambiguous)
        x.waited = x.timeout
        return x

    def series(self, state, f, slow):
        def bounded(timeout):
            return min(timeout, self.max_rto)

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

    def retransmit(self, x, draw):
        x.timeout = next(x.series)
        x.waited += x.timeout

    def acked(self, x, now, elapsed, answer, draw):
        if answer is not None and self.marked:
            self.rtt.sample(answer)
        elif x.n == 0:
            self.rtt.sample(elapsed)
        if x.n > 0:
            self.suspect(elapsed)
        elif x.before == self.ambiguous:
            self.state = "fast"  # not for an exchange that was open when congestion showed

    def gave_up(self, x, now, elapsed):
        """Acts like an answer when the last timeout passes. The sources leave this open."""
        if self.give_up == "advance":
            self.suspect(x.waited)

    def suspect(self, elapsed):
        """An exchange needed retransmissions. Each variant has its own first and second state after FAST."""
        self.slow = F(3, 2) * elapsed
        self.ambiguous += 1
        first, second = {
            "normal": ("fast-slow-fast", "slow-fast"),
            "slow": ("slow", "slow"),
            "fast-slow": ("fast-slow", "slow"),
        }[self.variant]
        self.state = first if self.state == "fast" else second


DRAFT = {"min_rto": MICROSECOND, "give_up": "keep"}
THESIS = {**DRAFT, "slow_dither": True}
PRESETS = {
    "draft-02": DRAFT,
    "libcoap-2019": THESIS,
    "slow": {**THESIS, "variant": "slow", "initial_k": 4},
    "fast-slow": {**THESIS, "variant": "fast-slow", "initial_k": 4},
}

MECHANISMS = [
    ("fasor", Fasor, {}, PRESETS),
    ("fasor-token", Fasor, {"marked": True}, PRESETS),
    ("fasor-option", Fasor, {"marked": True}, PRESETS),
]
BEFORE = {
    "fasor": [scripts.fasor_samples],
    "fasor-token": [scripts.fasor_samples],
    "fasor-option": [scripts.fasor_samples],
}
