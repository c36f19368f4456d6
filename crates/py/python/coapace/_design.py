"""Designs of sweeps: which conditions are run."""

from __future__ import annotations

import datetime
import itertools
import math
import numbers
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, cast

from coapace import _native
from coapace._extras import needed

#: A value of a knob or of a key.
Setting = str | int | float | bool | datetime.timedelta | list[str] | list[float]

#: A range: its ends, numbers or texts of a number and a unit, and "log" if ratios count and not differences.
End = str | float | datetime.timedelta
Range = tuple[End, End] | tuple[End, End, Literal["log"]]

#: How conditions are chosen.
Design = Literal["grid", "random", "latin-hypercube"]

#: A condition: a value of each knob.
Condition = list[tuple[str, Setting]]


def conditions(
    grid: Mapping[str, Any] | Iterable[Mapping[str, Any]] | None,
    design: Design,
    points: int | None,
    design_seed: int,
) -> list[Condition]:
    """Return the conditions of a sweep.

    >>> conditions({"clients": [10, 50], "buffer": 2500}, "grid", None, 1)
    [[('clients', 10), ('buffer', 2500)], [('clients', 50), ('buffer', 2500)]]
    """
    if design not in ("grid", "random", "latin-hypercube"):
        raise ValueError(f"design is {design!r}, but must be 'grid', 'random' or 'latin-hypercube'")
    if grid is not None and not isinstance(grid, Mapping):
        if design != "grid" or points is not None:
            raise ValueError("a list of conditions is run as it is: it takes no design and no points")
        return [list(condition.items()) for condition in grid]
    knobs = dict(grid or {})
    if design == "grid":
        if points is not None:
            raise ValueError("a grid has all its points: leave `points` out, or name a design")
        columns = [[(knob, value) for value in _choices(knob, values)] for knob, values in knobs.items()]
        return [list(condition) for condition in itertools.product(*columns)]
    if points is None or points < 1:
        raise ValueError(f"the design {design!r} needs `points`, a number of conditions from 1")
    axes = [_axis(knob, values) for knob, values in knobs.items()]
    return [
        [(knob, axis(share)) for knob, axis, share in zip(knobs, axes, row, strict=True)]
        for row in _sample(design, points, len(axes), design_seed)
    ]


def _sample(design: Design, points: int, knobs: int, seed: int) -> list[list[float]]:
    """Return a number from 0 to 1 for each knob at each point."""
    if knobs == 0:
        return [[] for _ in range(points)]
    qmc = needed("scipy.stats.qmc", "sweep")
    draws = needed("numpy", "sweep").random.default_rng(seed)
    if design == "random":
        drawn = draws.random((points, knobs))
    else:
        drawn = qmc.LatinHypercube(d=knobs, rng=draws).random(points)
    return cast("list[list[float]]", drawn.tolist())


def _choices(knob: str, values: Any) -> list[Setting]:
    if isinstance(values, tuple):
        raise ValueError(f"{knob} is a range, of which a grid takes no values: list them, or name a design and `points`")
    several = [values] if isinstance(values, str) or not isinstance(values, Iterable) else list(values)
    if not several:
        raise ValueError(f"{knob} has no value")
    return several


def _axis(knob: str, values: Any) -> Callable[[float], Setting]:
    """Return what makes a value of a number from 0 to 1."""
    if not isinstance(values, tuple):
        choices = _choices(knob, values)
        return lambda share: choices[min(int(share * len(choices)), len(choices) - 1)]
    is_log = len(values) == 3 and values[2] == "log"
    if len(values) != 2 and not is_log:
        raise ValueError(f"{knob} is {values!r}, but a range is (low, high) or (low, high, 'log')")
    (low, dimension), (high, other) = (_number(knob, value) for value in values[:2])
    if dimension != other or not low <= high or (is_log and low <= 0):
        raise ValueError(f"{knob} is {values!r}, but a range has a low and a high end of one kind, above 0 for 'log'")
    is_whole = dimension is None and all(isinstance(value, numbers.Integral) for value in values[:2])

    def value(share: float) -> Setting:
        if is_whole and not is_log:
            return min(int(low + share * (high - low + 1)), int(high))
        number = low * math.exp(share * math.log(high / low)) if is_log else low + share * (high - low)
        if dimension is not None:
            # A whole number of the smallest unit, such as microseconds.
            return _native.amount_text(round(number), dimension)
        return round(number) if is_whole else float(f"{number:.6g}")

    return value


def _number(knob: str, value: End) -> tuple[float, str | None]:
    """Return a number, of smallest units if it has one, and what it measures."""
    if isinstance(value, datetime.timedelta):
        value = f"{value // datetime.timedelta(microseconds=1)} us"
    if not isinstance(value, str):
        return float(value), None
    found = _native.amount(value)
    if found is None:
        raise ValueError(f"{knob} has the end {value!r}, but must have a number with its unit, such as '5 %'")
    return float(found[0]), found[1]


__all__: Sequence[str] = ["Condition", "Design", "Range", "Setting", "conditions"]
