"""Sweeps on the workers of Dask."""

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

#: The most runs of a task.
_MOST = 1_000

#: The tasks that are under way for each thread of the cluster: one is being made, and others are at hand.
_AHEAD = 3

#: How often a task is given up by the scheduler, for workers that died with it, before the sweep is.
_DEATHS = 10

#: How often the number of threads is asked for, in seconds.
_LOOK = 2.0


def make(batch: str, to: str) -> tuple[int, float]:
    """Make a batch on a worker. The worker writes it. Return the number of runs, and the seconds that they took."""
    start = time.perf_counter()
    made = _native.make_batch(batch, Path(to))
    return made, time.perf_counter() - start


def conduct(sweep: _native.Sweep, client: Any, to: Path, progress: Callable[[int, int], object]) -> None:
    """Make the missing runs of a sweep on the workers of a cluster."""
    distributed = needed("distributed", "dask")
    missing = sweep.missing
    sent, done, seconds = 0, 0, 0.0
    # The first run of each task, their number, and how often workers died with them.
    under_way: dict[Any, tuple[int, int, int]] = {}
    results = distributed.as_completed(loop=client.loop)
    threads, looked = 0, float("-inf")

    def submit(first: int, count: int, deaths: int) -> None:
        # A task that is made twice does no harm: its part has the same name and content.
        key = f"coapace-sweep-{uuid.uuid4().hex}"
        task = client.submit(make, sweep.batch(first, count), str(to), key=key, pure=False)
        under_way[task] = (first, count, deaths)
        results.add(task)

    try:
        while done < missing:
            if time.monotonic() - looked > _LOOK:
                threads, looked = max(1, sum(client.nthreads().values())), time.monotonic()
            while sent < missing and len(under_way) < _AHEAD * threads:
                # The first tasks have one run each, and show how long it takes. The last ones are shorter again, so that all
                # workers end together.
                aimed = _SECONDS * done / seconds if seconds > 0 else 1
                share = (missing - sent) / (2 * threads)
                count = max(1, min(int(aimed), _MOST, int(share)))
                submit(sent, count, 0)
                sent += count
            task = next(results)
            first, count, deaths = under_way.pop(task)
            try:
                made, took = task.result()
            except distributed.KilledWorker as error:
                if count == 1 and deaths >= _DEATHS:
                    raise RuntimeError("workers die again and again with a run, perhaps for lack of memory") from error
                # Smaller tasks are over before the next death.
                half = count // 2
                for part_first, part_count in ((first, half), (first + half, count - half)):
                    if part_count:
                        submit(part_first, part_count, deaths + 1)
                continue
            done, seconds = done + made, seconds + took
            progress(done, missing)
    finally:
        client.cancel(list(under_way))
    left = sweep.settle()
    if left:
        raise RuntimeError(f"{left} runs are not in {to}: the workers and this process do not share that directory")
