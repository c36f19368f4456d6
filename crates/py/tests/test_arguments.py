"""Arguments as Python people have them: numbers of numpy, paths, ranges, times; and errors without inner names."""

import datetime
from pathlib import Path
from typing import Any

import pytest

import coapace

SMALL = coapace.Scenario.load("nb-iot").set("clients", 3)


def seeds_of(seeds: Any, **terms: Any) -> list[Any]:
    return coapace.run(SMALL, "cocoa", seeds, progress=False, **terms).runs["seed"]


def test_seeds_are_a_number_a_text_a_range_or_a_list() -> None:
    numpy = pytest.importorskip("numpy")
    assert seeds_of(2) == seeds_of("2") == seeds_of(numpy.int64(2)) == [1, 2]
    assert seeds_of("21-22") == seeds_of(range(21, 23)) == seeds_of(numpy.array([22, 21])) == [21, 22]
    assert seeds_of([7, 1, 2]) == [1, 2, 7]
    assert seeds_of(numpy.uint8(1), first_seed=numpy.int32(4), jobs=numpy.int16(1)) == [4]


def test_seeds_with_gaps_make_the_runs_of_those_without() -> None:
    all_of_them = coapace.run(SMALL, ["default", "cocoa"], 4, progress=False)
    some = coapace.run(SMALL, ["default", "cocoa"], [1, 3, 4], progress=False)
    kept = [row for row in all_of_them.runs if row["seed"] != 2]
    assert [row["trace_hash"] for row in some.runs] == [row["trace_hash"] for row in kept]
    assert some.series == all_of_them.series, "the first seed alone has series"


@pytest.mark.parametrize(
    ("seeds", "error", "sentence"),
    [
        ("x", ValueError, "seeds is 'x', but must be a number, or a range such as '21-40'"),
        (1.5, TypeError, "seeds is 1.5, but must be a number, a list or range of seeds"),
        ([1, 1], ValueError, "the seed 1 is there twice"),
        ([], ValueError, "at least 1"),
        (-1, ValueError, "seeds is -1, but must be at least 1"),
        ("40-21", ValueError, "at least 1"),
        ([1, -2], ValueError, "a seed is -2, but must be at least 0"),
    ],
)
def test_other_seeds_are_refused(seeds: Any, error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence) as raised:
        seeds_of(seeds)
    assert "Terms" not in str(raised.value)


@pytest.mark.parametrize(
    ("more", "error", "sentence"),
    [
        ({"jobs": "two"}, TypeError, "jobs is 'two', but must be a whole number"),
        ({"first_seed": 4}, ValueError, "first_seed goes with a number of seeds"),
    ],
)
def test_other_numbers_are_refused(more: dict[str, Any], error: type[Exception], sentence: str) -> None:
    with pytest.raises(error, match=sentence):
        seeds_of([1, 2], **more)


def test_a_mechanism_may_be_named_by_an_object() -> None:
    cells = coapace.run(SMALL, [coapace.Mechanism("cocoa:k_strong=2"), "default"], 1, progress=False).cells
    assert cells["mechanism"] == ["cocoa:k_strong=2", "default"]
    for wrong in (3, [3], [coapace.Controller]):
        with pytest.raises(TypeError, match="a mechanism is a name or a coapace.Mechanism, not"):
            coapace.run(SMALL, wrong, 1, progress=False)  # type: ignore[arg-type]


def test_a_setting_may_be_a_number_of_numpy_a_timedelta_or_several() -> None:
    numpy = pytest.importorskip("numpy")
    for value in (numpy.int64(7), numpy.float64(7), numpy.uint8(7), 7, 7.0, "7"):
        assert SMALL.set("clients", value) == SMALL.set("clients", 7)
    assert SMALL.set("server.sluice", numpy.bool_(True)) == SMALL.set("server.sluice", True)
    delay = "network.up.radio.delay"
    for value in (datetime.timedelta(milliseconds=300), numpy.timedelta64(300, "ms"), "0.3 s", "300ms"):
        assert SMALL.set(delay, value) == SMALL.set(delay, "300 ms")
    jitter = "network.up.radio.jitter"
    for several in (["1 ms", "2 ms"], ("1 ms", datetime.timedelta(milliseconds=2))):
        assert SMALL.set(jitter, several) == SMALL.set(jitter, '["1 ms", "2 ms"]')
    assert SMALL.set("network.up.radio.loss", 1e-7) == SMALL.set("network.up.radio.loss", "0.00001 %")
    with pytest.raises(ValueError, match='did you mean "5 ms" or "5 s"'):
        SMALL.set("workload.think_time", 5)


def test_times_of_steps_are_seconds_timedeltas_or_texts() -> None:
    timeouts = set()
    for now in (1, 1.0, "1s", "1000 ms", datetime.timedelta(seconds=1)):
        mechanism = coapace.Mechanism("cocoa")
        mechanism.acknowledge(mechanism.start(0), now)
        timeouts.add(mechanism.rto)
    assert len(timeouts) == 1
    with pytest.raises(TypeError, match="a time must be seconds, a timedelta, or a text such as '2s', not 'soon'"):
        coapace.Mechanism("cocoa").start("soon")


def test_a_file_that_is_not_there_is_a_file_not_found_error(tmp_path: Path) -> None:
    results = coapace.run(SMALL, "default", 1, progress=False)
    for reading in (
        lambda: coapace.Scenario.load(tmp_path / "mine.toml"),
        lambda: coapace.run(str(tmp_path / "mine.toml"), progress=False),
        lambda: coapace.rank(tmp_path / "mine.toml", progress=False),
        lambda: coapace.Dataset(tmp_path / "sweep"),
        lambda: results.to_parquet(tmp_path / "nowhere" / "runs.parquet"),
        lambda: results.to_csv(tmp_path / "nowhere" / "runs.csv"),
        lambda: results.to_html(tmp_path / "nowhere" / "page.html"),
    ):
        with pytest.raises(FileNotFoundError) as raised:
            reading()
        assert str(tmp_path) in str(raised.value.filename)
    with pytest.raises(IsADirectoryError):
        results.to_parquet(tmp_path)
    with pytest.raises(ValueError, match="did you mean `nb-iot`"):
        coapace.Scenario.load("nb-iott")


def test_a_path_is_as_good_as_its_text(tmp_path: Path) -> None:
    path = tmp_path / "mine.toml"
    path.write_text(SMALL.to_toml())
    assert coapace.Scenario.load(path) == coapace.Scenario.load(str(path))
    assert coapace.run(path, "default", 1, progress=False).cells["scenario"] == ["mine"]
    assert coapace.rank(path, ["default", "cocoa"], 1, progress=False).standings
    with pytest.raises(TypeError, match="a scenario is a Scenario, a name, a path or a text, not 3"):
        coapace.run(3, progress=False)  # type: ignore[arg-type]
