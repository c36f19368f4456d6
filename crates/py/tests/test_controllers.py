"""Mechanisms written in Python, in the simulator."""

import os
import signal
import threading
import time
import weakref
from typing import Any

import pytest

import coapace
from coapace import Controller, Cue, Sample

SCENARIO = coapace.Scenario.load("nb-iot").set("clients", 20).set("buffer", 2500).set("errors", "medium")


class Rfc7252(Controller):
    """The timer of RFC 7252 §4.2, written again."""

    max_timeout = 60.0
    rto = 2.0

    def on_start(self, cue: Cue) -> tuple[Any, float]:
        return [cue, self.rto], cue.dither(self.rto)

    def on_retransmit(self, exchange: Any, cue: Cue) -> float:
        exchange[1] *= 2
        timeout: float = exchange[0].dither(exchange[1])
        return timeout

    def on_end(self, exchange: Any, outcome: str, sample: Sample | None, cue: Cue) -> None:
        assert (sample is not None) == (outcome == "acked")


def hashes(mechanism: str, seeds: int = 3, jobs: int | None = None) -> list[object]:
    return list(coapace.run(SCENARIO, mechanism, seeds=seeds, jobs=jobs, progress=False).runs["trace_hash"])


def test_the_default_written_in_python_makes_the_runs_of_its_twin() -> None:
    coapace.register("py-rfc7252", Rfc7252)
    assert "py-rfc7252" in coapace.mechanisms()
    assert hashes("py-rfc7252") == hashes("default")
    assert hashes("py-rfc7252", jobs=4) == hashes("py-rfc7252", jobs=1)


def test_it_is_compared_with_all_others_and_shares_a_network_with_them() -> None:
    coapace.register("py-rfc7252", Rfc7252)
    results = coapace.run(SCENARIO, ["default", "py-rfc7252", "py-rfc7252+cocoa"], seeds=1, progress=False)
    assert results.cells["median_fct_s"][0] == results.cells["median_fct_s"][1]
    assert "share.py-rfc7252" in results.cells.columns


def test_a_name_may_be_given_to_another_class_but_not_that_of_a_mechanism_of_coapace() -> None:
    class Slow(Rfc7252):
        rto = 9.0

    coapace.register("py-changing", Rfc7252)
    before = hashes("py-changing", seeds=1)
    coapace.register("py-changing", Slow)
    assert hashes("py-changing", seeds=1) != before
    for name in ("cocoa", "tcp", "Upper", "a b", ""):
        with pytest.raises(ValueError):
            coapace.register(name, Rfc7252)


def test_a_class_without_the_methods_or_with_another_marking_is_refused() -> None:
    with pytest.raises(TypeError, match="on_start"):
        coapace.register("py-wrong", int)  # type: ignore[arg-type]

    class Marked(Rfc7252):
        marking = "loud"

    with pytest.raises(ValueError, match="marking is \"loud\", but must be none or token"):
        coapace.register("py-wrong", Marked)

    class Instant(Rfc7252):
        max_timeout = 0.0

    with pytest.raises(ValueError, match="max_timeout must be at least 1 µs"):
        coapace.register("py-wrong", Instant)
    assert "py-wrong" not in coapace.mechanisms()


def test_an_exception_in_a_step_is_raised_by_the_run() -> None:
    class Broken(Rfc7252):
        def on_retransmit(self, exchange: Any, cue: Cue) -> float:
            raise LookupError("no idea")

    class Negative(Rfc7252):
        def on_start(self, cue: Cue) -> tuple[Any, float]:
            return None, -1.0

    class Single(Rfc7252):
        def on_start(self, cue: Cue) -> tuple[Any, float]:
            return 2.0  # type: ignore[return-value]

    for broken, error, sentence in [
        (Broken, LookupError, "no idea"),
        (Negative, ValueError, "the timeout is -1"),
        (Single, TypeError, "on_start must return"),
    ]:
        coapace.register("py-broken", broken)
        with pytest.raises(error, match=sentence):
            hashes("py-broken")
        with pytest.raises(error, match=sentence):
            mechanism = coapace.Mechanism("py-broken")
            mechanism.retransmit(mechanism.start(0.0), 2.0)
    # Nothing of it is left for the next run.
    assert hashes("default", seeds=1)


def test_a_marking_tells_the_transmission_that_was_answered() -> None:
    answered: list[int | None] = []

    class Marked(Rfc7252):
        marking = "token"

        def on_end(self, exchange: Any, outcome: str, sample: Sample | None, cue: Cue) -> None:
            if sample is not None:
                answered.append(sample.answered)
                assert sample.unambiguous is not None
                assert sample.since_last <= sample.since_first

    coapace.register("py-marked", Marked)
    hashes("py-marked", seeds=1)
    assert set(answered) >= {0, 1}


def test_what_it_learns_is_what_the_next_exchange_starts_from() -> None:
    class Last(Rfc7252):
        def on_end(self, exchange: Any, outcome: str, sample: Sample | None, cue: Cue) -> None:
            if sample is not None and sample.unambiguous is not None:
                self.rto = 2 * sample.unambiguous
                self.srtt = sample.unambiguous

    coapace.register("py-last", Last)
    mechanism = coapace.Mechanism("py-last")
    mechanism.acknowledge(mechanism.start(0.0), 0.7)
    assert (mechanism.rto, mechanism.srtt) == (1.4, 0.7)
    assert mechanism.start(1.0).timeout == 1.4


def test_whole_microseconds_and_bits_are_exact() -> None:
    class Exact(Rfc7252):
        def on_start(self, cue: Cue) -> tuple[Any, float]:
            assert (cue.now_us, cue.draw_bits) == (round(cue.now * 1e6), cue.draw * 2**32)
            return super().on_start(cue)

        def on_end(self, exchange: Any, outcome: str, sample: Sample | None, cue: Cue) -> None:
            if sample is not None:
                assert sample.since_first_us == round(sample.since_first * 1e6)
                assert sample.since_last_us == round(sample.since_last * 1e6)

    coapace.register("py-exact", Exact)
    assert hashes("py-exact", seeds=1) == hashes("default", seeds=1)


def test_whoever_does_not_wait_after_the_last_retransmission_gives_up_earlier() -> None:
    class Hasty(Rfc7252):
        final_wait = False

    coapace.register("py-rfc7252", Rfc7252)
    coapace.register("py-hasty", Hasty)
    scenario = SCENARIO.set("clients.max_retransmit", 1).set("errors", "high")
    runs = coapace.run(scenario, ["py-rfc7252", "py-hasty"], seeds=1, progress=False).runs
    assert runs["given_up"][1] != runs["given_up"][0] or runs["trace_hash"][1] != runs["trace_hash"][0]


def test_a_class_that_is_stepped_outlives_runs_and_is_forgotten_with_its_mechanism() -> None:
    made: list[weakref.ref[Any]] = []

    class Follower(Rfc7252):
        def __init__(self) -> None:
            made.append(weakref.ref(self))

        def on_end(self, exchange: Any, outcome: str, sample: Sample | None, cue: Cue) -> None:
            assert exchange[1] == 2.0 and sample is not None
            self.rto = 3 * sample.since_first

    coapace.register("py-rfc7252", Rfc7252)
    coapace.register("py-follower", Follower)
    stepped = coapace.Mechanism("py-follower")
    exchange = stepped.start(0.0)
    coapace.run(SCENARIO, "py-rfc7252", seeds=1, progress=False)
    stepped.acknowledge(exchange, 1.5)
    assert stepped.start(2.0).timeout == stepped.rto == 4.5
    assert made[0]() is not None
    del stepped
    assert made[0]() is None


def test_a_class_may_step_another_mechanism_and_its_exceptions_are_told() -> None:
    class Wrapper(Rfc7252):
        def on_start(self, cue: Cue) -> tuple[Any, float]:
            coapace.Mechanism("cocoa").start(cue.now)
            raise RuntimeError("after the step of the other")

    coapace.register("py-wrapper", Wrapper)
    with pytest.raises(RuntimeError, match="after the step"):
        coapace.Mechanism("py-wrapper").start(0.0)
    with pytest.raises(RuntimeError, match="after the step"):
        coapace.trace("py-wrapper", "at_ms,event\n0,start\n")


def test_one_thread_calls_a_class_whatever_the_number_of_threads_is() -> None:
    callers = set()

    class Watched(Rfc7252):
        def on_start(self, cue: Cue) -> tuple[Any, float]:
            callers.add(threading.get_ident())
            return super().on_start(cue)

    coapace.register("py-watched", Watched)
    mechanisms = ["py-watched", "default", "py-watched+cocoa", "cocoa"]
    results = coapace.run(SCENARIO, mechanisms, seeds=3, jobs=4, progress=False)
    assert len(callers) == 1
    assert results.cells["mechanism"] == mechanisms, "cells keep their order"
    assert results.runs["trace_hash"][:3] == results.runs["trace_hash"][3:6]


def test_ctrl_c_ends_a_run_of_a_class_and_other_threads_go_on_meanwhile() -> None:
    coapace.register("py-rfc7252", Rfc7252)
    ended = threading.Event()
    ticks = 0

    def tick() -> None:
        nonlocal ticks
        while not ended.is_set():
            ticks += 1
            time.sleep(0.001)

    ticking = threading.Thread(target=tick)
    ticking.start()
    threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT)).start()
    try:
        with pytest.raises(KeyboardInterrupt):
            # Hours of work.
            coapace.run(SCENARIO.set("clients", 1_000), "py-rfc7252", seeds=10_000, progress=False)
    finally:
        ended.set()
        ticking.join()
    assert ticks > 1
