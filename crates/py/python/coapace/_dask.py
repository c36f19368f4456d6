"""Sweeps and searches on the workers of Dask."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from coapace import _native
from coapace._extras import needed

#: The length of a task that is aimed at, in seconds: long beside the milliseconds that a task costs the scheduler, and short
#: beside the work that is lost with a worker.
_SECONDS = 3.0

#: The most units of a task.
_MOST = 1_000

#: The tasks that are under way for each thread of the cluster: one is being made, and others are at hand.
_AHEAD = 3

#: How often a task is given up by the scheduler, for workers that died with it, before the work is.
_DEATHS = 10

#: How often the number of threads is asked for, in seconds.
_LOOK = 2.0


def make(batch: str, to: str) -> tuple[int, float]:
    """Make a batch of a sweep on a worker. The worker writes it. Return the number of runs, and the seconds that they took."""
    start = time.perf_counter()
    made = _native.make_batch(batch, Path(to))
    return made, time.perf_counter() - start


def conduct(sweep: _native.Sweep, client: Any, to: Path, progress: Callable[[int, int], object]) -> None:
    """Make the missing runs of a sweep on the workers of a cluster."""
    missing, done = sweep.missing, 0

    def take(first: int, made: int) -> None:
        nonlocal done
        done += made
        progress(done, missing)

    _Tasks(client).hand_out(missing, lambda first, count: (make, sweep.batch(first, count), str(to)), take)
    left = sweep.settle()
    if left:
        raise RuntimeError(f"{left} runs are not in {to}: the workers and this process do not share that directory")


def measure(pieces: _native.Pieces) -> tuple[list[_native.Measured], float]:
    """Measure pieces of a search on a worker. Return what was measured, and the seconds that it took."""
    start = time.perf_counter()
    measured = _native.measure(pieces)
    return measured, time.perf_counter() - start


def conduct_search(search: _native.Search, client: Any, progress: Callable[[int, int], object]) -> None:
    """Measure what a search asks for on the workers of a cluster, until it is over."""
    tasks = _Tasks(client)

    def take(first: int, measured: list[_native.Measured]) -> None:
        search.tell(first, measured)
        progress(*search.progress())

    while pieces := search.ask():
        tasks.hand_out(pieces, lambda first, count: (measure, search.batch(first, count)), take)


class _Tasks:
    """Hands units of work to the workers of a cluster, several in a task. Remembers how long a unit takes."""

    def __init__(self, client: Any) -> None:
        self._distributed = needed("distributed", "dask")
        self._client = client
        self._threads, self._looked = 0, float("-inf")
        self._done, self._seconds = 0, 0.0

    def hand_out(
        self, units: int, task: Callable[[int, int], tuple[Any, ...]], take: Callable[[int, Any], object]
    ) -> None:
        """Have all units made.

        ``task`` returns a function and its arguments for some units, by the first and their number. The function returns a result and
        the seconds that it took, on a worker. ``take`` gets the first unit and the result, here.
        """
        sent = done = 0
        # The first unit of each task, their number, and how often workers died with them.
        under_way: dict[Any, tuple[int, int, int]] = {}
        results = self._distributed.as_completed(loop=self._client.loop)

        def submit(first: int, count: int, deaths: int) -> None:
            # A task that is made twice does no harm: it has the same result.
            key = f"coapace-{uuid.uuid4().hex}"
            future = self._client.submit(*task(first, count), key=key, pure=False)
            under_way[future] = (first, count, deaths)
            results.add(future)

        try:
            while done < units:
                while sent < units and len(under_way) < _AHEAD * self._count_threads():
                    count = self._aim(units - sent)
                    submit(sent, count, 0)
                    sent += count
                future = next(results)
                first, count, deaths = under_way.pop(future)
                try:
                    result, took = future.result()
                except self._distributed.KilledWorker as error:
                    if count == 1 and deaths >= _DEATHS:
                        raise RuntimeError("workers die again and again with a run, perhaps for lack of memory") from error
                    # Smaller tasks are over before the next death.
                    half = count // 2
                    for part_first, part_count in ((first, half), (first + half, count - half)):
                        if part_count:
                            submit(part_first, part_count, deaths + 1)
                    continue
                done += count
                self._done, self._seconds = self._done + count, self._seconds + took
                take(first, result)
        finally:
            self._client.cancel(list(under_way))

    def _aim(self, left: int) -> int:
        """Return the number of units of the next task.

        The first tasks have one unit each, and show how long it takes. The last ones are shorter again, so that all workers end together.
        """
        aimed = _SECONDS * self._done / self._seconds if self._seconds > 0 else 1
        share = left / (2 * self._threads)
        return max(1, min(int(aimed), _MOST, int(share)))

    def _count_threads(self) -> int:
        if time.monotonic() - self._looked > _LOOK:
            self._threads, self._looked = max(1, sum(self._client.nthreads().values())), time.monotonic()
        return self._threads
