"""rfc9177."""

from . import transfer
from .mechanism import Exchange, Mechanism
from .units import MICROSECOND, SECOND, F, whole


class Rfc9177(Mechanism):
    """RFC 9177 section 7.2 for requests of single blocks: sets of departures, each a list of the exchanges that are missing."""

    bulk = True
    max_payloads = 10
    non_timeout = 2 * SECOND
    ack_random_factor = F(3, 2)
    non_receive_timeout = 4 * SECOND
    non_max_retransmit = 4
    overtaken = None  # timeouts alone find losses

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.departed, self.missing = 0, []  # of the present set
        self.in_flight, self.opens, self.random = 0, F(0), None
        self.seen = set()

    @property
    def rto(self):
        return self.non_receive_timeout

    @property
    def window(self):
        full = self.departed >= self.max_payloads
        return self.in_flight + self.max_payloads - (0 if full else self.departed)

    @property
    def next(self):
        return self.opens or None

    def start(self, now, draw, outstanding):
        x = Exchange(self.non_receive_timeout)
        self.depart(x, draw)
        return x

    def retransmit(self, x, draw):
        x.timeout = self.non_receive_timeout * 2 ** min(x.n, self.non_max_retransmit)
        self.depart(x, draw)

    def depart(self, x, draw):
        if self.random is None:
            random = self.dithered(self.non_timeout, draw)
            assert abs(random / MICROSECOND % 1 - F(1, 2)) > F(1, 50), f"{random} is hard to round"
            self.random = whole(random)  # a set departs at its end, so that all that follows depends on it
        full = self.departed >= self.max_payloads
        if full and self.now >= self.opens:
            self.seen.add("Continue" if not self.missing else "wait")
            self.departed, self.missing = 0, []
        elif full:
            self.seen.add("within the wait")
        if x not in self.missing:
            self.missing.append(x)
        self.departed += 1
        self.in_flight = self.outstanding
        self.opens = self.now
        if self.departed >= self.max_payloads:
            self.opens += self.random

    def over(self, x, answered):
        self.in_flight = self.outstanding - 1
        if answered and x in self.missing:
            self.missing.remove(x)
            if not self.missing:
                self.opens = min(self.opens, self.now)

    def acked(self, x, now, elapsed, answer, draw):
        self.over(x, True)

    def reset(self, x, now, elapsed):
        self.over(x, True)

    def gave_up(self, x, now, elapsed):
        self.over(x, False)


MECHANISMS = [("rfc9177", Rfc9177, {}, {})]
TRANSFERS = {"rfc9177": [(transfer.sets, 7)]}
