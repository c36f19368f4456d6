"""The base class of all mechanisms, and a timer that doubles."""

from .units import LONGEST, MICROSECOND, MIN_RTO, SECOND, F


class Exchange:
    """One confirmable message. `timeout` is the one in force, `n` counts retransmissions."""

    def __init__(self, timeout, **facts):
        self.n, self.timeout = 0, timeout
        self.__dict__.update(facts)


class Mechanism:
    """Attributes of the class are parameters. `rto` is the estimate that timeouts start from."""

    initial_rto = 2 * SECOND
    ack_random_factor = F(3, 2)
    max_rto = 60 * SECOND
    final_wait = True
    tick = MICROSECOND

    shortest = MICROSECOND  # a sample of zero counts as this
    draws_on_ack = False
    next = None  # the earliest time for the next confirmable message
    bulk = False  # bulk mechanisms have a window, and say when an exchange is overtaken

    def __init__(self, **parameters):
        for name, value in parameters.items():
            assert hasattr(type(self), name), f"{type(self).__name__} has no {name}"
            setattr(self, name, value)

    def dithered(self, rto, draw):
        return rto + draw * (self.ack_random_factor - 1) * rto

    def start(self, now, draw, outstanding):
        """The first transmission departs; `outstanding` counts the open exchanges, including this one. Returns the
        exchange."""
        raise NotImplementedError

    def retransmit(self, x, draw):
        """The n-th retransmission has departed. Sets the timeout in force."""
        raise NotImplementedError

    def acked(self, x, now, elapsed, answer, draw):
        """Acknowledged, `elapsed` after the first transmission and `answer` after the answered one, if that is
        known."""

    def gave_up(self, x, now, elapsed):
        """The exchange was given up."""

    def reset(self, x, now, elapsed):
        """Rejected by a Reset, which only er-cocoa takes as a sample."""


class Timer(Mechanism):
    """One RTO from strong samples, doubled on timeout (RFC 6298 section 5). A backed-off RTO is kept for the next
    exchanges until a strong sample, and is not dithered again."""

    min_rto = MIN_RTO
    max_timeout = None  # like max_rto
    keep_backoff = True
    redither = False

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.estimate, self.backoff = self.initial_rto, None

    @property
    def rto(self):
        return max(self.estimate, self.min_rto) if self.backoff is None else self.backoff

    def bounded(self, timeout):
        return min(timeout, self.max_timeout or self.max_rto, LONGEST)

    def start(self, now, draw, outstanding):
        fresh = self.backoff is None or self.redither
        return Exchange(self.bounded(self.dithered(self.rto, draw) if fresh else self.rto))

    def retransmit(self, x, draw):
        x.timeout = self.bounded(2 * x.timeout)
        if self.keep_backoff:
            self.backoff = max(self.backoff or 0, x.timeout)

    def acked(self, x, now, elapsed, answer, draw):
        if x.n == 0:
            self.backoff, self.estimate = None, min(self.measured(elapsed), self.max_rto)

    def measured(self, r):
        """Updates the RTO after a strong sample."""
        raise NotImplementedError
