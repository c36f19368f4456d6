"""cocoa-plus-plus."""

from math import exp

from . import scripts
from .cocoa import ER_COCOA, Cocoa
from .mechanism import Exchange, Mechanism
from .units import MICROSECOND, MIN_RTO, SECOND, F, apart, down

TICK = SECOND / 128  # a tick of Contiki's clock


class Gradient(Mechanism):
    """Rathod 2022 section 6, with Hayes and Armitage 2011: the RTO grows, with a probability, while the delay rises
    from interval to interval. It shrinks otherwise."""

    min_rto, max_rto = MIN_RTO, 32 * SECOND
    backoff = F(142, 100)
    up, down = F(142, 100), F(7, 10)
    scaling = 23438 * MICROSECOND  # three ticks
    draws_on_ack = True

    opened = None  # the beginning of the interval, in whole milliseconds
    before = None  # smallest and largest sample of the last interval

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.rto, self.samples, self.gradients = self.initial_rto, [], ([], [])

    def start(self, now, draw, outstanding):
        return Exchange(min(self.dithered(self.rto, draw), self.max_rto))

    def retransmit(self, x, draw):
        x.timeout = min(self.backoff * x.timeout, self.max_rto)

    def acked(self, x, now, elapsed, answer, draw):
        if self.opened is None:
            self.opened, self.samples = now // 1, []
        self.samples.append(elapsed)
        if now // 1 - self.opened >= 2 * elapsed:
            self.close(draw)

    def close(self, draw):
        """An interval of at least two round-trip times ends."""
        self.opened, extremes = None, (min(self.samples), max(self.samples))
        if self.before is not None:
            for window, old, new in zip(self.gradients, self.before, extremes):
                window.append(whole(new - old))
                del window[:-8]
            smallest, largest = (F(sum(window), len(window)) for window in self.gradients)
            self.rto *= self.up if self.rises(smallest if smallest > 0 else largest, draw) else self.down
        self.before = extremes
        # It never falls below the last measurement.
        self.rto = min(max(self.rto, extremes[1], self.min_rto), self.max_rto)

    def rises(self, gradient, draw):
        if gradient <= 0:
            return False
        x = gradient / self.scaling
        probability = 1 if x > 5 else 1 - exp(-x)
        assert probability == 1 or abs(probability - draw) > 0.01, f"{float(draw)} is too close to {probability}"
        return probability > draw


def whole(ms):
    """Rounds to milliseconds, halves away from zero, in 16 bits."""
    rounded = int(abs(ms) + F(1, 2))
    return min(rounded, 32767) * (-1 if ms < 0 else 1)


class Student(Cocoa):
    """CoCoA++ as implemented on top of er-cocoa: the gradient chooses the factor of a retransmission, and the sum of
    the gradients is divided by the number of groups."""

    largest = 60 * SECOND  # of a timeout that is backed off; a first timeout is dithered beyond it
    up, down = F(142, 100), F(7, 10)

    count = groups = 0
    lowest = None  # the smallest sample of the group
    average = F(0)

    def __init__(self):
        super().__init__(**ER_COCOA)

    def retransmit(self, x, draw):
        exponent = down(self.average, 300 * TICK) / (300 * TICK)
        percent = min(int(100 * (1 - exp(-exponent))), 99)
        rises = apart(100 * draw, percent, by=F(1, 1000)) < percent
        x.timeout = max(min((self.up if rises else self.down) * x.timeout, self.largest), MICROSECOND)

    def take(self, r, now, estimator, k, weight):
        super().take(r, now, estimator, k, weight)
        self.count += 1
        if self.count % 5:
            self.lowest = r if self.lowest is None else min(self.lowest, r)
            return
        # The fifth sample closes its group and does not belong to it. The sum of the differences is the last minimum.
        self.groups += 1
        self.average, self.lowest = self.lowest / self.groups, None


MECHANISMS = [
    ("cocoa-plus-plus", Gradient, {}, {"student-contiki": {}}),
]
BEFORE = {
    "cocoa-plus-plus": [scripts.gradients],
    "cocoa-plus-plus@student-contiki": [scripts.groups],
}
