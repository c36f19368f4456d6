"""Sweeps and searches on Dask: the same results, also when workers are killed."""

import os
import random
import signal
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import coapace
from coapace import _dask, _native

distributed = pytest.importorskip("distributed")
polars = pytest.importorskip("polars")

FEW = coapace.Scenario.load("nb-iot").set("workload.exchanges", 5)
GRID = {"clients": [2, 5, 10, 20, 40]}


def make(to: Path, seeds: int, **more: Any) -> Any:
    dataset = coapace.sweep(FEW, GRID, ["default", "cocoa"], seeds, to=to, progress=False, **more)
    return dataset.to_polars()


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster:
        yield cluster


def test_workers_make_the_rows_that_are_made_here(cluster: Any, tmp_path: Path) -> None:
    local = make(tmp_path / "local", 4)
    told: list[tuple[int, int]] = []
    with distributed.Client(cluster) as client:
        on_two = coapace.sweep(
            FEW,
            GRID,
            ["default", "cocoa"],
            4,
            to=tmp_path / "two",
            client=client,
            progress=lambda done, runs: told.append((done, runs)),
        )
        assert on_two.to_polars().equals(local)
        assert told[-1] == (40, 40)
        # Runs that are there are not sent.
        told.clear()
        make(tmp_path / "two", 4, client=client)
        assert told == []
        make(tmp_path / "grown", 2)
        assert make(tmp_path / "grown", 4, client=client).equals(local)


@pytest.mark.parametrize("workers", [1, 4])
def test_trace_hashes_are_those_of_run_whatever_the_number_of_workers(workers: int, tmp_path: Path) -> None:
    scenarios = [FEW.set("clients", clients) for clients in GRID["clients"]]
    here = coapace.run(scenarios, ["default", "cocoa"], 2, progress=False).runs["trace_hash"]
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        assert list(make(tmp_path, 2, client=client)["trace_hash"]) == here


class Elsewhere(coapace.Controller):
    """Is registered in this process alone."""

    def on_start(self, cue: coapace.Cue) -> tuple[None, float]:
        return None, 2.0

    def on_retransmit(self, exchange: None, cue: coapace.Cue) -> float:
        return 2.0

    def on_end(self, exchange: None, outcome: str, sample: coapace.Sample | None, cue: coapace.Cue) -> None:
        pass


def test_an_error_of_a_worker_is_raised_here(cluster: Any, tmp_path: Path) -> None:
    coapace.register("elsewhere", Elsewhere)
    with distributed.Client(cluster) as client, pytest.raises(ValueError, match="elsewhere"):
        coapace.sweep(FEW, {"clients": 2}, "elsewhere", 3, to=tmp_path, client=client, progress=False)


#: The Dask tasks of a test that end as if their worker had died, before others succeed.
deaths = 0


class Died(distributed.KilledWorker):  # type: ignore[misc, name-defined]
    """The error of a task whose worker died, without a worker."""

    def __init__(self) -> None:
        Exception.__init__(self)

    def __str__(self) -> str:
        return "a worker died"


def dying(batch: str, to: str) -> tuple[int, float]:
    global deaths
    deaths -= 1
    if deaths >= 0:
        raise Died
    return MAKE(batch, to)


def lost(batch: str, to: str) -> tuple[int, float]:
    return MAKE(batch, tempfile.mkdtemp(dir=to))


MAKE = _dask.make


@pytest.fixture
def client() -> Iterator[Any]:
    """A client of a worker that is a thread of this process, so that its tasks can be replaced."""
    with (
        distributed.LocalCluster(n_workers=1, threads_per_worker=1, processes=False, dashboard_address=":0") as here,
        distributed.Client(here) as client,
    ):
        yield client


def test_a_task_that_workers_die_with_is_halved_and_handed_out_again(
    client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    local = make(tmp_path / "local", 4)
    monkeypatch.setattr(_dask, "make", dying)
    monkeypatch.setattr(f"{__name__}.deaths", 6)
    assert make(tmp_path / "killed", 4, client=client).equals(local)
    monkeypatch.setattr(f"{__name__}.deaths", 10_000)
    with pytest.raises(RuntimeError, match="workers die again and again"):
        make(tmp_path / "dying", 1, client=client)


def test_workers_that_write_elsewhere_are_told(client: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_dask, "make", lost)
    with pytest.raises(RuntimeError, match="40 runs are not in .*: the workers and this process do not share"):
        make(tmp_path / "lost", 4, client=client)


@contextmanager
def killing(cluster: Any) -> Iterator[list[int]]:
    """Kill three workers of a cluster, one after another. Gives the list of those that were killed so far."""
    over = threading.Event()
    draws = random.Random(1)
    killed: list[int] = []

    def kill() -> None:
        while not over.wait(draws.uniform(0.1, 0.5)) and len(killed) < 3:
            # A worker that is killed while it starts is not started again.
            ready = {worker.name for worker in list(cluster.scheduler.workers.values())}
            nannies = [nanny for name, nanny in list(cluster.workers.items()) if name in ready]
            pids = [nanny.pid for nanny in nannies if nanny.pid and nanny.status == distributed.Status.running]
            if pids:
                killed.append(draws.choice(pids))
                os.kill(killed[-1], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    try:
        yield killed
    finally:
        over.set()
        killer.join()


def test_nothing_is_missing_and_nothing_twice_when_workers_are_killed(cluster: Any, tmp_path: Path) -> None:
    local = make(tmp_path / "local", 20)
    with distributed.Client(cluster) as client, killing(cluster):
        swept = make(tmp_path / "killed", 20, client=client)
    assert swept.equals(local)


def find(journal: Path, **more: Any) -> coapace.Search:
    # The networks of this seed are small: a search takes seconds.
    arguments: dict[str, Any] = {"scenarios": 9, "generator_seed": 11, "brackets": 1, "progress": False, **more}
    return coapace.search("default", {"ack_timeout": "1s..16s"}, journal=journal, **arguments)


@pytest.fixture(scope="module")
def journal(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The journal of a search on threads of this process."""
    path = tmp_path_factory.mktemp("search") / "local"
    find(path)
    return path.read_bytes()


@pytest.mark.parametrize("workers", [1, 4])
def test_a_search_finds_the_same_whatever_the_number_of_workers(workers: int, tmp_path: Path, journal: bytes) -> None:
    (tmp_path / "begun").write_bytes(b"".join(journal.splitlines(keepends=True)[:14]))
    with (
        distributed.LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        found = find(tmp_path / "whole", client=client)
        assert find(tmp_path / "begun", client=client).text(each=True) == found.text(each=True)
    assert (tmp_path / "whole").read_bytes() == journal and (tmp_path / "begun").read_bytes() == journal
    assert find(tmp_path / "whole").evaluations.to_dict() == found.evaluations.to_dict()


def test_ctrl_c_ends_a_search_on_workers_and_its_journal_goes_on_here(cluster: Any, tmp_path: Path, journal: bytes) -> None:
    path, ended = tmp_path / "journal", 0.0

    def stop(done: int, runs: int) -> None:
        nonlocal ended
        if path.read_bytes().count(b"\n") > 12 and not ended:
            ended = time.monotonic()
            os.kill(os.getpid(), signal.SIGINT)

    with distributed.Client(cluster) as client:
        with pytest.raises(KeyboardInterrupt):
            find(path, client=client, progress=stop)
        assert time.monotonic() - ended < 1
    kept = path.read_bytes()
    assert kept.count(b"\n") > 12 and journal.startswith(kept)
    find(path)
    assert path.read_bytes() == journal


def test_a_search_goes_on_when_workers_are_killed(cluster: Any, tmp_path: Path, journal: bytes) -> None:
    with distributed.Client(cluster) as client, killing(cluster) as killed:
        find(tmp_path / "killed", client=client)
    assert killed
    assert (tmp_path / "killed").read_bytes() == journal


def test_a_worker_tells_what_it_measured_and_how_long_it_took() -> None:
    search = _native.Search(["default"], [], ("mixed", 1, 9), 1, 1, None)
    assert search.ask() > 1
    measured, seconds = _dask.measure(search.batch(0, 1))
    assert len(measured) == 1 and seconds > 0
    search.tell(0, measured)
    assert search.progress()[0] > 0


def test_an_error_of_a_worker_ends_the_search(cluster: Any) -> None:
    coapace.register("elsewhere", Elsewhere)
    with distributed.Client(cluster) as client, pytest.raises(ValueError, match="elsewhere"):
        coapace.search("elsewhere", scenarios=9, client=client, progress=False)
