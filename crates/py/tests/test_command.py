"""The command and the package make equal runs, with equal rows and sentences."""

import csv
import os
import subprocess
from pathlib import Path

import pytest

import coapace

COMMAND = os.environ.get("COAPACE_COMMAND")

pytestmark = pytest.mark.skipif(COMMAND is None, reason="COAPACE_COMMAND does not name the command")


def told(*arguments: str) -> str:
    assert COMMAND is not None
    return subprocess.run([COMMAND, *arguments], capture_output=True, text=True, check=True).stdout


def assert_equal_rows(csv_of_command: str, table: coapace.Table) -> None:
    rows = list(csv.DictReader(csv_of_command.splitlines()))
    assert rows and list(rows[0]) == table.columns
    for column, values in table.to_dict().items():
        if column == "commit":
            continue
        for row, value in zip(rows, values, strict=True):
            if isinstance(value, float):
                assert float(row[column]) == pytest.approx(value, abs=1e-6), column
            else:
                written = str(value).lower() if isinstance(value, bool) else str(value)
                assert row[column] == ("" if value is None else written), column


@pytest.mark.parametrize("each", [True, False])
def test_rows_of_the_command_are_those_of_the_package(each: bool) -> None:
    named = ["-m", "default", "-m", "ebb", "-m", "tcp"]
    options = ["--set", "clients=5", "--seeds", "3", "--format", "csv", "--quiet", *(["--each"] if each else [])]
    scenario = coapace.Scenario.load("nb-iot").set("clients", 5)
    results = coapace.run(scenario, ["default", "ebb", "tcp"], seeds=3, progress=False)
    assert_equal_rows(told("run", "nb-iot", *named, *options), results.runs if each else results.cells)


def test_a_scenario_written_by_the_package_is_that_of_the_command(tmp_path: Path) -> None:
    path = tmp_path / "nb-iot.toml"
    path.write_text(coapace.Scenario.load("nb-iot").set("clients", 5).set("errors", "low").to_toml())
    options = ["-m", "default", "--seeds", "1", "--format", "csv", "--quiet"]
    written = told("run", str(path), *options)
    assert written == told("run", "nb-iot", "--set", "clients=5", "--set", "errors=low", *options)


def test_reproductions_have_the_rows_and_the_summary_of_the_command() -> None:
    options = ["raitahila2019", "--seeds", "1", "-m", "ebb", "--quiet"]
    paper = coapace.reproduce("raitahila2019", seeds=1, mechanisms=["ebb"], progress=False)
    assert_equal_rows(told("reproduce", *options, "--format", "csv"), paper.cells)
    assert_equal_rows(told("reproduce", *options, "--format", "csv", "--orders"), paper.orders)
    assert told("reproduce", *options).endswith(paper.summary + "\n")


def test_pairs_have_the_rows_and_the_sentences_of_the_command() -> None:
    settings = [("clients", "10"), ("workload.duration", "100 s")]
    options = [word for key, value in settings for word in ("--set", f"{key}={value}")]
    options += ["-m", "default", "-m", "cocoa", "-m", "fasor", "--quiet"]
    scenario = coapace.Scenario.load("coexistence")
    for key, value in settings:
        scenario = scenario.set(key, value)
    shared = coapace.coexist(scenario, ["default", "cocoa", "fasor"], progress=False)
    assert_equal_rows(told("run", "coexistence", "--pairs", *options, "--format", "csv"), shared.pairs)
    assert told("run", "coexistence", "--pairs", *options).endswith("\n".join([*shared.sentences, ""]))


def test_rankings_have_the_rows_and_the_advice_of_the_command() -> None:
    options = ["lossy-lan", "-m", "default", "-m", "cocoa", "-m", "linux-rto", "--seeds", "3", "--quiet"]
    ranking = coapace.rank("lossy-lan", ["default", "cocoa", "linux-rto"], seeds=3, progress=False)
    assert_equal_rows(told("rank", *options, "--format", "csv"), ranking.ratios)
    printed = told("rank", *options)
    assert printed.startswith(f"{ranking.advice}\n")
    words = [line.split() for line in printed.removeprefix(str(ranking.advice)).splitlines()]
    shown = [word for line in words for word in line if word in ranking.standings["mechanism"]]
    assert shown[: len(ranking.standings)] == ranking.standings["mechanism"]
