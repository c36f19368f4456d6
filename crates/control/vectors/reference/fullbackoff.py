"""fullbackoff1, fullbackoff2, gst-coap."""

from . import scripts
from .mechanism import Exchange, Mechanism
from .units import LONGEST, SECOND, apart


class FullBackoff(Mechanism):
    """Järvinen et al. 2018, Rathod 2022 sections 3.1 and 3.2: the next exchange starts from the backed-off RTO of the
    last. `decay` is the effect of an exchange without retransmissions on it."""

    ack_timeout = 2 * SECOND
    decay = "reset"
    redither = True
    give_up = "learn"

    kept = None
    count = 0  # consecutive exchanges without retransmissions

    @property
    def rto(self):
        return self.ack_timeout if self.kept is None else self.kept

    def start(self, now, draw, outstanding):
        # Algorithm 1, lines 5 and 6: the kept RTO is dithered too, by a part of ACK_TIMEOUT, like in the code.
        dither = draw * (self.ack_random_factor - 1) * self.ack_timeout
        timeout = min(self.rto, self.max_rto) + (dither if self.kept is None or self.redither else 0)
        return Exchange(min(timeout, LONGEST))

    def retransmit(self, x, draw):
        if x.timeout < self.max_rto:
            x.timeout = min(2 * x.timeout, self.max_rto)

    def keep(self, x):
        self.kept, self.count = min(x.timeout, self.max_rto), 0

    def acked(self, x, now, elapsed, answer, draw):
        if x.n > 0:
            self.keep(x)
        elif self.kept is not None:
            self.relax()

    def relax(self):
        if self.decay == "accelerate":
            self.count += 1
        halvings = {"reset": None, "halve": 1, "accelerate": self.count}[self.decay]
        if halvings is not None:
            self.kept /= 2**halvings
            apart(self.kept, self.ack_timeout)
        if halvings is None or self.kept < self.ack_timeout:
            self.kept, self.count = None, 0

    def gave_up(self, x, now, elapsed):
        if self.give_up == "learn":
            self.keep(x)


CONTIKI = {
    "ack_timeout": 3 * SECOND,
    "max_rto": 268 * SECOND,
    "final_wait": False,
}

MECHANISMS = [
    ("fullbackoff1", FullBackoff, {}, {"contiki": CONTIKI}),
    ("fullbackoff2", FullBackoff, {"decay": "halve"}, {"contiki": CONTIKI}),
    ("gst-coap", FullBackoff, {"decay": "accelerate"}, {"contiki": CONTIKI}),
]
BEFORE = {
    "fullbackoff1": [scripts.full_backoff],
    "fullbackoff2": [scripts.full_backoff],
    "gst-coap": [scripts.full_backoff],
}
