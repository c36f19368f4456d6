"""peak-hopper."""

from . import scripts
from .mechanism import Timer
from .timers import in_ticks
from .units import MILLISECOND, SECOND, F, down


class PeakHopper(Timer):
    """Ekström and Ludwig 2004: the RTO hops above a peak of the round-trip time, higher after a steeper rise, and
    fades. `rise=californium-3` is Californium's PeakhopperRto."""

    max_timeout = 60 * SECOND
    fade = 24
    initial_b = F(3, 4)
    max_b = 4095
    granularity = MILLISECOND
    rise = "signed"

    b = None
    before = None  # the previous sample, for the hop
    last = None  # the previous sample, for the lower bound

    def measured(self, r):
        r = in_ticks(r, self.tick)
        least = max(r, self.last or 0) + 2 * self.granularity
        self.last = r
        if self.before is None:
            self.b, self.before = self.initial_b, r
            if self.rise == "californium-3":
                self.b, self.before = F(0), F(0)
            return down((1 + self.initial_b) * r, self.tick)
        d = 1 - F(1, self.fade)
        self.b = min(max(self.hop(r), d * self.b), self.max_b)
        peak = max(r, self.before)
        self.before = r
        rto = down(max(d * self.estimate, (1 + self.b) * peak), self.tick)
        return max(rto, least)

    def hop(self, r):
        """The steepness of the rise of the round-trip time."""
        if self.rise == "signed":
            return (r - self.before) / self.before
        # Relative to the new sample, not the previous one; in whole milliseconds, falls as well as rises, and doubled.
        return 2 * (1 if self.before == 0 else abs(r // 1 - self.before // 1) // (r // 1))


CALIFORNIUM = {
    "rise": "californium-3",
    "granularity": 50 * MILLISECOND,
    "ack_random_factor": F(1),
    "keep_backoff": False,
    "min_rto": 500 * MILLISECOND,
    "max_rto": 32 * SECOND,
    "max_b": 1,
    "tick": MILLISECOND,
}

MECHANISMS = [
    ("peak-hopper", PeakHopper, {}, {"californium-3": CALIFORNIUM}),
]
BEFORE = {
    "peak-hopper": [scripts.peaks, scripts.small_peak],
}
