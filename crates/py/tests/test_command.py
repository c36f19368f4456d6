"""The command and the package make equal runs."""

import csv
import os
import subprocess

import pytest

import coapace

COMMAND = os.environ.get("COAPACE_COMMAND")


@pytest.mark.skipif(COMMAND is None, reason="COAPACE_COMMAND does not name the command")
@pytest.mark.parametrize("each", [True, False])
def test_rows_of_the_command_are_those_of_the_package(each: bool) -> None:
    assert COMMAND is not None
    named = ["-m", "default", "-m", "ebb", "-m", "tcp"]
    options = ["--set", "clients=5", "--seeds", "3", "--format", "csv", "--quiet", *(["--each"] if each else [])]
    done = subprocess.run([COMMAND, "run", "nb-iot", *named, *options], capture_output=True, text=True, check=True)
    rows = list(csv.DictReader(done.stdout.splitlines()))

    scenario = coapace.Scenario.load("nb-iot").set("clients", 5)
    results = coapace.run(scenario, ["default", "ebb", "tcp"], seeds=3, progress=False)
    table = (results.runs if each else results.cells).to_dict()
    assert list(rows[0]) == list(table)
    for column, values in table.items():
        if column == "commit":
            continue
        for row, value in zip(rows, values, strict=True):
            if isinstance(value, float):
                assert float(row[column]) == pytest.approx(value, abs=1e-6), column
            else:
                assert row[column] == ("" if value is None else str(value)), column
