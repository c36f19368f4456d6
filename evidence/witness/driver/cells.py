"""The cells: experiments that run in both simulators, the quantities that are compared, and known differences."""

import csv
import io
import subprocess
from dataclasses import dataclass, field

from .estimate import mean, pooled_median
from .ns3 import HERE

#: The largest difference of a quantity, as a share of ns-3's.
BOTTLENECK, MESH = 0.05, 0.15


@dataclass
class Quantity:
    """A quantity that both simulators have. One without a bound is only shown."""

    name: str
    bound: float | None
    #: The columns of `coapace run` with the quantity and half of its 95 % confidence interval.
    column: str
    interval: str | None
    #: Returns an Estimate from what the runs of ns-3 printed.
    theirs: callable
    #: Our column by this is the quantity.
    per: float = 1


@dataclass
class Cell:
    """An experiment. `settings` are those of our scenario, `options` those of the program for ns-3."""

    name: str
    program: str
    scenario: str
    settings: dict
    options: dict
    quantities: list
    #: Why a quantity is beyond its bound, by the name of the quantity.
    reasons: dict = field(default_factory=dict)

    def run(self, command, seeds, options=()):
        """Runs our simulator. Returns the CSV that it prints."""
        words = [command, "run", self.scenario, "--mechanism", "default", "--seeds", str(seeds), "--format", "csv", "--quiet"]
        for key, value in self.settings.items():
            words += ["--set", f"{key}={value}"]
        done = subprocess.run([*words, *options], capture_output=True, text=True, cwd=HERE)
        if done.returncode != 0:
            raise RuntimeError(f"{' '.join(map(str, words))} fails:\n{done.stderr}")
        return done.stdout

    def ours(self, command, seeds):
        """Returns our quantities: pairs of a value and half of its interval."""
        row = next(csv.DictReader(io.StringIO(self.run(command, seeds))))

        def number(column):
            return float(row[column]) if column and row[column] else None

        return [(number(quantity.column) / quantity.per, (number(quantity.interval) or 0) / quantity.per if quantity.interval else None)
                for quantity in self.quantities]


def of_runs(quantity):
    """Returns what makes an Estimate of a quantity that each run has by itself."""
    return lambda runs: mean([quantity(run) for run in runs])


def bottleneck(name, clients, buffer_bytes):
    return Cell(
        name, "bottleneck", "nb-iot",
        {"clients": clients, "buffer": buffer_bytes},
        {"clients": clients, "buffer": f"{buffer_bytes}B", "maxRetransmit": 20},
        [
            Quantity("median FCT, s", BOTTLENECK, "median_fct_s", "median_fct_ci95",
                   lambda runs: pooled_median([run["fct_s"] for run in runs])),
            Quantity("retransmissions a client", None, "retransmissions_per_client", "retransmissions_per_client_ci95",
                   of_runs(lambda run: run["retransmissions"] / len(run["fct_s"]))),
            Quantity("drops a client", None, "drops", None, of_runs(lambda run: run["drops"] / len(run["fct_s"])), clients),
        ],
    )


def mesh(name, topology, interval_s, reasons=None):
    positions = f"{topology}.positions"
    return Cell(
        name, "mesh", "mesh.toml",
        {"topology": positions, "interval": f"{interval_s} s"},
        {"positions": HERE / positions, "interval": interval_s},
        [
            Quantity("delivered messages (PDR)", MESH, "pdr", "pdr_ci95",
                   of_runs(lambda run: run["reached"] / run["offered"])),
            Quantity("exchanges a second", MESH, "throughput", "throughput_ci95",
                   of_runs(lambda run: run["answered"] / run["duration_s"])),
            Quantity("mean delay, s", MESH, "delay_s", "delay_ci95",
                   of_runs(lambda run: run["delay_s"] / max(run["reached"], 1))),
            Quantity("frames", None, "frames", "frames_ci95", of_runs(lambda run: run["frames"])),
            Quantity("frames given up", None, "mesh_drops", "mesh_drops_ci95", of_runs(lambda run: run["drops"])),
            Quantity("retransmitted messages", None, "retransmissions", None,
                   of_runs(lambda run: run["retransmissions"])),
        ],
        reasons or {},
    )


#: Counted in the traces of five runs of each simulator; README.md has the counts.
LATE_RESPONSES = ("the MAC of ns-3 begins its CSMA/CA again when a frame comes meanwhile, so its sink hardly ever gives a response up, and "
                  "more of the frames given up are requests, which delay a message by 2 s or more")

CELLS = [
    bottleneck("bottleneck-10", 10, 1_410_000),
    bottleneck("bottleneck-100", 100, 1_410_000),
    bottleneck("bottleneck-100-short", 100, 2_500),
    mesh("star", "star", 1),
    mesh("chain", "chain", 1),
    mesh("grid", "grid", 1),
    mesh("star-full", "star", 0.1, {"mean delay, s": LATE_RESPONSES}),
    mesh("chain-full", "chain", 0.25),
    mesh("grid-full", "grid", 0.5),
]
