"""The events: scripts that take mechanisms through their branches. Each asserts that it reaches the intended ones."""

from .units import SECOND, F

COCOA_SAMPLES = (1000, 0), (1000, 0), (1000, 0), (3500, 1), (9000, 2), (20000, 3), (1200, 0)
FASOR_SAMPLES = (100, 0), (100, 0), (100, 0), (200, 0), (100, 0)


def round_trips(trace, *samples):
    for rtt, lost in samples:
        trace.exchange(lost=lost, rtt=F(rtt), draw="")


def cocoa_samples(trace):
    round_trips(trace, *COCOA_SAMPLES)


def fasor_samples(trace):
    round_trips(trace, *FASOR_SAMPLES)


def whole_life(trace):
    """For every mechanism: strong, weak and ambiguous samples, give-up, reset, bounds, ageing."""
    for rtt in ("612.345", "587.2", "640", "1204.75"):
        trace.exchange(after=rtt)
    trace.exchange(lost=1, after="55.5", answered=0)  # the first transmission is answered late
    for rtt in ("600.001", "599.999"):
        trace.exchange(after=rtt, answered=0)
    for lost in (1, 1, 1, 2, 3, 4):  # a chain of ambiguous answers
        trace.exchange(lost=lost, after="431.017", answered=lost)
    trace.exchange(lost=1, after="700")  # the answer does not tell which transmission it is for
    trace.exchange(after="12.5", end="reset")
    trace.exchange(lost=2, after="12.5", end="reset")
    trace.exchange(after="650")
    trace.give_up(4)
    trace.exchange(after="620.5")
    trace.exchange(lost=8, after="333.333", answered=8)  # to the upper bound
    trace.exchange(lost=1, after="333.333", answered=1)
    trace.exchange(lost=3, after="333.333", answered=2)
    trace.give_up(8)
    trace.exchange(lost=2, after="1900", answered=2)
    trace.idle(100_000)
    trace.exchange(lost=1, after="800")
    trace.idle(900_000)
    trace.exchange(after="1500")
    for _ in range(14):  # a short round-trip time, then a small RTO
        trace.exchange(after="20.25")
    trace.exchange(lost=3, after="20.25", answered=3)
    trace.exchange(after="20.125")
    trace.idle(3_000)
    trace.exchange(lost=2, after="20.25")
    trace.idle(400_000)
    trace.exchange(lost=1, after="21", answered=1)
    trace.exchange(after="0.001")
    trace.exchange(after="0")
    trace.exchange(after="40000.5")


def overlapping(trace):
    """Exchanges that overlap, the first four before any measurement. They end in another order than they began, lose
    equal packets and back off independently. They begin and end while another is retransmitted, rejected or given up.
    All of this is repeated over a path that is a hundred times as fast."""
    at = trace.now

    def moment(ms, scale):
        return at + F(ms) * scale

    for scale, names in (F(1), "1234567"), (F(1, 5), "2345671"):
        a, b, c, d, e, f, g = names
        for ms, name in (0, a), ("40.1", b), ("43.2", c), ("50.7", d):
            trace.begin(moment(ms, scale), name)
        assert len(trace.open) == 4
        trace.answer(moment("640.25", scale), b)
        trace.answer(moment("655.5", scale), a)
        trace.begin(moment("700.3", scale), e)
        trace.answer(moment("1210.75", scale), e)
        trace.answer(moment("5100.125", scale), d)  # retransmitted where the RTO is below that time
        trace.begin(moment("5200.9", scale), f)
        trace.answer(moment("5290.1", scale), c, ordinal=0)
        trace.begin(moment("5301.4", scale), g)
        trace.answer(moment("9000.7", scale), f, end="reset")
        trace.answer(moment("9100.6", scale), g)
        at = trace.now + 10
        for ms, name in (0, a), ("1.1", b), ("2.2", c):
            trace.begin(moment(ms, scale), name)
        trace.answer(moment("7777.3", scale), b)  # all have lost their first transmissions, and one loses all
        trace.begin(moment("7779.9", scale), d)
        trace.answer(moment("8111.8", scale), d)
        trace.answer(moment("8490.2", scale), a, ordinal=1)
        trace.begin(moment("8700.3", scale), e)
        trace.answer(moment("9299.9", scale), e)
        is_slow = getattr(trace.mechanism, "ack_timeout", 0) > 10 * SECOND
        trace.advance(trace.now + (800_000 if is_slow else 400_000))
        assert not trace.open
        at = trace.now


def full_backoff(trace):
    """The kept RTO decays to the default and to nothing, survives resets, and is bounded."""
    mechanism = trace.mechanism
    trace.exchange(lost=5, after=100, draw="")
    kept = mechanism.rto
    assert kept == 32 * mechanism.ack_timeout or kept == mechanism.max_rto
    trace.exchange(after=50, end="reset")
    assert mechanism.rto == kept
    for _ in range(6):
        trace.exchange(after="77.5")
    assert mechanism.kept is None
    trace.exchange(lost=2, share="0.5", draw="0.25")
    trace.give_up(0)
    trace.exchange(after=90)
    trace.give_up(3)
    trace.exchange(lost=1, after=80)
    trace.exchange(after=90)
    trace.exchange(lost=7, after=80)
    assert mechanism.kept == mechanism.max_rto
    for _ in range(3):
        trace.exchange(after="77.5", draw="0.75")


def deviations(trace):
    """Round-trip times that rise, fall a little, fall far, and settle; odd fractions of a millisecond."""
    for rtt in ("100.7", "101.2", "260.6", "259.4", "255", "90.9", "88.5", "120.123", "121", "120.999"):
        trace.exchange(after=rtt)
    trace.exchange(lost=2, share="0.5")
    trace.exchange(after="700.5")
    for _ in range(3):
        trace.exchange(after="650.333")
    trace.exchange(lost=1, share="0.999")


def peaks(trace):
    """A peak, its fading, a second peak before it has faded, and a steep one."""
    for rtt in (100, 100, 100, 200, 100, 100, 100, "150.5", 100, 99, 98, "97.5", 300, "10.1", "10.2", "10.1", 900):
        trace.exchange(after=rtt)
    trace.exchange(lost=2, share="0.5")  # a backed-off RTO, then another one without a strong sample between
    trace.exchange(lost=1, share="0.5", answered=1)
    trace.exchange(after=100, end="reset")
    trace.exchange(after=100)


def small_peak(trace):
    """Small round-trip times, the second below the first, where only the lower bound of the RTO matters."""
    for rtt in (101, 50, 25, 101, 102):
        trace.exchange(after=rtt)


def both_gains(trace):
    """Rises above RTTVAR and below it, and falls."""
    for rtt in (100, 100, 90, 80, 200, 100, 110, 400, 380, 385, "390.001", 900, 850, 300):
        trace.exchange(after=rtt)
    trace.exchange(lost=2, share="0.5")  # a backed-off RTO, then another one without a strong sample between
    trace.exchange(lost=1, share="0.5", answered=1)
    trace.exchange(after=100, end="reset")
    trace.exchange(after=350)


def ageing(trace):
    """A small RTO, backed off, then idle and read more than once; likewise a large one, and one at its bound."""
    trace.exchange(lost=1, after=10, end="reset")
    for rtt in ("25.4", "24.7", "25.5"):
        trace.exchange(after=rtt)
    trace.exchange(lost=2, after=10, end="reset")
    trace.idle(7_300)
    trace.exchange(after=10, end="reset")
    trace.exchange(after=10, end="reset")
    trace.idle(29_000)
    trace.exchange(lost=1, share="0.5")
    trace.exchange(share="0.9")  # up
    trace.exchange(lost=2, share="0.95")
    trace.exchange(share="0.95")
    for idle in (47_000, 20_000, 90_000):
        trace.idle(idle)
        trace.exchange(lost=1, after=10, end="reset")
    for _ in range(2):
        trace.exchange(after="61000.25")
    trace.exchange(lost=1, after=10, end="reset")


def after_backoff(trace):
    """The usual update above the timeout in force, below it, and beyond the last retransmission that gives a sample."""
    trace.exchange(after=2000, draw="")
    trace.exchange(lost=1, rtt=9900, draw="")
    if trace.mechanism.after_backoff == "maximum":
        assert trace.mechanism.rto > 6000
    trace.exchange(lost=1, after=50)
    trace.exchange(lost=3, after=50)
    trace.exchange(after=1000)
    trace.exchange(lost=5, after=50)
    trace.exchange(after=1000)


def trusted(trace):
    """Consecutive strong samples up to the greatest weight, and the event that resets it."""
    for rtt in (1000, 900, 1100, 1000, 1050, 950, 1400):
        trace.exchange(after=rtt)
    assert trace.mechanism.weight() == F(99, 100)
    trace.exchange(after=30, end="reset")
    trace.exchange(after=1010)
    trace.exchange(lost=1, after=300)
    for rtt in (1000, 1020):
        trace.exchange(after=rtt)
    trace.exchange(lost=3, after=300)
    trace.exchange(after=900)


def moving_band(trace):
    """An RTO above the band of a small strong estimate; ageing towards it, and none where it would not shrink."""
    mechanism = trace.mechanism
    trace.exchange(lost=1, share="0.5")  # before the first strong sample
    trace.exchange(after=100, draw="")
    assert mechanism.vbf(mechanism.rto) == F(3, 2) and mechanism.rto < 2 * SECOND
    trace.idle(60_000)
    trace.exchange(lost=2, after=10, end="reset")
    assert mechanism.rto < 2 * SECOND, "it has not aged"
    for _ in range(3):  # the answer does not tell which transmission it is for
        trace.exchange(lost=2, share="0.9")
    assert mechanism.rto > 3 * SECOND
    trace.idle(200_000)
    trace.exchange(lost=1, after=60, answered=0)
    for rtt, lost in ((110, 3), (120, 5), (95, 1), (130, 2)):  # the answer tells one of any number of transmissions
        trace.exchange(lost=lost, after=rtt, answered=lost)
    trace.exchange(lost=2, after="70.125", answered=1)


def forgetting(trace):
    """More than three retransmissions since the last strong sample, in one exchange and in several, or given up."""
    mechanism = trace.mechanism
    trace.exchange(after=300)
    trace.exchange(lost=3, after=50)
    assert mechanism.strong.srtt is not None
    trace.exchange(lost=1, after=50)
    assert mechanism.strong.srtt is None
    trace.exchange(after=450)
    trace.give_up(4)
    assert mechanism.strong.srtt is None
    trace.exchange(after=510)


def longer_at_once(trace):
    """Answers that name no transmission, on a calm path: as soon as it brings them, and later, after it became long at once."""
    mechanism = trace.mechanism
    for _ in range(3):
        trace.exchange(after=20)
    trace.exchange(lost=2, after=60)
    assert mechanism.is_calm() and mechanism.held is None
    trace.exchange(lost=4, after=700)
    assert mechanism.is_calm() and mechanism.held is not None
    trace.exchange(lost=2, after=300)
    assert mechanism.held is not None
    trace.exchange(after=1200)
    assert mechanism.held is None


def soon_after_a_copy(trace):
    """Answers that name no transmission, after one copy: in less than half of the least round-trip time, and in more of it."""
    mechanism = trace.mechanism
    trace.exchange(after=20)
    srtt = mechanism.rtt.srtt
    trace.exchange(lost=1, after=19)
    trace.exchange(lost=1, after="10.5")
    assert mechanism.least == 20 and mechanism.rtt.srtt == srtt, "neither was a sample"
    trace.exchange(lost=1, after="9.5")
    assert mechanism.rtt.srtt > srtt, "the first transmission was answered"
    trace.exchange(after=20)
    trace.exchange(lost=2, after="9.5")
    trace.exchange(after=20)


def gradients(trace):
    """Intervals of two round-trip times, more than a window of them: delay that rises and falls in its minimum or only
    in its maximum, with favourable draws and without; bounds; and samples of retransmitted exchanges."""
    told = []

    def interval(first, last, draw):
        """An interval that one sample opens and the next closes."""
        before = trace.mechanism.rto
        trace.exchange(after=first, draws=("0.3", "0.9"))
        trace.idle(2 * F(last))
        trace.exchange(after=last, draws=("0.6", draw))
        told.append(trace.mechanism.rto > before)

    interval(100, 2100, "0")  # the first gives no gradient, but is a lower bound
    interval(120, 100, "0.5")  # falls
    interval(150, 160, "0.64")  # rises
    interval(170, "200.5", "0.65")  # rises, with an unfavourable draw
    interval(F("170.2"), F("212.9"), "0.5")  # the smallest stays
    for first, last, draw in ((90, 100, "0"), (80, 90, "0.1"), (200, 230, "0.44"), (240, 250, "0.51"), (20, 30, "0")):
        interval(first, last, draw)
    interval(F("17.5"), F("29.5"), "0")  # halves of a millisecond
    interval(30, 900, "0.96")  # the largest alone
    trace.exchange(lost=2, share="0.5", draws=("0.5", "", "", "0.999"))
    trace.idle(9_000)
    trace.exchange(lost=1, share="0.5", draws=("0.5", "", "0.3"))
    assert told.count(True) >= 4 and told.count(False) >= 4, told
    trace.exchange(after=50, end="reset")
    trace.give_up(2)


def groups(trace):
    """Groups of five samples: slow, less slow and quick ones; retransmissions with favourable draws and without. A
    Reset is a sample too."""
    mechanism = trace.mechanism

    def factors(*draws):
        """The directions of retransmissions at these draws. The exchange is reset later."""
        first = len(trace.rows)
        trace.exchange(lost=len(draws), after=2500, end="reset", draws=("0.25", *draws))
        armed = [F(row.split(",")[4]) for row in trace.rows[first:-1]]
        return ["up" if later > earlier else "down" for earlier, later in zip(armed, armed[1:])]

    assert factors("", "0.5") == ["down", "down"]  # before the first group
    trace.exchange(lost=2, share="0.9", draws=("0.5", "", "0.5"))
    for share in ("0.85", "0.6", "0.5"):
        trace.exchange(share=share)
    assert factors("0.1", "0.85", "0.87", "0.95", "0.5") == ["up", "up", "down", "down", "up"]  # 86 %
    for share in ("0.2", "0.18", "0.17", "0.19"):
        trace.exchange(share=share)
    assert factors("0.62", "0.64", "0", "0.99") == ["up", "down", "up", "down"]  # 63 %
    for lost, rtt in ((0, 200), (0, 180), (0, 190)):
        trace.exchange(lost=lost, after=rtt)
    trace.give_up(1, draws=("0.2", "0.4"))
    trace.exchange(lost=1, share="0.5", draws=("0.5", "0.64"))
    assert mechanism.groups == 3 and factors("0", "0.2") == ["down", "down"]


def regions(trace):
    """Load that is low, normal and, because of losses, medium; the bounds of the rate; answers that do not tell their
    transmission."""
    mechanism = trace.mechanism
    trace.give_up(2)  # before the first sample
    for rtt in (100, 100, 102, 100, 99, 100, 100, 101):
        trace.exchange(after=rtt, answered=0)
    rate = mechanism.rate
    trace.exchange(after=200, answered=0)  # medium, but hardly a message was lost
    assert mechanism.seen[-1] == "medium" and mechanism.rate == rate
    for rtt in (112, 112, 110, 112, 112):
        trace.exchange(after=rtt)
    trace.exchange(lost=1, after=220, answered=1)
    assert mechanism.seen[-1] == "medium" and mechanism.rate != rate
    trace.idle(700)
    for rtt in (120, 122, 120, 120, 20):
        trace.exchange(after=rtt)
    trace.exchange(lost=1, after=200)  # ambiguous
    trace.exchange(after=70)
    assert set(mechanism.seen) == {"low", "normal", "medium"}, mechanism.seen
    for lost in (2, 0, 0, 0, 0, 0, 0):
        trace.give_up(lost)
    assert mechanism.rate == F(1, 60)
    trace.exchange(lost=1, after=90, answered=1)  # normal, but many were lost
    assert mechanism.seen[-1] == "normal" and mechanism.rate == F(1, 60)
