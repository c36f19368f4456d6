"""Congestion control for CoAP: simulate networks, compare mechanisms, step through them, use them on sockets.

>>> import coapace
>>> scenario = coapace.Scenario.load("nb-iot").set("clients", 5)
>>> results = coapace.run(scenario, ["default", "cocoa"], seeds=2, progress=False)
>>> results.cells["mechanism"]
['default', 'cocoa']
>>> results.runs["seed"]
[1, 2, 1, 2]

Names are those of the command line and of scenario files. Times are in seconds.
"""

from coapace._client import Client, Group, Observation
from coapace._controller import Controller, register
from coapace._errors import NetworkError, NotObserved, Reset, Timeout
from coapace._native import VERSION as __version__
from coapace._native import Cue, Exchange, Mechanism, Remote, Request, Response, Sample, Scenario
from coapace._results import Coexistence, Ranking, Reproduction, Results
from coapace._running import coexist, frames, papers, rank, reproduce, run
from coapace._search import Search, search
from coapace._server import Server
from coapace._sweep import Dataset, sweep
from coapace._tables import Table
from coapace._words import mechanisms, scenarios, trace

__all__ = [
    "Client",
    "Coexistence",
    "Controller",
    "Cue",
    "Dataset",
    "Exchange",
    "Group",
    "Mechanism",
    "NetworkError",
    "NotObserved",
    "Observation",
    "Ranking",
    "Remote",
    "Reproduction",
    "Request",
    "Reset",
    "Response",
    "Results",
    "Sample",
    "Scenario",
    "Search",
    "Server",
    "Table",
    "Timeout",
    "__version__",
    "coexist",
    "frames",
    "mechanisms",
    "papers",
    "rank",
    "register",
    "reproduce",
    "run",
    "scenarios",
    "search",
    "sweep",
    "trace",
]
