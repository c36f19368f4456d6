"""Mechanisms step by step, against the vectors of the repository."""

import csv
from pathlib import Path

import pytest

import coapace

VECTORS = Path(__file__).parents[3] / "vectors"


def test_the_default_doubles_between_one_and_one_and_a_half_ack_timeouts() -> None:
    default = coapace.Mechanism("default")
    exchange = default.start(0.0, draw=0.5)
    assert exchange.timeout == 2.5
    assert default.retransmit(exchange, 2.5) == 5.0
    assert (exchange.retransmits, exchange.is_open) == (1, True)
    default.give_up(exchange, 77.5)
    assert not exchange.is_open


def test_cocoa_learns_from_a_strong_sample_and_not_from_a_reset() -> None:
    cocoa = coapace.Mechanism("cocoa")
    assert (cocoa.rto, cocoa.srtt) == (2.0, None)
    cocoa.reset(cocoa.start(0.0), 0.6)
    assert cocoa.rto == 2.0
    cocoa.acknowledge(cocoa.start(1.0), 1.6)
    # 3 times 0.6 s is the strong estimate; half of it and half of the 2 s before (draft-ietf-core-cocoa-03 §4.2.1).
    assert cocoa.rto == pytest.approx(1.9)
    assert (cocoa.srtt, cocoa.rttvar) == (0.6, 0.3)


def test_an_exchange_that_is_over_is_refused() -> None:
    fasor = coapace.Mechanism("fasor")
    exchange = fasor.start(0.0)
    fasor.cancel(exchange, 0.1)
    for call in (fasor.cancel, fasor.reset, fasor.give_up, fasor.acknowledge):
        with pytest.raises(ValueError, match="over"):
            call(exchange, 0.2)
    with pytest.raises(ValueError, match="over"):
        fasor.retransmit(exchange, 0.2)


@pytest.mark.parametrize(("now", "draw"), [(-1.0, 0.0), (float("nan"), 0.0), (1e10, 0.0), (0.0, 1.0), (0.0, -0.1)])
def test_times_and_draws_out_of_range_are_refused(now: float, draw: float) -> None:
    with pytest.raises(ValueError, match="must be"):
        coapace.Mechanism("default").start(now, draw)


def test_a_transmission_that_was_not_made_cannot_be_answered() -> None:
    mechanism = coapace.Mechanism("fasor-token")
    exchange = mechanism.start(0.0)
    with pytest.raises(ValueError, match="no such transmission"):
        mechanism.acknowledge(exchange, 0.5, answered=1)
    mechanism.acknowledge(exchange, 0.5, answered=0)


def test_parameters_are_those_that_can_be_set() -> None:
    assert coapace.Mechanism("cocoa").parameters["k_strong"] == "4"
    assert coapace.Mechanism("cocoa:k_strong=2").parameters["k_strong"] == "2"
    for name in coapace.mechanisms():
        assert coapace.Mechanism(name).max_span(4) > 0
        assert coapace.Mechanism(name).pause(0.0) == 0.0


def test_a_mechanism_says_what_it_asks_of_the_endpoint() -> None:
    asked = {name: coapace.Mechanism(name) for name in ("cocoa", "ebb", "rtt-coap")}
    assert {name: one.marking for name, one in asked.items()} == {"cocoa": "none", "ebb": "token-on-retransmit", "rtt-coap": "option"}
    assert (asked["cocoa"].nstart, asked["rtt-coap"].nstart) == (None, 1)


def test_data_frames_are_replayed_like_text() -> None:
    pandas = pytest.importorskip("pandas")
    polars = pytest.importorskip("polars")
    steps = {"at_ms": [0, 700], "event": ["start", "ack"], "draw": [0.5, None]}
    text = "at_ms,event,draw\n0,start,0.5\n700,ack,\n"
    expected = coapace.trace("ebb", text)
    assert coapace.trace("ebb", pandas.DataFrame(steps)) == expected
    assert coapace.trace("ebb", polars.DataFrame(steps)) == expected
    with pytest.raises(ValueError, match="line 2: unknown event"):
        coapace.trace("ebb", "at_ms,event\n0,begin\n")


def runs(path: Path) -> dict[str, list[dict[str, str]]]:
    """Return the runs of a file of vectors, by the text that names the mechanism and their number."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in path.read_text().splitlines():
        if line.startswith("# mechanism "):
            lines = found.setdefault(f"{len(found)} {line.removeprefix('# mechanism ')}", [])
        elif line and not line.startswith("#"):
            lines.append(line)
    return {name: list(csv.DictReader(lines)) for name, lines in found.items()}


@pytest.mark.parametrize("path", sorted(VECTORS.glob("*.csv")), ids=lambda path: path.stem)
def test_every_vector_is_met_step_by_step(path: Path) -> None:
    for name, steps in runs(path).items():
        mechanism = coapace.Mechanism(name.split(" ", 1)[1])
        open_exchanges: dict[str, coapace.Exchange] = {}
        assert steps
        for step in steps:
            now, draw = float(step["at_ms"]) / 1e3, float(step["draw"] or 0)
            key = step.get("exchange", "")
            timeout = None
            if step["event"] == "start":
                open_exchanges[key] = mechanism.start(now, draw)
                timeout = open_exchanges[key].timeout
            elif step["event"] == "timeout":
                timeout = mechanism.retransmit(open_exchanges[key], now, draw)
            else:
                exchange = open_exchanges.pop(key)
                if step["event"] == "ack":
                    answered = int(step["answered"]) if step["answered"] else None
                    mechanism.acknowledge(exchange, now, answered, draw)
                elif step["event"] == "reset":
                    mechanism.reset(exchange, now)
                else:
                    mechanism.give_up(exchange, now)
            expected = float(step["timeout_ms"]) / 1e3 if step["timeout_ms"] else None
            told = f"{name}: {step}"
            assert (timeout is None) == (expected is None), told
            if timeout is not None:
                assert timeout == pytest.approx(expected, abs=1.1e-6), told
            assert mechanism.rto == pytest.approx(float(step["rto_ms"]) / 1e3, abs=1.1e-6), told
            if step["next_ms"]:
                assert mechanism.pause(now) == pytest.approx(float(step["next_ms"]) / 1e3, rel=1e-5, abs=1.1e-6), told
