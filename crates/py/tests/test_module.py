"""The command that the package carries, as ``coapace`` and as ``python -m coapace``."""

import signal
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

import coapace
from coapace.__main__ import main

SCRIPT = Path(sys.executable).with_name("coapace")
RUN = ["run", "nb-iot", "--set", "clients=3", "--seeds", "1", "-m", "ebb", "--format", "csv", "--quiet"]


def test_the_package_has_a_version() -> None:
    assert coapace.__version__ == version("coapace")


@pytest.mark.parametrize("command", [[str(SCRIPT)], [sys.executable, "-m", "coapace"]])
def test_the_command_makes_the_runs_of_the_package(command: list[str]) -> None:
    done = subprocess.run([*command, *RUN], capture_output=True, text=True, check=True)
    heading, row = done.stdout.splitlines()
    made = dict(zip(heading.split(","), row.split(","), strict=True))
    scenario = coapace.Scenario.load("nb-iot").set("clients", 3)
    cells = coapace.run(scenario, ["ebb"], seeds=1, progress=False).cells
    assert float(made["median_fct_s"]) == pytest.approx(cells["median_fct_s"][0], abs=1e-5)
    failed = subprocess.run([*command, "run", "nb"], capture_output=True, text=True, check=False)
    assert (failed.returncode, failed.stderr.count("\n")) == (2, 1)


def test_ctrl_c_ends_the_command_with_the_results_so_far() -> None:
    words = [str(SCRIPT), "run", "nb-iot", "--set", "clients=400", "--seeds", "20000", "-m", "ebb", "--quiet"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as running:
        with pytest.raises(subprocess.TimeoutExpired):
            running.wait(timeout=3)
        running.send_signal(signal.SIGINT)
        printed, _ = running.communicate(timeout=60)
    assert running.returncode == 130
    assert "ebb" in printed


def test_main_runs_the_command_in_this_process(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    before = signal.getsignal(signal.SIGINT)
    monkeypatch.setattr(sys, "argv", ["coapace", "--version"])
    try:
        assert main() == 0
    finally:
        signal.signal(signal.SIGINT, before)
    assert capfd.readouterr().out.startswith(f"coapace {coapace.__version__} (")
