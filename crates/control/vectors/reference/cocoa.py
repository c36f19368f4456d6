"""cocoa, cocoa-plus, cocoa0, cocoa-strong, fullbackoff1-cocoa, fullbackoff2-cocoa, gsrtc, cocoa-i."""

from . import scripts
from .estimator import Rtt
from .mechanism import Exchange, Mechanism
from .timers import in_ticks
from .units import LONGEST, MICROSECOND, MILLISECOND, MIN_RTO, SECOND, F, apart, down, nearest

IDLE = 9 * MILLISECOND  # distance of a script's idle times from a threshold: time stamps are whole milliseconds


class Cocoa(Mechanism):
    """draft-ietf-core-cocoa-03 section 4. Other values give earlier and later versions, and implementations."""

    min_rto = MIN_RTO
    min_timeout = MICROSECOND
    max_rto = 60 * SECOND  # of the estimate that timeouts start from
    max_estimate = LONGEST  # of the RTO of one estimator
    max_timeout = 32 * SECOND  # of timeouts after backoff
    redither = False
    k_strong, k_weak = 4, 1
    strong_weight, weak_weight = F(1, 2), F(1, 4)
    weighting = "fixed"
    max_weak_n = 2
    srtt_gain, rttvar_gain = F(1, 8), F(1, 4)
    vbf_small, vbf_middle, vbf_large = F(3), F(2), F(3, 2)
    vbf_low, vbf_high = 1 * SECOND, 3 * SECOND
    vbf_on = "initial"
    band = "fixed"
    ageing = "draft-03"
    after_backoff = "forget"
    forget_strong_after = 0
    give_up = "keep"
    sample_reset = False
    marking = "none"
    marked_retransmission = "strong"
    granularity = MILLISECOND
    shortest = F(0)

    renewed = None  # the time stamp for ageing
    strong_run = 0  # consecutive strong samples
    retransmitted = 0  # retransmissions since the last strong sample

    def __init__(self, **parameters):
        super().__init__(**parameters)
        self.rto = self.initial_rto
        self.strong, self.weak = self.estimator(), self.estimator()

    def estimator(self):
        return Rtt(srtt_gain=self.srtt_gain, rttvar_gain=self.rttvar_gain, tick=self.tick)

    # Variable backoff factor, section 4.2.1.

    def thresholds(self):
        """The bounds of a small and a large RTO (Meng et al. 2017: a band around the strong estimate)."""
        if self.band == "fixed":
            return self.vbf_low, self.vbf_high
        first = self.strong.srtt is None
        e = self.initial_rto if first else self.strong.rto(self.k_strong, self.granularity)
        return e / 3, e * 5 / 3

    def vbf(self, rto):
        low, high = self.thresholds()
        apart(rto, low)
        apart(rto, high)
        return self.vbf_small if rto < low else self.vbf_large if rto > high else self.vbf_middle

    # Ageing, section 4.3: an RTO that was not renewed for long moves back towards its initial value.

    def age(self, now):
        if self.renewed is None or self.ageing == "off":
            return
        rto, renewed = AGEING[self.ageing](self, self.rto, now - self.renewed, now)
        self.rto, self.renewed = min(rto, self.max_rto), renewed

    def bounded(self, rto):
        return max(min(rto, self.max_rto), self.min_rto)

    def idles(self, idle, patience):
        return apart(idle, patience, by=IDLE) > patience

    def eased(self, rto):
        """Rounded to whole ticks, because Californium divides integers."""
        return down(SECOND + rto / 2, self.tick)

    def age_as_in_draft_03(self, rto, idle, now):
        low, high = self.thresholds()
        while True:
            small, large = apart(rto, low) < low, apart(rto, high) > high
            patience, aged = (16 * rto, 2 * rto) if small else (4 * rto, self.eased(rto))
            if not (small or large and aged < rto) or not self.idles(idle, patience):
                return rto, now - idle
            rto, idle = aged, idle - patience

    def age_as_in_cocoa_0(self, rto, idle, now):
        if apart(rto, SECOND) < SECOND and self.idles(idle, 16 * rto):
            return SECOND, now
        return rto, self.renewed

    def age_as_in_cocoa_plus(self, rto, idle, now):
        """Betzler et al. 2015 section 3 adds the ageing of large RTOs."""
        if rto > 2 * SECOND and self.idles(idle, 30 * SECOND):
            return (2 * SECOND + rto) / 2, now
        return self.age_as_in_cocoa_0(rto, idle, now)

    def age_as_in_er_cocoa(self, rto, idle, now):
        """One step at every start, because the time stamp is not renewed."""
        if apart(rto, SECOND) < SECOND and self.idles(idle, 16 * rto):
            rto = SECOND
        elif apart(rto, 3 * SECOND) > 3 * SECOND and self.idles(idle, 4 * rto):
            rto = self.eased(rto)
        return rto, self.renewed

    def age_as_in_californium_2(self, rto, idle, now):
        """The loops test the RTO from before the first step."""
        began, steps = rto, 0
        while apart(began, SECOND) < SECOND and steps < 63 and self.idles(idle, 16 * began):
            rto, idle, steps = 2 * rto, idle - 16 * began, steps + 1
        while apart(began, 3 * SECOND) > 3 * SECOND and steps < 63 and self.idles(idle, 4 * began):
            rto, idle, steps = self.eased(rto), idle - 4 * began, steps + 1
        return rto, now if steps else self.renewed

    def age_as_in_californium_3(self, rto, idle, now):
        aged, _ = self.age_as_in_draft_03(rto, idle, now)
        return aged, self.renewed if aged == rto else now

    # Exchanges.

    def start(self, now, draw, outstanding):
        before = self.rto
        self.age(now)
        # Californium 3 ages after it has taken the timeout, Californium 2 after it has chosen the backoff factor.
        rto = before if self.ageing == "californium-3" else self.rto
        judged = before if self.ageing in ("californium-2", "californium-3") else self.rto
        if self.renewed is None:
            rto *= outstanding  # section 4.1: the k-th parallel exchange before any measurement; the backoff factor is that of one RTO
        x = Exchange(self.armed(max(self.dithered(rto, draw), self.min_timeout)), base=min(rto, self.longest()))
        x.factor = self.vbf(x.timeout if self.vbf_on == "dithered" else judged)
        return x

    def longest(self):
        """A first timeout may be as long as the estimate, though the backoff is truncated earlier (section 4.2.1)."""
        return max(self.max_rto, self.max_timeout)

    def armed(self, timeout):
        return down(min(timeout, self.longest()), self.tick)

    def retransmit(self, x, draw):
        x.base = x.base if self.redither else x.timeout
        factor = self.vbf(x.base) if self.vbf_on == "current" else x.factor
        if x.base < self.max_timeout:
            x.base = min(factor * x.base, self.max_timeout)
        x.timeout = self.armed(self.dithered(x.base, draw) if self.redither else x.base)

    # Samples, section 4.2.

    def acked(self, x, now, elapsed, answer, draw):
        if self.marking != "none" and answer is not None:
            if self.marked_retransmission == "strong" or answer == elapsed:
                self.take_strong(answer, now)
            else:
                self.take(answer, now, self.weak, self.k_weak, self.weak_weight)
        elif x.n == 0:
            self.take_strong(elapsed, now)
        else:
            self.take_weak(x, elapsed, now)
            self.strong_run = 0
            self.mind_backoff(x, now)

    def mind_backoff(self, x, now):
        """Järvinen et al. 2018, Rathod 2022 section 5.1: the RTO after backoff, or at least that."""
        if self.after_backoff != "forget":
            usual = self.rto if self.after_backoff == "maximum" else F(0)
            self.rto, self.renewed = self.bounded(max(usual, x.timeout)), now

    def gave_up(self, x, now, elapsed):
        if self.give_up == "weak-sample":
            self.take_weak(x, elapsed, now)
        self.strong_run = 0
        self.mind_backoff(x, now)

    def reset(self, x, now, elapsed):
        if self.sample_reset:
            self.acked(x, now, elapsed, None, F(0))

    def take_strong(self, r, now):
        self.strong_run, self.retransmitted = self.strong_run + 1, 0
        self.take(r, now, self.strong, self.k_strong, self.weight())

    def weight(self):
        """The weight of a strong sample. Rathod 2022 section 5.2 raises it with the number of consecutive strong
        samples."""
        if self.weighting == "fixed":
            return self.strong_weight
        return min(sum(F(1, 2) ** c for c in range(1, self.strong_run + 1)), F(99, 100))

    def take_weak(self, x, r, now):
        if x.n <= self.max_weak_n:
            self.take(r, now, self.weak, self.k_weak, self.weak_weight)
        self.retransmitted += x.n
        if 0 < self.forget_strong_after < self.retransmitted:
            self.strong = self.estimator()

    def take(self, r, now, estimator, k, weight):
        estimator.sample(in_ticks(r, self.tick))
        e = min(estimator.rto(k, self.granularity), self.max_estimate)
        self.rto = self.bounded(nearest(weight * e + (1 - weight) * self.rto, self.tick))
        self.renewed = now


AGEING = {
    "draft-03": Cocoa.age_as_in_draft_03,
    "cocoa-0": Cocoa.age_as_in_cocoa_0,
    "cocoa-plus": Cocoa.age_as_in_cocoa_plus,
    "er-cocoa": Cocoa.age_as_in_er_cocoa,
    "californium-2": Cocoa.age_as_in_californium_2,
    "californium-3": Cocoa.age_as_in_californium_3,
}

# The sources have no lower bound of the RTO.
PUBLISHED = {"min_rto": MICROSECOND}

# Betzler's er-cocoa for Contiki: the weak weight reversed, any number of retransmissions, a give-up and a Reset as
# samples, a bound of each estimator's RTO, and none of a timeout.
ER_COCOA = {
    **PUBLISHED,
    "max_estimate": 60 * SECOND,
    "sample_reset": True,
    "granularity": MICROSECOND,
    "weak_weight": F(3, 4),
    "max_weak_n": 255,
    "vbf_small": F(5, 2),
    "max_timeout": 268 * SECOND,
    "ageing": "er-cocoa",
    "forget_strong_after": 3,
    "give_up": "weak-sample",
    "final_wait": False,
}

# The two gains printed in Betzler et al. 2015 section 2.2, which Californium has.
SWAPPED = {"srtt_gain": F(1, 4), "rttvar_gain": F(1, 8)}

CALIFORNIUM = {**PUBLISHED, **SWAPPED, "max_rto": 32 * SECOND, "max_timeout": 60 * SECOND, "tick": MILLISECOND}

# The thesis backs off from 32 s to 48 s.
FULLBACKOFF2 = {"after_backoff": "maximum", "max_timeout": 60 * SECOND}

PLUS = {
    "max_timeout": 60 * SECOND,
    "max_weak_n": 1,
    "vbf_large": F(13, 10),
    "ageing": "cocoa-plus",
}

COCOA_0 = {
    "k_weak": 4,
    "weak_weight": F(1, 2),
    "max_weak_n": 255,
    "vbf_small": F(2),
    "vbf_large": F(2),
    "ageing": "cocoa-0",
    "max_timeout": 60 * SECOND,
}

PRESETS = {
    "draft-03": PUBLISHED,
    "draft-literal": {**PUBLISHED, "vbf_on": "current", "redither": True},
    "libcoap-2019": {**PUBLISHED, "vbf_on": "current", "ageing": "off"},
    "paper-2015": {**PUBLISHED, **SWAPPED, **PLUS},
    "gsrtc-on-fullbackoff2": {**FULLBACKOFF2, "weighting": "gsrtc"},
    "californium-2": {**CALIFORNIUM, "ageing": "californium-2", "granularity": MICROSECOND},
    "californium-3": {
        **CALIFORNIUM,
        "granularity": 100 * MILLISECOND,
        "min_timeout": 500 * MILLISECOND,
        "vbf_on": "dithered",
        "ageing": "californium-3",
    },
    "er-cocoa": ER_COCOA,
}

MECHANISMS = [
    ("cocoa", Cocoa, {}, PRESETS),
    ("cocoa0", Cocoa, COCOA_0, PRESETS),
    ("cocoa-plus", Cocoa, PLUS, PRESETS),
    ("cocoa-strong", Cocoa, {"max_weak_n": 0}, PRESETS),
    ("fullbackoff1-cocoa", Cocoa, {**FULLBACKOFF2, "after_backoff": "take"}, PRESETS),
    ("fullbackoff2-cocoa", Cocoa, FULLBACKOFF2, PRESETS),
    ("gsrtc", Cocoa, {"weighting": "gsrtc"}, PRESETS),
    ("cocoa-i", Cocoa, {"band": "strong", "marking": "fresh-message-id"}, PRESETS),
]
BEFORE = {
    "cocoa": [scripts.cocoa_samples],
    "cocoa0": [scripts.ageing],
    "cocoa-plus": [scripts.ageing],
    "cocoa-strong": [scripts.ageing],
    "fullbackoff1-cocoa": [scripts.after_backoff],
    "fullbackoff2-cocoa": [scripts.after_backoff],
    "gsrtc": [scripts.trusted, scripts.after_backoff],
    "cocoa-i": [scripts.moving_band],
}
