"""Runs: results, determinism, progress, interruption."""

import os
import signal
import sys
import threading
import time

import pytest

import coapace

SMALL = coapace.Scenario.load("nb-iot").set("clients", 5)


def test_equal_arguments_give_equal_runs_on_any_number_of_threads() -> None:
    hashes = [
        coapace.run(SMALL, ["default", "ebb"], seeds=3, jobs=jobs, progress=False).runs["trace_hash"] for jobs in (1, 4)
    ]
    assert hashes[0] == hashes[1]
    assert len(set(hashes[0])) > 1


def test_seeds_begin_where_they_are_told_to() -> None:
    both = coapace.run(SMALL, "cocoa", seeds=2, progress=False).runs
    second = coapace.run(SMALL, "cocoa", seeds=1, first_seed=2, progress=False).runs
    assert second["seed"] == [2]
    assert second["trace_hash"][0] == both["trace_hash"][1]


def test_the_defaults_are_those_of_the_scenario() -> None:
    scenario = SMALL.set("defaults.seeds", 2)
    results = coapace.run(scenario, progress=False)
    assert results.cells["mechanism"] == scenario.mechanisms
    assert results.cells["runs"] == [2] * len(scenario.mechanisms)


def test_a_key_that_differs_between_scenarios_is_a_column_though_it_is_no_knob() -> None:
    both = [SMALL.set("server.sluice", sluice) for sluice in (False, True)]
    cells = coapace.run(both, "default", seeds=1, progress=False).cells
    assert cells["knob.server.sluice"] == ["false", "true"]
    ratios = coapace.rank(both, ["default", "cocoa"], seeds=1, progress=False).ratios
    assert set(ratios["knob.server.sluice"]) == {"false", "true"}


def test_several_scenarios_stand_one_after_the_other() -> None:
    results = coapace.run([SMALL, SMALL.set("clients", 7), "lossy-lan"], "default", seeds=1, progress=False)
    assert results.cells["clients"][:2] == [5, 7]
    assert results.cells["scenario"] == ["nb-iot", "nb-iot", "lossy-lan"]
    assert results.clients["cell"].count(1) == 7


def test_progress_reaches_the_number_of_runs() -> None:
    told: list[tuple[int, int]] = []
    coapace.run(SMALL, ["default", "cocoa"], seeds=3, progress=lambda done, runs: told.append((done, runs)))
    assert told[-1] == (6, 6)
    assert told == sorted(told)


def test_a_bar_shows_the_runs_where_tqdm_is_there(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("tqdm")
    coapace.run(SMALL, "default", seeds=2, progress=True)
    assert "2/2" in capsys.readouterr().err
    monkeypatch.setitem(sys.modules, "tqdm.auto", None)
    coapace.run(SMALL, "default", seeds=2, progress=True)
    assert capsys.readouterr().err == ""


def test_an_error_in_progress_ends_the_run() -> None:
    def broken(done: int, runs: int) -> None:
        raise RuntimeError(f"{done} of {runs}")

    with pytest.raises(RuntimeError, match="of 4"):
        coapace.run(SMALL, "default", seeds=4, progress=broken)


@pytest.mark.parametrize(
    ("mechanism", "sentence"),
    [("cocoaa", "did you mean cocoa"), ("cocoa:zzz=1", "zzz"), ("default+cocoa+fasor+ebb+tcp", "tcp")],
)
def test_a_wrong_mechanism_is_refused(mechanism: str, sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        coapace.run(SMALL, mechanism, seeds=1, progress=False)


def test_no_seeds_are_refused() -> None:
    with pytest.raises(ValueError, match="at least 1"):
        coapace.run(SMALL, "default", seeds=0, progress=False)


def test_other_threads_go_on_during_a_run() -> None:
    done = threading.Event()
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while not done.is_set():
            ticks += 1
            time.sleep(0.001)

    thread = threading.Thread(target=tick)
    thread.start()
    coapace.run(SMALL.set("clients", 100), "default", seeds=10, progress=False)
    done.set()
    thread.join()
    assert ticks > 1


def test_ctrl_c_ends_a_long_run() -> None:
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt):
        # Hours of work.
        coapace.run(SMALL.set("clients", 1_000), "default", seeds=100_000, progress=False)
