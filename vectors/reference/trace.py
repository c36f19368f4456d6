"""One mechanism driven through events."""

from .units import LONGEST, MICROSECOND, F, decimal

HEADER = "at_ms,event,draw,answered,timeout_ms,rto_ms,next_ms"


class Trace:
    """Timers fire when they are due, or where a script says so late."""

    def __init__(self, name, mechanism, luck=7):
        self.name, self.mechanism, self.now = name, mechanism, F(0)
        self.rows, self.x = [], None
        self.luck = luck

    def draw(self):
        """0, 0.5, and others in between, of at most six places."""
        self.luck = (self.luck * 7919 + 12345) % 1000003
        # The highest leaves no doubt how many whole ticks a timeout has.
        highest = "0.999999" if self.mechanism.tick == MICROSECOND else "0.987651"
        return ["", "0.5", highest][self.luck % 3] if self.luck % 5 == 0 else f"0.{self.luck % 1000000:06d}"

    def row(self, event, draw="", answered="", timeout=None):
        armed = "" if timeout is None else decimal(timeout)
        next_ = "" if self.mechanism.next is None else decimal(max(self.mechanism.next - self.now, F(0)))
        self.rows.append(
            f"{decimal(self.now)},{event},{draw},{answered},{armed},{decimal(self.mechanism.rto)},{next_}"
        )

    def depart(self, event, draw):
        self.departures.append(self.now)
        self.due = self.now + F(decimal(self.x.timeout))
        self.row(event, draw, timeout=self.x.timeout)

    def start(self, draw=""):
        self.departures = []
        self.x = self.mechanism.start(self.now, F(draw or 0))
        self.depart("start", draw)

    def timeout(self, draw=""):
        self.now = self.due
        self.x.n += 1
        self.mechanism.retransmit(self.x, F(draw or 0))
        self.depart("timeout", draw)

    def since(self, ordinal):
        """How long ago that transmission departed, as a sample."""
        return min(max(self.now - self.departures[ordinal], self.mechanism.shortest), LONGEST)

    def end(self, event, answered=None, draw=""):
        if event == "ack":
            answer = None if answered is None else self.since(answered)
            self.mechanism.acked(self.x, self.now, self.since(0), answer, F(draw or 0))
        elif event == "giveup":
            self.mechanism.gave_up(self.x, self.now, self.since(0))
        self.row(event, draw, answered="" if answered is None else str(answered))

    def exchange(self, lost=0, after=None, rtt=None, share=None, answered=None, end="ack", draw=None, draws=()):
        """Starts, loses that many transmissions, and ends `after` the last of them, or `rtt` after the first, or when
        that `share` of the last timeout is over. Draws are told one by one (of the start, the timeouts and, if the
        mechanism draws there, the end), or `draw` is that of the start and the others are 0, or luck has them."""
        told = iter([draw] + (lost + 1) * [""] if draw is not None else draws or iter(self.draw, None))
        self.start(next(told))
        for _ in range(lost):
            self.timeout(next(told))
        if rtt is not None:
            self.now = self.departures[0] + F(rtt)
        elif share is not None:
            self.now += F(decimal(F(share) * self.x.timeout))
        else:
            self.now += F(after)
        assert self.now >= self.departures[-1], "answered before it departed"
        draws = self.mechanism.draws_on_ack and end == "ack"
        self.end(end, answered, next(told) if draws else "")

    def give_up(self, lost, draw=None, draws=()):
        told = iter(draws or [self.draw() if draw is None else draw] + lost * [""])
        self.start(next(told))
        for _ in range(lost):
            self.timeout(next(told))
        if self.mechanism.final_wait:
            self.now = self.due
        self.end("giveup")

    def idle(self, ms):
        self.now += ms

    def text(self):
        return "\n".join([f"# mechanism {self.name}", HEADER, *self.rows]) + "\n"

    def rto(self, *expected, places=3):
        """Compares the RTO after each acknowledgement with published numbers."""
        told = [float(row.split(",")[5]) for row in self.rows if ",ack," in row]
        assert [f"{rto:.{places}f}" for rto in told] == [f"{rto:.{places}f}" for rto in expected], told
