"""Times are exact fractions of a millisecond."""

from fractions import Fraction as F

SECOND = F(1000)
MILLISECOND = F(1)
MICROSECOND = F(1, 1000)
LONGEST = 2**28 * MICROSECOND  # stored values saturate here
MIN_RTO = 50 * MILLISECOND  # the lower bound of an RTO that follows a path


def apart(value, threshold, by=2 * MICROSECOND):
    """Refuses a script whose decision is too close to its threshold: fixed point may decide otherwise."""
    assert value == threshold or abs(value - threshold) > by, f"{value} is too close to {threshold}"
    return value


def whole(value):
    """Rounds half up to a microsecond."""
    return F(decimal(value))


def has_passed(since, timeout):
    """Returns whether a timeout has passed that was rounded to a microsecond. Refuses a script where fixed point may round
    it to another one, or decide otherwise."""
    armed = whole(timeout)
    if abs(since - timeout) <= 2 * MICROSECOND:
        assert since == armed and abs(timeout / MICROSECOND % 1 - F(1, 2)) > F(1, 50), f"{timeout} is hard to round"
    return since >= armed


def down(value, tick):
    """Rounds down to a multiple of `tick`; a tick of a microsecond rounds nothing."""
    if tick == MICROSECOND:
        return value
    floor = value // tick * tick
    apart(value, floor)
    apart(value, floor + tick)
    return floor


def nearest(value, tick):
    """Rounds to the nearest multiple of `tick`, half up; a tick of a microsecond rounds nothing."""
    return value if tick == MICROSECOND else down(value + tick / 2, tick)


def decimal(value, places=3):
    """Rounds half up."""
    scaled = int(value * 10**places + F(1, 2))
    return f"{scaled // 10**places}.{scaled % 10**places:0{places}d}"


def duration(text):
    """Reads `2s`, `1.5s`, `500ms` or `800us`."""
    for unit, length in (("us", MICROSECOND), ("ms", MILLISECOND), ("s", SECOND)):
        if text.endswith(unit):
            return F(text[: -len(unit)]) * length
    raise ValueError(f"{text} is no time")
