"""Runs of scenarios, papers, pairs and rankings."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, SupportsIndex, TypeAlias

from coapace import _native
from coapace._arguments import AnyMechanism, AnyScenario, Seeds, loaded, name, named, several, stretches, whole
from coapace._native import Scenario
from coapace._results import Coexistence, Ranking, Reproduction, Results
from coapace._tables import Table

#: A function of the runs done and of all runs, whether to show a bar, or None: a bar in terminals and notebooks.
Progress: TypeAlias = "bool | Callable[[int, int], object] | None"


def run(
    scenario: AnyScenario | Iterable[AnyScenario],
    mechanisms: AnyMechanism | Iterable[AnyMechanism] | None = None,
    seeds: Seeds | None = None,
    *,
    first_seed: SupportsIndex = 1,
    jobs: SupportsIndex | None = None,
    progress: Progress = None,
) -> Results:
    """Run one or more scenarios with one or more mechanisms, and return the results.

    ``mechanisms`` and ``seeds`` are those of the scenario if they are not given. ``seeds`` is their number, a text such as ``"21-40"``, or
    the seeds themselves, as a list or a range. ``jobs`` is the number of threads, one per core
    if it is not given. ``progress`` is a function of the runs done and of all runs, or whether to show a bar; by default there
    is one in a terminal or a notebook where tqdm is installed. Equal arguments and versions give equal results.

    Raises ``ValueError`` with a line that says what is wrong, and ``FileNotFoundError`` for a file that is not there. Ctrl-C ends the
    call at once.

    >>> results = run("lossy-lan", "fasor", seeds=1, progress=False)
    >>> len(results.runs)
    1
    """
    scenarios = [loaded(one) for one in several(scenario)]
    names = None if mechanisms is None else named(mechanisms)
    with _settings(seeds, first_seed, jobs, progress) as run_settings:
        return Results(_native.run(scenarios, names, run_settings))


def reproduce(
    key: str,
    *,
    quick: bool = False,
    seeds: Seeds | None = None,
    mechanisms: AnyMechanism | Iterable[AnyMechanism] = (),
    first_seed: SupportsIndex = 1,
    jobs: SupportsIndex | None = None,
    progress: Progress = None,
) -> Reproduction:
    """Run the experiments of a paper, and return what it published beside what is measured.

    ``key`` is one of ``papers()``. ``quick`` takes about a minute on two cores: few seeds, and shorter runs where the paper's are
    long. ``mechanisms`` are run in addition to the paper's, under all its conditions.

    >>> sorted(papers())[:2]
    ['ancillotti2018', 'betzler2015']
    """
    if quick and seeds is not None:
        raise ValueError("quick has its own number of seeds: give quick or seeds")
    with _settings(seeds, first_seed, jobs, progress) as run_settings:
        return Reproduction(_native.reproduce(key, quick, named(mechanisms), run_settings))


def papers() -> dict[str, str]:
    """Return the papers that can be reproduced: the source of each by its key.

    >>> "raitahila2019" in papers()
    True
    """
    return dict(_native.papers())


def coexist(
    scenario: AnyScenario = "coexistence",
    mechanisms: AnyMechanism | Iterable[AnyMechanism] | None = None,
    seeds: Seeds | None = None,
    *,
    first_seed: SupportsIndex = 1,
    jobs: SupportsIndex | None = None,
    progress: Progress = None,
) -> Coexistence:
    """Let every two mechanisms share one bottleneck, half of the clients each, and return who takes how much.

    ``mechanisms`` are all over UDP if none are given, or all for bodies if every client transfers one, and ``seeds`` 3.

    >>> scenario = Scenario.load("coexistence").set("clients", 10).set("workload.duration", "100 s")
    >>> shared = coexist(scenario, ["default", "cocoa"], seeds=1, progress=False)
    >>> shared.pairs["rival"]
    ['default', 'cocoa', 'default', 'cocoa']
    """
    names = [] if mechanisms is None else named(mechanisms)
    with _settings(seeds, first_seed, jobs, progress) as run_settings:
        return Coexistence(_native.coexist(loaded(scenario), names, run_settings))


def rank(
    suite: AnyScenario | Iterable[AnyScenario] = "published",
    mechanisms: AnyMechanism | Iterable[AnyMechanism] | None = None,
    seeds: Seeds | None = None,
    *,
    first_seed: SupportsIndex = 1,
    jobs: SupportsIndex | None = None,
    progress: Progress = None,
) -> Ranking:
    """Compare mechanisms over many conditions, and return which one to use, and how far each is from the best of every condition.

    ``suite`` is one or more of: a suite (``published``, ``bottleneck``, ``mesh``, ``lossy``), a scenario, or the file of either.
    ``mechanisms`` are all over UDP if none are given. At least one has to be published and dithered: the others are measured by it.

    >>> ranking = rank("lossy-lan", ["default", "fasor"], seeds=2, progress=False)
    >>> sorted(ranking.standings["mechanism"])
    ['default', 'fasor']
    """
    entries = [one if isinstance(one, Scenario) else os.fspath(one) for one in several(suite)]
    names = [] if mechanisms is None else named(mechanisms)
    with _settings(seeds, first_seed, jobs, progress) as run_settings:
        return Ranking(_native.rank(entries, names, run_settings))


def frames(
    scenario: AnyScenario, mechanism: AnyMechanism, seed: SupportsIndex = 1, *, limit: SupportsIndex = 1_000_000
) -> Table:
    """Run a scenario once, and return a row for each event of its packets, and of the frames of a mesh.

    A row has ``time_s``, ``event``, the ``hop`` with its ends ``from`` and ``to``, the packet's ``source`` and ``destination``, its
    ``bytes``, ``queue_bytes`` after the event, the ``exchange`` and ``transmission``, and of a CoAP message over UDP its ``type``,
    ``code``, ``message_id`` and ``token``. If there are more than ``limit`` events, the first are returned, with a ``UserWarning``.

    >>> events = frames("lossy-lan", "default")
    >>> [events[column][0] for column in ("event", "type", "code", "transmission")]
    ['sent', 'CON', 'GET', 0]
    """
    most = whole("limit", limit)
    table, events = _native.frames(loaded(scenario), name(mechanism), whole("seed", seed), most)
    if events > len(table):
        warnings.warn(f"the first {most} of {events} events; a larger limit returns more", stacklevel=2)
    return Table(table)


@contextmanager
def _settings(
    seeds: Seeds | None, first_seed: SupportsIndex, jobs: SupportsIndex | None, progress: Progress
) -> Iterator[_native.RunSettings]:
    """Return the settings of the runs for the native calls, and close the bar of progress afterwards."""
    asked, first, threads = stretches(seeds, first_seed), whole("first_seed", first_seed), whole("jobs", jobs or 0)
    bar = _Bar(None if callable(progress) else progress)
    report = progress if callable(progress) else bar.show
    try:
        yield {"seeds": asked, "first_seed": first, "jobs": threads, "progress": report}
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
