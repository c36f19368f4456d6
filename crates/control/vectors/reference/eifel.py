"""coap-eifel."""

from . import scripts
from .mechanism import Timer
from .units import MICROSECOND, MILLISECOND, SECOND, F, apart


class Eifel(Timer):
    """Ludwig and Sklower 2000, Rathod 2022 section 4.3: falling round-trip times leave RTTVAR unchanged; rising ones
    raise it with a gain of 1/3 and lower it with one of 1/9."""

    tick = MILLISECOND
    first_sample = "rfc6298"

    srtt = rttvar = None

    def measured(self, r):
        if self.srtt is None and self.first_sample == "rfc6298":
            self.srtt, self.rttvar = r, r / 2
        else:
            self.update(r)
        return max(self.srtt + 3 * self.rttvar, r + 2 * self.tick)

    def update(self, r):
        if self.srtt is None:
            self.srtt = self.rttvar = F(0)
        delta = apart(r - self.srtt, 0)
        self.srtt += delta / 3
        if delta >= 0:
            gain = F(1, 3) if delta >= self.rttvar else F(1, 9)
            self.rttvar += gain * (delta - self.rttvar)


CONTIKI = {
    "min_rto": MICROSECOND,
    "first_sample": "zero",
    "tick": 7813 * MICROSECOND,
    "redither": True,
    "max_rto": 268 * SECOND,
    "final_wait": False,
}

MECHANISMS = [
    ("coap-eifel", Eifel, {}, {"contiki": CONTIKI}),
]
BEFORE = {
    "coap-eifel": [scripts.both_gains],
}
