"""newreno."""

from . import scripts, transfer
from .estimator import Rtt
from .mechanism import Exchange, Mechanism
from .units import LONGEST, MILLISECOND, SECOND, F, has_passed

ONE = 2**16  # windows are multiples of this part of a datagram
MOST = 1024 * ONE


class NewReno(Mechanism):
    """RFC 5681, RFC 6582 and RFC 6298 in datagrams, each with a timer of its own."""

    bulk = True
    initial_window = 10
    min_rto = 1 * SECOND
    overtaken_share, min_overtaken = F(1, 8), MILLISECOND

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.rtt, self.backoff = Rtt(), None
        self.units, self.threshold, self.reduced = self.initial_window * ONE, MOST, F(0)

    @property
    def window(self):
        return self.units // ONE

    @property
    def rto(self):
        if self.backoff is not None:
            return self.backoff
        rto = self.initial_rto if self.rtt.srtt is None else self.rtt.rto()
        return min(max(rto, self.min_rto), self.max_rto, LONGEST)

    @property
    def overtaken(self):
        """How much later an exchange departs that, once answered, overtakes one that is lost."""
        return max(self.overtaken_share * (self.rtt.srtt or self.initial_rto), self.min_overtaken)

    def armed(self):
        return min(self.rto + (self.rtt.srtt or 0), self.max_rto)

    def start(self, now, draw, outstanding):
        return Exchange(self.armed(), departed=now)

    def retransmit(self, x, draw):
        if self.timed_out(x):
            self.lose(x, True)
            x.timeout = min(2 * x.timeout, self.max_rto)
            self.backoff = max(self.backoff or 0, x.timeout)
        else:
            self.lose(x, False)
            x.timeout = self.armed()

    def timed_out(self, x):
        return has_passed(self.now - x.departed, x.timeout)

    def lose(self, x, timed_out):
        """Losses of a round trip halve the window once."""
        if x.departed < self.reduced:
            return
        self.reduced = self.now
        self.threshold = bounded(max(min(self.outstanding * ONE, self.units) // 2, 2 * ONE))
        self.units = ONE if timed_out else self.threshold

    def acked(self, x, now, elapsed, answer, draw):
        if x.n == 0:
            self.rtt.sample(elapsed)
            self.backoff = None
        if x.departed >= self.reduced and 2 * self.outstanding >= self.window:
            step = ONE if self.units < self.threshold else (2**32 - 1) // self.units
            self.units = bounded(self.units + step)

    def gave_up(self, x, now, elapsed):
        self.lose(x, self.timed_out(x))


def bounded(units):
    return min(max(units, ONE), MOST)


MECHANISMS = [
    ("newreno", NewReno, {}, {"rfc5681": {"initial_window": 4, "initial_rto": 1 * SECOND}}),
]
BEFORE = {"newreno": [scripts.fasor_samples]}
TRANSFERS = {
    "newreno": [(transfer.losses, 7), (transfer.outage, 7)],
    "newreno:preset=rfc5681": [(transfer.losses, 7)],
}
