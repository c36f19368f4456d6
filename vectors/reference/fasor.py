"""fasor, fasor-token, fasor-option."""

from .estimator import Rtt
from .mechanism import Exchange, Mechanism
from .units import F


class Fasor(Mechanism):
    """draft-ietf-core-fasor-02 section 4; the thesis dithers the slow RTO too and has two more series."""

    initial_k = 1  # RTTVAR of the first sample, in eighths of it
    slow_dither = False
    variant = "normal"
    marked = False
    shortest = F(0)

    slow = None
    state = "fast"

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.rtt = Rtt(F(self.initial_k, 8))

    def fast(self):
        return self.initial_rto if self.rtt.srtt is None else self.rtt.rto()

    @property
    def rto(self):
        return min(self.fast(), self.max_rto)

    def start(self, now, draw):
        fast = self.fast()
        srtt = fast / 3 if self.rtt.srtt is None else self.rtt.srtt
        dither = srtt / 4 + draw * (srtt - srtt / 4)
        slow = None if self.slow is None else self.slow + (dither if self.slow_dither else 0)
        series = self.series(self.state, fast + dither, slow)
        return Exchange(next(series), series=series)

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

    def acked(self, x, now, elapsed, answer, draw):
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
