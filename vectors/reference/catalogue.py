"""Every mechanism and preset, in the order of the registry, with its scripts."""

from . import scripts
from .cocoa import COCOA_0, FULLBACKOFF2, PLUS, PRESETS, Cocoa
from .eifel import Eifel
from .fasor import Fasor
from .fullbackoff import FullBackoff
from .gradient import Gradient, Student
from .peak_hopper import PeakHopper
from .rtt_coap import RttCoap
from .timers import BasicRto, Default, LinuxRto
from .trace import Trace
from .units import MICROSECOND, MILLISECOND, SECOND, F, duration

CONTIKI_BACKOFF = {
    "ack_timeout": 3 * SECOND,
    "max_rto": 268 * SECOND,
    "final_wait": False,
}
CALIFORNIUM_LINUX = {
    "rttvar": "linux",
    "min_rto": 500 * MILLISECOND,
    "max_rto": 32 * SECOND,
    "keep_backoff": False,
    "tick": MILLISECOND,
}
CALIFORNIUM_PEAK_HOPPER = {
    "rise": "californium-3",
    "granularity": 50 * MILLISECOND,
    "ack_random_factor": F(1),
    "keep_backoff": False,
    "min_rto": 500 * MILLISECOND,
    "max_rto": 32 * SECOND,
    "max_b": 1,
    "tick": MILLISECOND,
}
CONTIKI_EIFEL = {
    "min_rto": MICROSECOND,
    "first_sample": "zero",
    "tick": 7813 * MICROSECOND,
    "redither": True,
    "max_rto": 268 * SECOND,
    "final_wait": False,
}
FASOR_DRAFT = {"min_rto": MICROSECOND, "give_up": "keep"}
THESIS = {**FASOR_DRAFT, "slow_dither": True}
FASOR_PRESETS = {
    "draft-02": FASOR_DRAFT,
    "libcoap-2019": THESIS,
    "slow": {**THESIS, "variant": "slow", "initial_k": 4},
    "fast-slow": {**THESIS, "variant": "fast-slow", "initial_k": 4},
}

# Name, class, the values that differ from its class, and presets. A preset sets every parameter, except those that `kept`
# names.
MECHANISMS = [
    ("default", Default, {}, {"rfc7252": {}, "erbium": {"ack_timeout": 3 * SECOND, "final_wait": False}}),
    ("fullbackoff1", FullBackoff, {}, {"contiki": CONTIKI_BACKOFF}),
    ("fullbackoff2", FullBackoff, {"decay": "halve"}, {"contiki": CONTIKI_BACKOFF}),
    ("gst-coap", FullBackoff, {"decay": "accelerate"}, {"contiki": CONTIKI_BACKOFF}),
    ("linux-rto", LinuxRto, {}, {"rfc6298": {"initial_rto": 1 * SECOND}, "californium-3": CALIFORNIUM_LINUX}),
    ("basic-rto", BasicRto, {}, {"californium-3": {"tick": MILLISECOND}}),
    ("peak-hopper", PeakHopper, {}, {"californium-3": CALIFORNIUM_PEAK_HOPPER}),
    ("coap-eifel", Eifel, {}, {"contiki": CONTIKI_EIFEL}),
    ("cocoa", Cocoa, {}, PRESETS),
    ("cocoa0", Cocoa, COCOA_0, PRESETS),
    ("cocoa-plus", Cocoa, PLUS, PRESETS),
    ("cocoa-strong", Cocoa, {"max_weak_n": 0}, PRESETS),
    ("fullbackoff1-cocoa", Cocoa, {**FULLBACKOFF2, "after_backoff": "take"}, PRESETS),
    ("fullbackoff2-cocoa", Cocoa, FULLBACKOFF2, PRESETS),
    ("gsrtc", Cocoa, {"weighting": "gsrtc"}, PRESETS),
    ("cocoa-i", Cocoa, {"band": "strong", "marking": "fresh-message-id"}, PRESETS),
    ("cocoa-plus-plus", Gradient, {}, {"student-contiki": {}}),
    ("fasor", Fasor, {}, FASOR_PRESETS),
    ("fasor-token", Fasor, {"marked": True}, FASOR_PRESETS),
    ("fasor-option", Fasor, {"marked": True}, FASOR_PRESETS),
    ("rtt-coap", RttCoap, {}, {}),
]


def kept(name, preset, values):
    """Returns the parameters that a preset does not change: how the mechanism decays or is marked, that CocoaStrong
    takes no weak sample, and all differences between the first CoCoA and CoCoA+, which were published together."""
    names = {"decay", "marked"}
    if preset == "paper-2015" and values == COCOA_0:
        # Parameters that CoCoA+ has and the first CoCoA does not have their values in Cocoa.
        return {key: getattr(Cocoa, key) for key in PLUS} | values
    if preset in ("californium-2", "californium-3") and values.get("max_weak_n") == 0:
        names.add("max_weak_n")
    return {key: value for key, value in values.items() if key in names}


def mechanism(text):
    """Returns the mechanism of `NAME:preset=PRESET,parameter=value`."""
    name, _, settings = text.partition(":")
    settings = dict(setting.split("=") for setting in settings.split(",") if setting)
    _, kind, values, presets = next(entry for entry in MECHANISMS if entry[0] == name)
    preset = settings.pop("preset", None)
    if preset == "student-contiki":
        return Student()
    if preset is not None:
        values = {**presets[preset], **kept(name, preset, values)}
    return kind(**{**values, **{key: read(kind, key, value) for key, value in settings.items()}})


def read(kind, key, text):
    """Returns the value of a parameter: a switch, a word, a time or a number."""
    usual = getattr(kind, key)
    if isinstance(usual, bool):
        return text == "on"
    if isinstance(usual, str):
        return text
    return duration(text) if text[-1] == "s" else F(text)


# Scripts that run before the common one: by mechanism, by mechanism and preset, and by preset of the CoCoA family.
BEFORE = {
    "fullbackoff1": [scripts.full_backoff],
    "fullbackoff2": [scripts.full_backoff],
    "gst-coap": [scripts.full_backoff],
    "linux-rto@californium-3": [scripts.deviations],
    "basic-rto": [scripts.deviations],
    "peak-hopper": [scripts.peaks, scripts.small_peak],
    "coap-eifel": [scripts.both_gains],
    "cocoa": [scripts.cocoa_samples],
    "cocoa0": [scripts.ageing],
    "cocoa-plus": [scripts.ageing],
    "cocoa-strong": [scripts.ageing],
    "fullbackoff1-cocoa": [scripts.after_backoff],
    "fullbackoff2-cocoa": [scripts.after_backoff],
    "gsrtc": [scripts.trusted, scripts.after_backoff],
    "cocoa-i": [scripts.moving_band],
    "cocoa-plus-plus": [scripts.gradients],
    "cocoa-plus-plus@student-contiki": [scripts.groups],
    "fasor": [scripts.fasor_samples],
    "fasor-token": [scripts.fasor_samples],
    "fasor-option": [scripts.fasor_samples],
    "rtt-coap": [scripts.regions],
}
BEFORE_IN_COCOA = {
    "draft-literal": [scripts.ageing],
    "paper-2015": [scripts.ageing],
    "gsrtc-on-fullbackoff2": [scripts.trusted, scripts.after_backoff],
    "californium-2": [scripts.ageing],
    "californium-3": [scripts.ageing],
    "er-cocoa": [scripts.ageing, scripts.forgetting],
}


def traces():
    """Yields the traces of each mechanism and of each of its presets. A preset that makes several relatives of CoCoA
    equal has one trace."""
    for name, kind, values, presets in MECHANISMS:
        yield lives(name, BEFORE.get(name, []))
        for preset in presets:
            if kind is Cocoa and name != "cocoa" and not kept(name, preset, values):
                continue
            own = BEFORE.get(f"{name}@{preset}", BEFORE.get(name, []))
            yield lives(f"{name}:preset={preset}", BEFORE_IN_COCOA.get(preset, []) if kind is Cocoa else own)


def lives(text, before):
    """Returns two traces: one exchange at a time, and exchanges that overlap."""
    luck = 8 if "californium" in text else 7  # where a timeout is whole ticks, 7 comes too close to the next tick
    alone, together = Trace(text, mechanism(text), luck), Trace(text, mechanism(text), luck)
    for script in [*before, scripts.whole_life]:
        script(alone)
    scripts.overlapping(together)
    return alone, together
