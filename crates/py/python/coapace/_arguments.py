"""Arguments as people have them: numbers of numpy, paths, ranges of seeds, mechanisms."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Iterable
from typing import Any, SupportsIndex, TypeAlias

from coapace._native import Mechanism, Scenario

#: A scenario, its name, its path, or its text.
AnyScenario: TypeAlias = "Scenario | str | os.PathLike[str]"

#: A mechanism, or its name.
AnyMechanism: TypeAlias = "str | Mechanism"

#: A number of seeds, a text such as "21-40", or the seeds themselves.
Seeds: TypeAlias = "SupportsIndex | str | Iterable[SupportsIndex]"

#: The largest seed, and the most of them.
_LARGEST, _MOST = 2**64 - 1, 2**32 - 1


def whole(name: str, value: Any, least: int = 0, most: int = _LARGEST) -> int:
    """Return a whole number, also that of numpy.

    >>> whole("jobs", True)
    1
    >>> whole("jobs", -1)
    Traceback (most recent call last):
    ValueError: jobs is -1, but must be at least 0
    """
    try:
        number = operator.index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}, but must be a whole number") from None
    if not least <= number <= most:
        raise ValueError(f"{name} is {number}, but must be at {f'least {least}' if number < least else f'most {most}'}")
    return number


def stretches(seeds: Seeds | None, first_seed: SupportsIndex = 1) -> list[tuple[int, int]] | None:
    """Return seeds as stretches without gaps: the first seed of each, and their number; None if none are given.

    >>> stretches(4), stretches("21-40"), stretches(range(3, 6)), stretches([7, 1, 2])
    ([(1, 4)], [(21, 20)], [(3, 3)], [(1, 2), (7, 1)])
    """
    first = whole("first_seed", first_seed)
    if seeds is None:
        return None
    if isinstance(seeds, str):
        read = re.fullmatch(r"\s*(\d+)\s*(?:-\s*(\d+)\s*)?", seeds)
        if read is None:
            raise ValueError(f"seeds is {seeds!r}, but must be a number, or a range such as '21-40'")
        begin, end = read.groups()
        seeds = int(begin) if end is None else range(int(begin), int(end) + 1)
    try:
        count = operator.index(seeds)  # type: ignore[arg-type]
    except TypeError:
        return _of_list(seeds, first)  # type: ignore[arg-type]
    return [(first, whole("seeds", count, 1, _MOST))]


def _of_list(seeds: Iterable[SupportsIndex], first_seed: int) -> list[tuple[int, int]]:
    try:
        several = [whole("a seed", seed) for seed in seeds]
    except TypeError:
        raise TypeError(f"seeds is {seeds!r}, but must be a number, a list or range of seeds, or a text such as '21-40'") from None
    if first_seed != 1:
        raise ValueError("first_seed goes with a number of seeds: give either it or the seeds themselves")
    if not several:
        raise ValueError("seeds has none, but must have at least 1")
    found: list[tuple[int, int]] = []
    for seed in sorted(several):
        begin, count = found[-1] if found else (seed, 0)
        if found and seed < begin + count:
            raise ValueError(f"the seed {seed} is there twice")
        if found and seed == begin + count:
            found[-1] = (begin, count + 1)
        else:
            found.append((seed, 1))
    return found


def loaded(scenario: AnyScenario) -> Scenario:
    """Return a scenario."""
    return scenario if isinstance(scenario, Scenario) else Scenario.load(scenario)


def several(scenarios: AnyScenario | Iterable[AnyScenario]) -> list[AnyScenario]:
    """Return one or more scenarios as a list."""
    if isinstance(scenarios, (Scenario, str, os.PathLike)):
        return [scenarios]
    if not isinstance(scenarios, Iterable):
        raise TypeError(f"a scenario is a Scenario, a name, a path or a text, not {scenarios!r}")
    return list(scenarios)


def name(mechanism: AnyMechanism) -> str:
    """Return the name of a mechanism."""
    return named(mechanism)[0]


def named(mechanisms: AnyMechanism | Iterable[AnyMechanism]) -> list[str]:
    """Return the names of one or more mechanisms.

    >>> named([Mechanism("cocoa:k_strong=2"), "default"])
    ['cocoa:k_strong=2', 'default']
    """
    given = list(mechanisms) if isinstance(mechanisms, Iterable) and not isinstance(mechanisms, str) else [mechanisms]
    for one in given:
        if not isinstance(one, (str, Mechanism)):
            raise TypeError(f"a mechanism is a name or a coapace.Mechanism, not {one!r}; coapace.register names a class")
    return [str(one) for one in given]
