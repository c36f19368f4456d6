"""Sweeps: designs, datasets, resumption; the same rows from the command and from here."""

import json
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import coapace
from coapace._design import conditions

COMMAND = os.environ.get("COAPACE_COMMAND")

polars = pytest.importorskip("polars")

FEW = coapace.Scenario.load("nb-iot").set("workload.exchanges", 5)
GRID: dict[str, Any] = {"clients": [2, 5], "buffer": [2500, 1410000]}
MECHANISMS = ["default", "cocoa"]


def make(to: Path, **more: Any) -> coapace.Dataset:
    arguments: dict[str, Any] = {"mechanisms": MECHANISMS, "seeds": 3, "progress": False, **more}
    return coapace.sweep(FEW, GRID, to=to, **arguments)


def test_a_dataset_has_a_row_for_each_run_and_the_hashes_of_run(tmp_path: Path) -> None:
    dataset = make(tmp_path / "a")
    assert len(dataset) == 24 and repr(dataset) == f"<Dataset: 24 runs in {tmp_path / 'a'}>"
    frame = dataset.to_polars()
    assert frame.shape[0] == 24 and frame["key"].n_unique() == 24
    results = coapace.run(FEW.set("clients", 5).set("buffer", 2500), MECHANISMS, seeds=3, progress=False)
    part = frame.filter((polars.col("knob.clients") == 5) & (polars.col("knob.buffer") == 2500))
    assert part["mechanism"].to_list() == ["cocoa"] * 3 + ["default"] * 3
    assert part["trace_hash"].to_list() == results.runs["trace_hash"][3:] + results.runs["trace_hash"][:3]
    assert set(frame["knob.workload.exchanges"]) == {5.0}


def test_rows_are_equal_for_any_number_of_threads_and_shards_and_after_a_stop(tmp_path: Path) -> None:
    one = make(tmp_path / "one", jobs=1).to_polars()
    assert make(tmp_path / "two", jobs=2).to_polars().equals(one)
    for shard in ("1/3", "2/3", "3/3"):
        merged = make(tmp_path / "shards", shard=shard)
    assert merged.to_polars().equals(one)
    for seeds in (1, 2, 3):
        grown = make(tmp_path / "grown", seeds=seeds)
    assert grown.to_polars().equals(one)


@pytest.mark.skipif(COMMAND is None, reason="COAPACE_COMMAND does not name the command")
def test_the_command_makes_the_same_rows_and_goes_on_where_python_stopped(tmp_path: Path) -> None:
    assert COMMAND is not None
    ours = make(tmp_path / "python").to_polars()
    named = ["--set", "workload.exchanges=5", "--set", "clients=2,5", "--set", "buffer=2500,1410000"]
    mechanisms = [word for mechanism in MECHANISMS for word in ("-m", mechanism)]
    make(tmp_path / "both", seeds=1)
    for to, made in (("command", 24), ("both", 16)):
        arguments = [COMMAND, "run", "nb-iot", *named, *mechanisms, "--seeds", "3", "--to", str(tmp_path / to)]
        done = subprocess.run(arguments, capture_output=True, text=True, check=True)
        assert f"{made} runs in " in done.stderr, done.stderr
        assert coapace.Dataset(tmp_path / to).to_polars().equals(ours)


def test_a_dataset_is_read_lazily_by_polars_and_duckdb_and_whole_by_pandas(tmp_path: Path) -> None:
    dataset = make(tmp_path / "a")
    mean = dataset.scan().group_by("mechanism").agg(polars.col("median_fct_s").mean()).sort("mechanism").collect()
    assert mean["mechanism"].to_list() == ["cocoa", "default"]
    pytest.importorskip("pyarrow")
    pandas = dataset.to_pandas()
    assert pandas["key"].to_list() == dataset.to_polars()["key"].to_list()
    pytest.importorskip("duckdb")
    assert dataset.duckdb().count("key").fetchall() == [(24,)]


def test_what_is_there_is_not_made_again(tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    make(tmp_path, seeds=2)
    make(tmp_path, seeds=3, progress=lambda done, runs: told.append((done, runs)))
    assert told[-1] == (8, 8)
    told.clear()
    make(tmp_path, seeds=3, progress=lambda done, runs: told.append((done, runs)))
    assert told == []


def test_a_list_of_conditions_is_run_as_it_is(tmp_path: Path) -> None:
    points = [{"clients": 2, "buffer": 2500}, {"clients": 3, "buffer": 5000}]
    frame = coapace.sweep(FEW, points, "default", seeds=1, to=tmp_path, progress=False).to_polars()
    assert frame.select("knob.clients", "knob.buffer").rows() == [(2.0, 2500.0), (3.0, 5000.0)]


def test_ctrl_c_keeps_what_is_over(tmp_path: Path) -> None:
    def stop(done: int, runs: int) -> None:
        if done > 10:
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        coapace.sweep(FEW, {"clients": 2}, "default", seeds=100_000, to=tmp_path, progress=stop)
    assert 10 < len(coapace.Dataset(tmp_path)) < 100_000


def test_a_run_whose_mechanism_raises_is_not_kept(tmp_path: Path) -> None:
    class Broken(coapace.Controller):
        def on_start(self, cue: coapace.Cue) -> tuple[None, float]:
            if cue.now > 1.0:
                raise RuntimeError("no more")
            return None, 2.0

        def on_retransmit(self, exchange: None, cue: coapace.Cue) -> float:
            return 2.0

        def on_end(self, exchange: None, outcome: str, sample: coapace.Sample | None, cue: coapace.Cue) -> None:
            pass

    coapace.register("broken-in-a-sweep", Broken, "raises")
    with pytest.raises(RuntimeError, match="no more"):
        coapace.sweep(FEW, {"clients": 2}, "broken-in-a-sweep", seeds=5, to=tmp_path, progress=False)
    assert len(coapace.Dataset(tmp_path)) == 0
    with pytest.raises(ValueError, match="has no runs yet"):
        coapace.Dataset(tmp_path).scan()


def test_two_sweeps_into_one_directory_at_once_are_refused(tmp_path: Path) -> None:
    refused: list[str] = []

    def again(done: int, runs: int) -> None:
        if not refused:
            with pytest.raises(ValueError) as told:
                make(tmp_path)
            refused.append(str(told.value))

    make(tmp_path, progress=again)
    assert "another sweep writes into it" in refused[0]


@pytest.mark.parametrize(
    ("grid", "more", "sentence"),
    [
        ({"cleints": 3}, {}, "did you mean `clients`"),
        ({"clients": []}, {}, "clients has no value"),
        ({"clients": (1, 5)}, {}, "clients is a range"),
        ({"clients": 3}, {"points": 5}, "leave `points` out"),
        ({"clients": 3}, {"design": "sobol"}, "'latin-hypercube'"),
        ({"clients": (1, 5)}, {"design": "random"}, "needs `points`"),
        ({"clients": (5, 1)}, {"design": "random", "points": 3}, "a low and a high end"),
        ({"clients": (0, 1, "log")}, {"design": "random", "points": 3}, "above 0"),
        ({"clients": (1, 2, 3)}, {"design": "random", "points": 3}, "a range is"),
        ({"loss": ("1 %", "5 s")}, {"design": "random", "points": 3}, "of one kind"),
        ({"loss": ("x", "5 %")}, {"design": "random", "points": 3}, "a number with its unit"),
        ([{"clients": 2}], {"design": "random", "points": 3}, "run as it is"),
        ({"clients": 2}, {"mechanisms": "cocoaa"}, "did you mean cocoa"),
        ({"clients": 2}, {"seeds": 0}, "seeds is 0, but must be at least 1"),
        ({"clients": 2}, {"seeds": [1, 3]}, "the seeds of a sweep have no gaps"),
        ({"clients": 2}, {"shard": "3/2"}, "such as 2/8"),
    ],
)
def test_what_cannot_be_swept_is_told(tmp_path: Path, grid: Any, more: dict[str, Any], sentence: str) -> None:
    with pytest.raises(ValueError, match=sentence):
        coapace.sweep(FEW, grid, to=tmp_path, **{"mechanisms": "default", "seeds": 1, "progress": False, **more})


def test_a_folder_that_is_missing_and_one_without_runs_are_told_apart(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="there is no dataset"):
        coapace.Dataset(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is no dataset: there is no sweep.json in it"):
        coapace.Dataset(tmp_path)


def test_amounts_have_columns_of_numbers_in_base_units(tmp_path: Path) -> None:
    grid = {"network.up.radio.delay": ["0.05 s", "1 s"], "network.up.radio.loss": "5 %", "errors": ["none", "low"]}
    frame = coapace.sweep(FEW.set("clients", 2), grid, "default", seeds=1, to=tmp_path, progress=False).to_polars()
    assert sorted(set(frame["number.network.up.radio.delay"])) == [0.05, 1.0]
    assert set(frame["knob.network.up.radio.delay"]) == {"50 ms", "1 s"}
    assert set(frame["number.network.up.radio.loss"]) == {0.05}
    assert not any(column in frame.columns for column in ("number.errors", "number.clients"))


def test_designs_are_repeatable_and_a_latin_hypercube_has_a_point_in_every_slice() -> None:
    pytest.importorskip("scipy")
    knobs = {"clients": (1, 100), "loss": ("1 %", "20 %"), "rate": (0.001, 1.0, "log"), "errors": ["none", "high"], "b": 7}
    for design in ("random", "latin-hypercube"):
        drawn = conditions(knobs, design, 20, 1)
        assert drawn == conditions(knobs, design, 20, 1)
        assert drawn != conditions(knobs, design, 20, 2)
        for condition in map(dict, drawn):
            assert isinstance(condition["clients"], int) and 1 <= condition["clients"] <= 100
            number, unit = str(condition["loss"]).split(" ")
            assert unit == "%" and 1 <= float(number) <= 20
            assert isinstance(condition["rate"], float) and 0.001 <= condition["rate"] <= 1
            assert condition["errors"] in ("none", "high") and condition["b"] == 7
    slices = sorted((int(dict(condition)["clients"]) - 1) // 5 for condition in drawn)  # type: ignore[arg-type]
    assert slices == list(range(20))
    rates = [float(dict(condition)["rate"]) for condition in drawn]  # type: ignore[arg-type]
    assert sum(rate < 0.0316 for rate in rates) == 10, "half of the ratios"
    assert conditions({}, "random", 2, 1) == [[], []], "a scenario as it is"
    seconds = (timedelta(seconds=1), timedelta(seconds=5))
    assert conditions({"delay": seconds}, "random", 3, 1) == conditions({"delay": ("1 s", "5 s")}, "random", 3, 1)


def test_a_design_without_scipy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.stats.qmc", None)
    with pytest.raises(ImportError, match=r"pip install 'coapace\[sweep\]'"):
        conditions({"clients": (1, 5)}, "random", 3, 1)


def test_the_manifest_says_what_the_parts_are_of(tmp_path: Path) -> None:
    make(tmp_path)
    manifest = json.loads((tmp_path / "sweep.json").read_text())
    assert manifest["scenario"] == "nb-iot" and manifest["plans"][0]["mechanisms"] == MECHANISMS
    assert manifest["columns"][0] == ["key", "text"]
