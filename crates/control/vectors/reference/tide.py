"""tide."""

from . import transfer
from .estimator import Rtt
from .mechanism import Exchange, Mechanism
from .units import LONGEST, MICROSECOND, MILLISECOND, MIN_RTO, SECOND, F, apart, has_passed, whole

ONE = 256  # windows are multiples of this part of a datagram
LEAST, MOST = 2 * ONE, 1024 * ONE
CALM, EBB, FLOOD, COMPETITION = "calm", "ebb", "flood", "competition"


def micros(span):
    """Returns the microseconds of a span, one at least."""
    return max(int(whole(min(span, LONGEST)) / MICROSECOND), 1)


def nearest(ratio, value):
    """Returns this fraction of a whole number, to the nearest, halves up."""
    return (value * ratio.numerator + ratio.denominator // 2) // ratio.denominator


class Tide(Mechanism):
    """docs/bulk.md: Copa's target, an ebb when the queue does not empty, competition when others fill it. Round-trip times are
    whole microseconds where they are compared, and windows are whole units, so that decisions are exact."""

    bulk = True
    initial_window = 10
    target = 2
    fall = F(1, 10)
    ebb_after, ebb, ebbed = 3, F(3, 4), F(1, 2)
    compete, compete_for, wary_for = True, 18, 32
    loss_leaves, competing_loss_leaves = F(3, 4), F(9, 16)
    min_rto = MIN_RTO
    dither = F(5, 4)
    overtaken_share, min_overtaken = F(1, 8), MILLISECOND

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.rtt = Rtt()
        self.units = self.initial_window * ONE
        self.least = self.next_least = None  # this epoch and the one before; this epoch
        self.epoch, self.mark, self.halves = None, None, [None, None]
        self.marked, self.longest, self.calm = 0, 0, 0
        self.shares = {"short": 0, "long": 0}
        self.long_queue, self.slow, self.second_half = False, True, False
        self.up, self.steady = True, 0
        self.full, self.round, self.cut = 0, 0, -100
        self.silent, self.answered = 0, False
        self.departs = 0
        self.seen = set()

    @property
    def window(self):
        return self.units // ONE

    @property
    def next(self):
        return self.departs * MICROSECOND if self.departs else None

    @property
    def rto(self):
        return min(self.usual_rto() * F(3, 2) ** max(self.silent - 1, 0), self.max_rto)

    def usual_rto(self):
        srtt, rto = self.rtt.srtt, self.initial_rto
        if srtt is not None:
            rto = max(srtt + max(4 * self.rtt.rttvar, srtt if self.slow else srtt / 4), self.min_rto)
        return min(rto, self.max_rto)

    @property
    def overtaken(self):
        return max(self.overtaken_share * (self.rtt.srtt or self.initial_rto), self.min_overtaken)

    @property
    def phase(self):
        over = self.full - self.ebb_after
        return CALM if over < 0 else (EBB, FLOOD, COMPETITION)[min(over, 2)]

    @property
    def standing(self):
        return min(half for half in self.halves if half is not None)

    @property
    def queue(self):
        return self.standing - self.least

    def srtt(self):
        return 0 if self.rtt.srtt is None else micros(self.rtt.srtt)

    def resize(self, units):
        self.units = min(max(units, LEAST), MOST)

    def start(self, now, draw, outstanding):
        x = Exchange(None)
        self.pace_and_arm(x, draw)
        return x

    def retransmit(self, x, draw):
        self.lose(x)
        self.pace_and_arm(x, draw)

    def pace_and_arm(self, x, draw):
        """Two windows depart in a round-trip time, of 33 s at most. A timer that is late by SRTT/16 and 1 ms does not slow that down."""
        now, srtt = self.microseconds(), self.srtt()
        gap = (min(srtt, 2**25 - 1) << 7) // self.units
        late = srtt // 16 + 1000
        self.departs = max(self.departs, now - late) + gap
        x.timeout = min(self.rto + draw * (self.dither - 1) * self.rto, self.max_rto)
        x.round = self.round

    def microseconds(self):
        return int(self.now / MICROSECOND)

    def acked(self, x, now, elapsed, answer, draw):
        self.answered = True
        self.count_answer()
        latest = min(now - x.departed, LONGEST)
        spurious = x.n == 1 and self.least is not None and micros(latest) < self.least
        if x.n == 0 or spurious:
            self.learn(max(elapsed, MICROSECOND))
        elif self.silent > 1 and latest <= apart(self.usual_rto(), latest) and micros(latest) >= self.least:
            self.seen.add("usual answer")
            self.silent = 1

    def gave_up(self, x, now, elapsed):
        self.lose(x)

    def count_answer(self):
        short, long = self.shares["short"], self.shares["long"]
        if self.long_queue:
            self.shares = {"short": short - short // 256, "long": long - long // 32}
        else:
            self.shares["short"] = short - short // 32

    def congested(self):
        """Counts a loss. It is congestion if losses with a long queue are more than twice as frequent as with a short one,
        and 1/64 more, or above 5/8."""
        side = "long" if self.long_queue else "short"
        self.shares[side] += (65535 - self.shares[side]) // 32
        short, long = self.shares["short"], self.shares["long"]
        return (self.long_queue and long > 2 * short + 1024) or max(short, long) > 40960

    def learn(self, r):
        first = self.rtt.srtt is None
        self.rtt.sample(r)
        self.silent = 0
        rtt, now = micros(r), self.microseconds()
        if first:
            self.mark, self.marked = now, self.units
            self.least = self.next_least = rtt
            self.epoch = now // 65536
        self.least, self.next_least = min(self.least, rtt), min(self.next_least, rtt)
        longest = max(30 * self.srtt(), 30_000_000) * (1 if self.phase == CALM else 4)
        if (now // 65536 - self.epoch) % 65536 * 65536 > longest:
            self.least, self.next_least, self.epoch = self.next_least, rtt, now // 65536
            self.seen.add("epoch")
        half = self.srtt() // 2
        assert first or abs(now - self.mark - half) > 1, "fixed point may end the half of a round trip elsewhere"
        if now - self.mark > half:
            self.mark, self.halves = now, [rtt, self.halves[0]]
            self.second_half = not self.second_half
            if not self.second_half:
                self.turn()
        else:
            self.halves[0] = rtt if self.halves[0] is None else min(self.halves[0], rtt)
        delay = rtt - self.least
        self.longest = max(self.longest, delay)
        self.long_queue = delay > self.longest // 2 and delay > self.least // 32
        self.look()
        self.steer()

    def look(self):
        emptied = nearest(self.ebbed, self.longest) if self.phase in (EBB, FLOOD) else self.longest // 10
        if self.queue <= emptied:
            self.seen.add(f"empty in {self.phase}")
            if self.phase == EBB:
                self.units = self.marked = self.without_queue()
            self.full = 0

    def without_queue(self):
        units = min(self.marked * self.least // (self.least + self.longest), MOST)
        return min(max(units + self.target * ONE // 2, LEAST), MOST)

    def steer(self):
        rises = self.phase == COMPETITION or self.units * self.queue < self.target * ONE * self.standing
        used = self.outstanding * 2 * ONE >= self.units
        if self.slow:
            if rises:
                self.units = min(self.units + ONE * used, MOST)
                return
            self.seen.add("slow start ends")
            self.slow, self.steady = False, 0
            self.resize(self.units * self.least // self.standing)
            self.marked = self.units
        if self.phase == EBB:
            return
        if self.phase == COMPETITION:
            step = ONE if self.units < self.marked else ONE * ONE // self.units
        elif self.phase == CALM and self.round - self.cut < self.wary_for:
            self.seen.add("wary")
            step = ONE * ONE // self.units
        else:
            velocity = 2 ** min(max(self.steady - 2, 0), 7)
            step = self.target * ONE * ONE * velocity // self.units
        step = min(max(step, 1), ONE)
        if not rises:
            self.resize(self.units - min(max(step, nearest(self.fall, ONE)), ONE))
        elif used:
            self.resize(self.units + step)

    def turn(self):
        """A round trip ends."""
        self.round += 1
        if self.slow:
            return
        before = self.phase
        if self.full == 0:
            fits = min(min(self.units, self.marked) * self.least // self.standing, MOST) // 16
            self.calm = max(fits, self.calm - self.calm // 16)
        self.longest -= self.longest // 16
        self.full += 1
        if self.full >= self.ebb_after + 2 + self.compete_for:
            self.full = self.ebb_after
        self.seen.add(self.phase)
        if self.phase == CALM:
            rises = self.units > self.marked
            self.steady = min(self.steady + 1, 15) if rises == self.up else 0
            self.up, self.marked = rises, self.units
        elif self.phase == EBB:
            if before == COMPETITION:
                self.seen.add("ebb again")
            self.longest, self.marked = self.queue, self.units
            self.resize(nearest(self.ebb, self.without_queue()))
        elif self.phase == FLOOD:
            self.units, self.steady = self.without_queue(), 0
        elif not self.compete:
            self.full = 0
        elif before == FLOOD:
            self.marked = max(self.marked, min(self.calm * 16 * self.standing // self.least, MOST))
            self.calm = 0

    def lose(self, x):
        timed_out = has_passed(self.now - x.departed, x.timeout)
        silent = timed_out and x.round == self.round
        fresh = x.round >= self.cut
        if self.congested() and fresh:
            self.seen.add(f"congestion in {self.phase}")
            self.round += 1
            self.cut = self.round
            leaves = self.loss_leaves
            if self.phase == COMPETITION:
                leaves = self.competing_loss_leaves
            else:
                self.full = 0
            self.slow, self.steady = False, 0
            self.resize(nearest(leaves, self.units))
            self.marked = self.units
        if silent:
            self.round += 1
            if self.silent > 0 and not self.answered:
                self.seen.add("silence")
                self.units, self.full, self.slow = ONE, 0, True
            self.silent, self.answered = min(self.silent + 1, 32), False


MECHANISMS = [
    ("tide", Tide, {}, {}),
]
TRANSFERS = {"tide": [(transfer.losses, 4), (transfer.competition, 6), (transfer.outage, 8), (transfer.longer_path, 4)]}
