"""Every mechanism and preset with its scripts, collected from the files of this folder."""

from importlib import import_module
from pkgutil import iter_modules

from . import __path__ as folder
from . import scripts
from .cocoa import COCOA_0, PLUS, Cocoa
from .gradient import Student
from .trace import Trace
from .units import F, duration

# A file that has mechanisms lists them in MECHANISMS: name, class, the values that differ from its class, and presets. A
# preset sets every parameter, except those that `kept` names. BEFORE of the same file has the scripts that run before the
# common one, by mechanism, or by mechanism and preset (NAME@PRESET).
# TRANSFERS has the scripts of bulk mechanisms, each a trace of its own with its luck.
MECHANISMS, BEFORE, TRANSFERS = [], {}, {}
for file in iter_modules(folder):
    if file.name not in ("catalogue", "worked"):  # these import this file
        module = import_module(f".{file.name}", __package__)
        MECHANISMS += getattr(module, "MECHANISMS", [])
        BEFORE.update(getattr(module, "BEFORE", {}))
        TRANSFERS.update(getattr(module, "TRANSFERS", {}))


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


# Scripts that run before the common one, by preset of the CoCoA family.
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
    """Returns two traces: one exchange at a time, and exchanges that overlap. A bulk mechanism has one for each transfer, too."""
    luck = 8 if "californium" in text else 7  # where a timeout is whole ticks, 7 comes too close to the next tick
    alone = Trace(text, mechanism(text), luck)
    together = Trace(text, mechanism(text), 4 if text == "tide" else luck)  # 7 comes too close to half a microsecond
    for script in [*before, scripts.whole_life]:
        script(alone)
    scripts.overlapping(together)
    transfers = []
    for script, luck in TRANSFERS.get(text, []):
        transfers.append(Trace(text, mechanism(text), luck))
        script(transfers[-1])
    return alone, together, *transfers
