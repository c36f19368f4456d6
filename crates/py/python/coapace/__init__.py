"""Congestion control for CoAP: simulate networks, compare mechanisms, step through them.

>>> import coapace
>>> scenario = coapace.Scenario.load("nb-iot").set("clients", 5)
>>> results = coapace.run(scenario, ["default", "cocoa"], seeds=2, progress=False)
>>> results.cells["mechanism"]
['default', 'cocoa']
>>> results.runs["seed"]
[1, 2, 1, 2]

Names are those of the command line and of scenario files. Times are in seconds.
"""

from coapace._controller import Controller, register
from coapace._native import Cue, Exchange, Mechanism, Sample, Scenario
from coapace._running import run
from coapace._sweep import Dataset, sweep
from coapace._tables import Results, Table
from coapace._words import mechanisms, scenarios, trace

__all__ = [
    "Controller",
    "Cue",
    "Dataset",
    "Exchange",
    "Mechanism",
    "Results",
    "Sample",
    "Scenario",
    "Table",
    "mechanisms",
    "register",
    "run",
    "scenarios",
    "sweep",
    "trace",
]
