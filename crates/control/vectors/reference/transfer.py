"""Transfers of many blocks over one bottleneck, for bulk mechanisms. Times are in whole microseconds."""

from heapq import heappop, heappush

from .trace import MAX_RETRANSMIT
from .units import MICROSECOND

SECOND = 1_000_000


class Transfer:
    """Requests pass a queue, and their answers come a round-trip time later, or never."""

    def __init__(self, trace, service=10_000, rtt=100_000, buffer=12):
        self.trace, self.service, self.rtt, self.buffer = trace, service, rtt, buffer
        self.others = 0  # the delay that others cause in the queue
        self.lost = lambda number: False
        self.free = self.overtaker = self.number = 0
        self.arrivals = []

    @property
    def now(self):
        return int(self.trace.now / MICROSECOND)

    def depart(self, name):
        """The last transmission of this exchange departs."""
        self.number += 1
        now = self.now
        wait = max(self.free - now, 0)
        if wait > self.buffer * self.service or self.lost(self.number):
            return
        self.free = now + wait + self.service
        heappush(self.arrivals, (self.free + self.rtt + self.others, self.number, name, self.trace.open[name]))

    def due(self):
        """Returns the time of the timer that fires next, and its exchange."""
        return min(((int(opened.due / MICROSECOND), name) for name, opened in self.trace.open.items()), default=None)

    def go(self, seconds):
        """Runs for so long. The exchanges that are open then stay so."""
        trace, until = self.trace, self.now + int(seconds * SECOND)
        while True:
            mechanism, moments = trace.mechanism, []
            if len(trace.open) < mechanism.window:
                moments.append((max(self.now, int((mechanism.next or 0) / MICROSECOND)), 2, None))
            if self.due():
                moments.append((self.due()[0], 1, self.due()[1]))
            if self.arrivals:
                moments.append((self.arrivals[0][0], 0, None))
            at, kind, name = min(moments, key=lambda moment: moment[:2])
            if at > until:
                break
            trace.now = max(trace.now, at * MICROSECOND)
            if kind == 0:
                self.arrive(*heappop(self.arrivals)[2:])
            elif kind == 1:
                self.repeat(name)
            else:
                name = next(str(free) for free in range(1, 1000) if str(free) not in trace.open)
                trace.start(trace.draw(), name)
                self.depart(name)

    def arrive(self, name, opened):
        trace = self.trace
        if trace.open.get(name) is not opened:
            return  # another copy was answered
        departed, again = int(opened.departures[-1] / MICROSECOND), opened.x.n > 0
        trace.end("ack", name=name)
        if again or trace.mechanism.overtaken is None:
            return
        self.overtaker = max(self.overtaker, departed)
        behind = self.overtaker - int(trace.mechanism.overtaken / MICROSECOND)
        for name, opened in sorted(trace.open.items()):
            if opened.departures[-1] <= behind * MICROSECOND:
                self.repeat(name)

    def repeat(self, name):
        if self.trace.open[name].x.n == MAX_RETRANSMIT:
            self.trace.end("giveup", name=name)
        else:
            self.trace.again(self.trace.draw(), name)
            self.depart(name)


def losses(trace):
    """A lone flow: slow start until the queue overflows, then few losses, then one in six."""
    transfer = Transfer(trace)
    transfer.go(1.5)
    transfer.lost = lambda number: number % 37 == 5
    transfer.go(0.8)
    transfer.lost = lambda number: number % 6 == 1
    transfer.go(0.8)


def competition(trace):
    """Others fill the queue, packets are lost, and the queue empties again."""
    transfer = Transfer(trace, service=25_000, rtt=80_000, buffer=60)
    transfer.go(1.5)
    transfer.others = 150_000
    transfer.go(4)
    assert "competition" in trace.mechanism.seen
    transfer.lost = lambda number: number % 40 == 7
    transfer.go(2)
    transfer.lost = lambda number: False
    transfer.go(4)
    transfer.others = 0
    transfer.go(1.5)
    seen = {"calm", "ebb", "flood", "ebb again", "congestion in competition", "empty in competition"}
    assert seen <= trace.mechanism.seen, trace.mechanism.seen


def outage(trace):
    """Everything is lost for a while, and then nothing."""
    transfer = Transfer(trace, service=40_000, rtt=170_000)
    transfer.go(1)
    transfer.lost = lambda number: True
    transfer.go(12)
    transfer.lost = lambda number: False
    transfer.go(15)
    assert trace.mechanism.window > 1


def longer_path(trace):
    """The path becomes longer than any timeout, so that nothing but a backed-off timeout brings a sample."""
    transfer = Transfer(trace, service=180_000, rtt=120_000)
    transfer.go(4)
    transfer.rtt = 2_500_000
    transfer.go(40)
    assert "competition" in trace.mechanism.seen


def sets(trace):
    """Whole sets, sets that lack an answer, copies of which some depart within the wait of a set, and a silence."""
    transfer = Transfer(trace)
    transfer.go(0.7)
    transfer.lost = lambda number: number % 17 == 5
    transfer.go(12)
    transfer.lost = lambda number: True
    transfer.go(30)
    transfer.lost = lambda number: False
    transfer.go(3)
    assert {"Continue", "wait", "within the wait"} <= trace.mechanism.seen, trace.mechanism.seen
