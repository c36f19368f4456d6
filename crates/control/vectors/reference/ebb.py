"""ebb, ebb-plain."""

from . import scripts
from .estimator import Rtt
from .mechanism import Exchange, Mechanism
from .units import LONGEST, MICROSECOND, MIN_RTO, SECOND, F


class Ebb(Mechanism):
    """docs/ebb.md: a calm path gets its RTO, a busy one ACK_TIMEOUT at least, and holds what a loss led to."""

    min_rto = MIN_RTO
    max_rto = 247 * SECOND
    max_timeout = 60 * SECOND
    dither = F(5, 4)
    calm = F(23, 20)
    calm_margin = F(60)
    busy_rto = 2 * SECOND
    forget = F(1, 64)
    marked = False
    shortest = F(0)

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.rtt = Rtt(rttvar_gain=F(1, 2))
        self.least = self.held = None

    def longest_calm(self):
        return max(self.calm * self.least, self.least + self.calm_margin)

    def is_calm(self):
        return self.rtt.srtt is not None and self.rtt.srtt <= self.longest_calm()

    def base(self):
        held = self.held or F(0)
        if self.rtt.srtt is None:
            return max(self.initial_rto, held)
        rto = max(self.rtt.rto(k=3), self.min_rto)
        return max(rto if self.is_calm() else max(rto, self.busy_rto), held)

    @property
    def rto(self):
        return min(self.base(), self.max_rto)

    def start(self, now, draw, outstanding):
        timeout = self.base()
        return Exchange(min(timeout + draw * (self.dither - 1) * timeout, self.max_rto))

    def retransmit(self, x, draw):
        if self.rtt.srtt is not None:
            factor = F(3, 2)
        else:
            factor = 3 if x.n == 1 else 2
        x.timeout = max(x.timeout, min(factor * x.timeout, self.max_timeout))

    def acked(self, x, now, elapsed, answer, draw):
        latest = min(now - x.departed, LONGEST)
        if self.marked and answer is not None:
            spurious = x.n > 0 and answer != latest
        else:
            spurious = x.n == 1 and self.least is not None and 2 * latest < self.least
            answer = elapsed if x.n == 0 or spurious else None
        known = answer is not None
        if known:
            r = max(answer, MICROSECOND)
            self.rtt.sample(r)
            if self.least is None:
                self.least = r
            else:
                self.least = min(self.least + self.forget * (self.rtt.srtt - self.least), r)
        lost = x.n > 0 and not spurious
        calm = self.is_calm() and (known or latest <= self.longest_calm())
        self.held = x.timeout if lost and not calm else None

    def gave_up(self, x, now, elapsed):
        self.held = x.timeout


MECHANISMS = [
    ("ebb", Ebb, {"marked": True}, {}),
    ("ebb-plain", Ebb, {}, {}),
]
BEFORE = {
    "ebb": [scripts.longer_at_once, scripts.soon_after_a_copy, scripts.fasor_samples],
    "ebb-plain": [scripts.longer_at_once, scripts.soon_after_a_copy, scripts.fasor_samples],
}
