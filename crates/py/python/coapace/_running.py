"""Runs of scenarios."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import Any

from coapace import _native
from coapace._native import Scenario
from coapace._tables import Results


def run(
    scenario: Scenario | str | Iterable[Scenario | str],
    mechanisms: str | Iterable[str] | None = None,
    seeds: int | None = None,
    *,
    first_seed: int = 1,
    jobs: int | None = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> Results:
    """Run one or more scenarios with one or more mechanisms, and return the results.

    ``mechanisms`` and ``seeds`` are those of the scenario if they are not given; ``jobs`` is the number of threads, one per core
    if it is not given. ``progress`` is a function of the runs done and of all runs, or whether to show a bar; by default there
    is one in a terminal or a notebook where tqdm is installed. Equal arguments and versions give equal results.

    Raises ``ValueError`` with a line that says what is wrong. Ctrl-C ends the call at once.

    >>> results = run("lossy-lan", "fasor", seeds=1, progress=False)
    >>> len(results.runs)
    1
    """
    several = [scenario] if isinstance(scenario, (Scenario, str)) else list(scenario)
    loaded = [one if isinstance(one, Scenario) else Scenario.load(one) for one in several]
    named = [mechanisms] if isinstance(mechanisms, str) else mechanisms
    labels = None if named is None else list(named)
    if callable(progress):
        return Results(_native.run(loaded, labels, seeds, first_seed, jobs or 0, progress))
    bar = _Bar(progress)
    try:
        return Results(_native.run(loaded, labels, seeds, first_seed, jobs or 0, bar.show))
    finally:
        bar.close()


class _Bar:
    """A bar of tqdm that appears with the first news."""

    def __init__(self, wanted: bool | None) -> None:
        self._bar: Any = None
        self._wanted = wanted if wanted is not None else sys.stderr.isatty() or "ipykernel" in sys.modules

    def show(self, done: int, total: int) -> None:
        if not self._wanted:
            return
        if self._bar is None:
            try:
                from tqdm.auto import tqdm
            except ImportError:
                self._wanted = False
                return
            self._bar = tqdm(total=total, unit="run")
        self._bar.update(done - self._bar.n)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.close()
