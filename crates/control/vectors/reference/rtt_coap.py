"""rtt-coap."""

from . import scripts
from .mechanism import Exchange, Mechanism
from .units import MILLISECOND, MIN_RTO, SECOND, F, apart

FINE = 2**64  # rates are multiples of this part of one message a second: exact fractions would grow without end


class RttCoap(Mechanism):
    """Ancillotti, Bolettieri and Bruno 2018: a rate of confirmable messages that follows the load. The load is
    estimated by comparing a fast with a slow average of the round-trip time."""

    alpha_s, alpha_l, beta_l = F(1, 2), F(1, 8), F(1, 8)
    omega_fast, omega_slow = F(1, 5), F(1, 20)
    l_low, l_high = F(1, 20), F(1, 4)
    mu_weight = F(1, 8)
    min_rto = MIN_RTO
    granularity = MILLISECOND
    initial_interval, max_interval = 2 * SECOND, 60 * SECOND

    srtt_s = srtt_l = rttvar_l = None
    mu = F(0)
    backoff = 0  # doublings since the last sample

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.rate = SECOND / self.initial_interval  # messages a second
        self.seen = []  # the load regions so far

    @property
    def rto(self):
        rto = self.initial_rto
        if self.srtt_l is not None:
            rto = self.srtt_l + max(4 * self.rttvar_l, self.granularity)
        return min(max(rto, self.min_rto) * 2**self.backoff, self.max_rto)

    def start(self, now, draw, outstanding):
        self.next = now + SECOND / self.rate
        return Exchange(min(self.dithered(self.rto, draw), self.max_rto), backoff=self.backoff)

    def retransmit(self, x, draw):
        x.timeout = min(2 * x.timeout, self.max_rto)
        x.backoff += 1
        self.backoff = max(self.backoff, x.backoff)

    def acked(self, x, now, elapsed, answer, draw):
        self.learn_retransmission(x.n > 0)
        r = elapsed if answer is None and x.n == 0 else answer
        if r is not None:
            self.backoff = 0
            self.learn(r)
        self.react(self.region())

    def gave_up(self, x, now, elapsed):
        self.learn_retransmission(True)
        if self.congested():
            self.change(-self.delta(self.omega_fast))

    def learn_retransmission(self, was_needed):
        """The moving average of the region, in 1/65536."""
        mu = (1 - self.mu_weight) * self.mu + self.mu_weight * was_needed
        self.mu = F((mu * 65536 + F(1, 2)) // 1, 65536)

    def congested(self):
        return apart(self.mu, self.l_low, by=F(1, 10_000)) >= self.l_low

    def learn(self, r):
        if self.srtt_l is None:
            self.srtt_s = self.srtt_l = r
            self.rttvar_l = r / 2
            return
        self.rttvar_l += self.beta_l * (abs(self.srtt_l - r) - self.rttvar_l)
        self.srtt_l += self.alpha_l * (r - self.srtt_l)
        self.srtt_s += self.alpha_s * (r - self.srtt_s)

    def region(self):
        if self.srtt_l is None:
            return "normal"
        for gamma, name in (-1, "low"), (1, "normal"), (2, "medium"):
            threshold = self.srtt_l + gamma * self.rttvar_l
            if apart(self.srtt_s, threshold) < threshold or (gamma > 0 and self.srtt_s == threshold):
                return name
        return "high"

    def react(self, region):
        self.seen.append(region)
        lossy = apart(self.mu, self.l_high, by=F(1, 10_000)) >= self.l_high
        blind = self.backoff > 0  # nothing was measured since a retransmission
        if blind and lossy:
            self.change(-self.delta(self.omega_fast))
        elif region == "low" and not blind:
            self.change(self.delta(self.omega_fast))
        elif region == "normal" and not blind and not lossy:
            self.change(self.delta(self.omega_slow))
        elif region == "medium" and self.congested():
            self.change(-self.delta(self.omega_slow))
        elif region == "high" and self.congested():
            self.change(-self.delta(self.omega_fast))

    def delta(self, omega):
        """Approaches one message per round-trip time while below it."""
        one = SECOND / (self.initial_rto if self.srtt_l is None else self.srtt_l)
        apart(self.rate, one, by=one / 1_000_000)
        return omega * (one - self.rate) if self.rate < one else omega * one

    def change(self, delta):
        rate = F((self.rate + delta) * FINE // 1, FINE)
        self.rate = min(max(rate, SECOND / self.max_interval), F(256))


MECHANISMS = [
    ("rtt-coap", RttCoap, {}, {}),
]
BEFORE = {
    "rtt-coap": [scripts.regions],
}
