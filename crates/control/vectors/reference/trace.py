"""Drives one mechanism through events."""

from .units import LONGEST, MICROSECOND, F, decimal

HEADER = "at_ms,event,draw,answered,timeout_ms,rto_ms,next_ms"
MAX_RETRANSMIT = 4  # for exchanges that overlap


class Open:
    """An open exchange: the mechanism's part, the times of its transmissions, and the deadline of its timer."""

    def __init__(self, x):
        self.x, self.departures, self.due = x, [], None


class Trace:
    """Timers fire when they are due, or later if a script says so. Exchanges that overlap have names."""

    def __init__(self, name, mechanism, luck=7):
        self.name, self.mechanism, self.now = name, mechanism, F(0)
        self.rows, self.open, self.last, self.overlaps = [], {}, None, False
        self.luck = luck

    @property
    def x(self):
        """Returns the exchange of the last event."""
        return self.last.x

    def draw(self):
        """Returns a draw: 0, 0.5, or others in between, with at most six places."""
        self.luck = (self.luck * 7919 + 12345) % 1000003
        # The highest draw leaves no doubt about the number of whole ticks in a timeout.
        highest = "0.999999" if self.mechanism.tick == MICROSECOND else "0.987651"
        return ["", "0.5", highest][self.luck % 3] if self.luck % 5 == 0 else f"0.{self.luck % 1000000:06d}"

    def row(self, event, name, draw="", answered="", timeout=None):
        armed = "" if timeout is None else decimal(timeout)
        window = f",{self.mechanism.window}" if self.mechanism.bulk else ""
        next_ = "" if self.mechanism.next is None else decimal(max(self.mechanism.next - self.now, F(0)))
        self.overlaps |= name != ""
        self.rows.append(
            f"{decimal(self.now)},{event},{draw},{answered},{armed},{decimal(self.mechanism.rto)},{next_}{window},{name}"
        )

    def depart(self, event, name, draw):
        self.last.departures.append(self.now)
        self.x.departed = self.now
        self.last.due = self.now + F(decimal(self.x.timeout))
        self.row(event, name, draw, timeout=self.x.timeout)

    def tell(self, others):
        """Tells the mechanism the time, and how many exchanges are open; `others` besides the present one."""
        self.mechanism.now, self.mechanism.outstanding = self.now, others + 1

    def start(self, draw="", name=""):
        self.tell(len(self.open))
        x = self.mechanism.start(self.now, F(draw or 0), len(self.open) + 1)
        assert name not in self.open, name
        self.last = self.open[name] = Open(x)
        self.depart("start", name, draw)

    def timeout(self, draw="", name=""):
        self.now = self.open[name].due
        self.again(draw, name)

    def again(self, draw="", name=""):
        """Retransmits now."""
        self.last = self.open[name]
        self.tell(len(self.open) - 1)
        self.x.n += 1
        self.mechanism.retransmit(self.x, F(draw or 0))
        self.depart("timeout", name, draw)

    def since(self, ordinal):
        """Returns the time since that transmission departed, as a sample."""
        return min(max(self.now - self.last.departures[ordinal], self.mechanism.shortest), LONGEST)

    def end(self, event, answered=None, draw="", name=""):
        self.last = self.open.pop(name)
        self.tell(len(self.open))
        if event == "ack":
            answer = None if answered is None else self.since(answered)
            self.mechanism.acked(self.x, self.now, self.since(0), answer, F(draw or 0))
        elif event == "giveup":
            self.mechanism.gave_up(self.x, self.now, self.since(0))
        elif event == "reset":
            self.mechanism.reset(self.x, self.now, self.since(0))
        self.row(event, name, draw, answered="" if answered is None else str(answered))

    def exchange(self, lost=0, after=None, rtt=None, share=None, answered=None, end="ack", draw=None, draws=()):
        """Starts, loses `lost` transmissions, and ends: `after` the last of them, or `rtt` after the first, or when
        `share` of the last timeout has passed. `draws` are those of the start, the timeouts and, if the mechanism draws
        there, the end. With `draw` the start has that and the others 0. Without both, draws are generated."""
        told = iter([draw] + (lost + 1) * [""] if draw is not None else draws or iter(self.draw, None))
        self.start(next(told))
        for _ in range(lost):
            self.timeout(next(told))
        if rtt is not None:
            self.now = self.last.departures[0] + F(rtt)
        elif share is not None:
            self.now += F(decimal(F(share) * self.x.timeout))
        else:
            self.now += F(after)
        assert self.now >= self.last.departures[-1], "answered before it departed"
        draws = self.mechanism.draws_on_ack and end == "ack"
        self.end(end, answered, next(told) if draws else "")

    def give_up(self, lost, draw=None, draws=()):
        told = iter(draws or [self.draw() if draw is None else draw] + lost * [""])
        self.start(next(told))
        for _ in range(lost):
            self.timeout(next(told))
        if self.mechanism.final_wait:
            self.now = self.last.due
        self.end("giveup")

    # Exchanges that overlap. Their timers fire when they are due.

    def advance(self, at):
        """Retransmits and gives up every exchange that is due until then."""
        at = F(at)
        while self.open and min(opened.due for opened in self.open.values()) <= at:
            name = min(self.open, key=lambda name: self.open[name].due)
            if self.open[name].x.n < MAX_RETRANSMIT:
                self.timeout(self.draw(), name)
                if self.mechanism.final_wait or self.x.n < MAX_RETRANSMIT:
                    continue
            self.now = max(self.now, self.open[name].departures[-1])
            if self.mechanism.final_wait:
                self.now = self.open[name].due
            self.end("giveup", name=name)
        assert at >= self.now
        self.now = at

    def begin(self, at, name, draw=None):
        self.advance(at)
        self.start(self.draw() if draw is None else draw, name)

    def answer(self, at, name, ordinal=None, end="ack"):
        """Answers the exchange, if it has not been given up: the last transmission, or the one named."""
        self.advance(at)
        if name in self.open:
            retransmits = self.open[name].x.n
            answered = retransmits if ordinal is None else min(ordinal, retransmits)
            draw = self.draw() if self.mechanism.draws_on_ack and end == "ack" else ""
            self.end(end, answered if end == "ack" else None, draw, name)

    def idle(self, ms):
        self.now += ms

    def text(self):
        header = HEADER + ",window" * self.mechanism.bulk
        rows = self.rows
        if self.overlaps:
            header += ",exchange"
        else:
            rows = [row.removesuffix(",") for row in rows]
        return "\n".join([f"# mechanism {self.name}", header, *rows]) + "\n"

    def rto(self, *expected, places=3):
        """Compares the RTO after each acknowledgement with published numbers."""
        told = [float(row.split(",")[5]) for row in self.rows if ",ack," in row]
        assert [f"{rto:.{places}f}" for rto in told] == [f"{rto:.{places}f}" for rto in expected], told
