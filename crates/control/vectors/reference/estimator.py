"""SRTT and RTTVAR."""

from .units import MICROSECOND, MILLISECOND, F, down, nearest


class Rtt:
    """RFC 6298 section 2: the variance is updated first. The first sample sets RTTVAR to a fraction of itself."""

    def __init__(self, first=F(1, 2), srtt_gain=F(1, 8), rttvar_gain=F(1, 4), tick=MICROSECOND):
        self.first, self.srtt_gain, self.rttvar_gain, self.tick = first, srtt_gain, rttvar_gain, tick
        self.srtt = self.rttvar = None

    def sample(self, r):
        if self.srtt is None:
            self.srtt, self.rttvar = r, down(self.first * r, self.tick)
            return
        a, b = self.srtt_gain, self.rttvar_gain
        self.rttvar = nearest((1 - b) * self.rttvar + b * abs(self.srtt - r), self.tick)
        self.srtt = nearest((1 - a) * self.srtt + a * r, self.tick)

    def rto(self, k=4, granularity=MILLISECOND):
        return self.srtt + max(granularity, k * self.rttvar)
