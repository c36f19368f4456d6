"""The events of one run."""

import warnings

import pytest

import coapace

SCENARIO = coapace.Scenario.load("nb-iot").set("clients", 5).set("buffer", 2500)


def test_each_request_of_a_run_is_an_event_with_its_header() -> None:
    events = coapace.frames(SCENARIO, "default", seed=2)
    sent = sum(
        (event, code) == ("sent", "GET") for event, code in zip(events["event"], events["code"], strict=True)
    )
    runs = coapace.run(SCENARIO, "default", seeds=1, first_seed=2, progress=False).runs
    assert [sent] == runs["requests_sent"]
    assert {"sent", "queued", "delivered"} <= set(events["event"])
    assert {"CON", "ACK"} <= set(events["type"])
    assert {"up.radio", "down.radio", None} <= set(events["hop"])
    assert events["time_s"] == sorted(events["time_s"], key=lambda time: time if isinstance(time, float) else 0)


def test_more_events_than_the_limit_are_told() -> None:
    with pytest.warns(UserWarning, match="the first 10 of [0-9]+ events; a larger limit returns more"):
        events = coapace.frames("lossy-lan", "default", limit=10)
    assert len(events) == 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        coapace.frames("lossy-lan", "default")


def test_what_cannot_be_run_is_refused() -> None:
    with pytest.raises(ValueError, match="did you mean cocoa"):
        coapace.frames(SCENARIO, "cocoaa")


def test_series_are_of_the_first_seed() -> None:
    results = coapace.run(SCENARIO, ["default", "cocoa"], seeds=2, first_seed=3, progress=False)
    series = results.series
    assert set(series["seed"]) == {3} and set(series["mechanism"]) == {"default", "cocoa"}
    assert set(series["quantity"]) == {"rto_s", "queue_bytes"}
    assert "client 1" in series["name"] and "down.radio" in series["name"]
    assert set(series["cell"]) == {0, 1}
    assert all(isinstance(value, float) and value >= 0 for value in series["value"])
