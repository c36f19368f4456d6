import os
from asyncio import Future
from collections.abc import Callable, Iterable, Sequence
from datetime import timedelta
from pathlib import Path
from typing import Any, SupportsFloat, SupportsIndex, TypeAlias, TypedDict

#: A time in seconds, as a number, a timedelta, or a text such as "2s".
Time: TypeAlias = SupportsFloat | SupportsIndex | timedelta | str

#: A value in one piece: numbers may be those of numpy.
Value: TypeAlias = str | SupportsFloat | SupportsIndex | timedelta | os.PathLike[str]

VERSION: str

def command(words: Sequence[str]) -> int:
    """Runs the command `coapace` with these words, the name of the command first, and returns its exit code. A process can run it once."""

class Scenario:
    """A network and a workload, read and checked. It never changes: `set` returns another scenario."""

    @staticmethod
    def load(source: str | os.PathLike[str]) -> Scenario:
        """Reads a built-in scenario, a file, or the text of a file (more than one line).

        Raises `FileNotFoundError` if the file does not exist, and `ValueError` with a line about the mistake in it.
        """
    def set(self, key: str, value: Value | Iterable[Value]) -> Scenario:
        """Returns this scenario with another value of a knob or of a dotted key, as `--set` does: a text, a number, a truth value, a
        path, a `timedelta`, or several of them.
        """
    @property
    def name(self) -> str:
        """The name of the built-in scenario, or of the file without its ending."""
    @property
    def title(self) -> str:
        """The name for people."""
    @property
    def summary(self) -> str:
        """The purpose, in one sentence."""
    @property
    def source(self) -> str:
        """The source of the numbers."""
    @property
    def knobs(self) -> dict[str, str]:
        """The present value of every knob."""
    def choices(self, knob: str) -> list[str]:
        """The names that a knob accepts; empty if it accepts the values of its keys."""
    @property
    def mechanisms(self) -> list[str]:
        """The mechanisms of a run that names no mechanisms."""
    @property
    def seeds(self) -> int:
        """The number of seeds of a run that names no seeds."""
    def canonical(self) -> str:
        """Every key that shapes a run with its effective value, one `path = value` a line."""
    def to_toml(self) -> str:
        """Returns this scenario as a scenario file (TOML) with all settings applied. Its scenario hash is the same."""
    @property
    def hash(self) -> str:
        """The hash of `canonical()`. Results of scenarios with equal hashes may be compared."""

class Exchange:
    """A running exchange."""

    @property
    def timeout(self) -> float:
        """The timeout that is armed, in seconds."""
    @property
    def retransmits(self) -> int:
        """The number of retransmissions so far."""
    @property
    def is_open(self) -> bool:
        """Whether the exchange is under way."""

class Mechanism:
    """A mechanism and its state for one destination.

    Its calls are the calls of an endpoint: `start` at the first transmission of an exchange, `retransmit` at each further
    one, and one of `acknowledge`, `reset`, `give_up` and `cancel` at the end. All times are in seconds.
    """

    def __init__(self, text: str) -> None: ...
    def start(self, now: Time, draw: float = 0.0) -> Exchange:
        """Starts an exchange, as its first transmission departs."""
    def retransmit(self, exchange: Exchange, now: Time, draw: float = 0.0) -> float:
        """Backs off, as the timeout has passed and a retransmission departs. Returns the next timeout."""
    def acknowledge(
        self, exchange: Exchange, now: Time, answered: int | None = None, draw: float = 0.0
    ) -> None:
        """Ends an exchange with an acknowledgement. `answered` is the number of the transmission that was answered, 0 for
        the first, or None. A mechanism learns this number only if it asks for a marking, because unmarked messages do
        not show it.
        """
    def reset(self, exchange: Exchange, now: Time) -> None:
        """Ends an exchange with a Reset."""
    def give_up(self, exchange: Exchange, now: Time) -> None:
        """Ends an exchange after its last timeout."""
    def cancel(self, exchange: Exchange, now: Time) -> None:
        """Ends an exchange that the application has lost interest in."""
    def pause(self, now: Time) -> float:
        """The time from `now` until the next confirmable message may depart, in seconds; 0 without pacing."""
    def max_span(self, retransmits: int) -> float:
        """Returns the longest time from the first transmission to the last of `retransmits` retransmissions, in seconds."""
    @property
    def rto(self) -> float:
        """The RTO: the estimate that timeouts start from, before dither, in seconds."""
    @property
    def srtt(self) -> float | None:
        """The smoothed round-trip time in seconds; None before the first sample."""
    @property
    def rttvar(self) -> float | None:
        """The variation of the round-trip time in seconds; None before the first sample."""
    @property
    def nstart(self) -> int | None:
        """The maximum number of exchanges under way, if the mechanism sets its own; None for NSTART, which is 1 by default
        (RFC 7252 §4.7).
        """
    @property
    def marking(self) -> str:
        """How a transmission carries its ordinal: none, token, token-on-retransmit, option or fresh-message-id."""
    @property
    def parameters(self) -> dict[str, str]:
        """The value of every parameter."""

class Cue:
    """The present moment, a random number, and the load: the arguments of every step of a mechanism."""

    @property
    def now(self) -> float:
        """The present moment, in seconds."""
    @property
    def now_us(self) -> int:
        """The present moment, in whole microseconds: exact, as every mechanism of Coapace counts."""
    @property
    def draw(self) -> float:
        """The random number of this step, uniform in [0, 1)."""
    @property
    def draw_bits(self) -> int:
        """The random number of this step times 2³²: a whole number, and so exact."""
    @property
    def outstanding(self) -> int:
        """The number of exchanges with this destination that are under way, the present one included."""
    def dither(self, base: float, factor: float = 1.5) -> float:
        """Returns a time between `base` and `factor` times `base`, by the random number of this step: the dither of RFC
        7252 §4.2. `base` and the result are rounded to microseconds, and `factor` to thousandths.
        """

class Sample:
    """The measurements of an acknowledged exchange."""

    @property
    def since_first(self) -> float:
        """The time since the first transmission departed, in seconds."""
    @property
    def since_first_us(self) -> int:
        """The time since the first transmission departed, in whole microseconds."""
    @property
    def since_last(self) -> float:
        """The time since the last transmission departed, in seconds."""
    @property
    def since_last_us(self) -> int:
        """The time since the last transmission departed, in whole microseconds."""
    @property
    def retransmits(self) -> int:
        """The number of retransmissions."""
    @property
    def answered(self) -> int | None:
        """The number of the answered transmission, 0 for the first; None unless a marking in the messages shows it."""
    @property
    def unambiguous(self) -> float | None:
        """The round-trip time in seconds if it is unambiguous: without a retransmission, or if a marking shows which copy was answered."""

class Table:
    @property
    def columns(self) -> list[str]: ...
    def __len__(self) -> int: ...
    def column(self, name: str) -> list[str | float | int | bool | None]: ...
    def slice(self, first: int, count: int) -> Table: ...
    def write_parquet(self, path: str | os.PathLike[str]) -> None: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

class Results:
    def cells(self) -> Table: ...
    def runs(self) -> Table: ...
    def clients(self) -> Table: ...
    def series(self) -> Table: ...
    def values(self) -> Table: ...
    def orders(self) -> Table: ...
    def summary(self) -> str: ...
    def charts(self) -> list[str]: ...
    def figure(self, name: str | None = None) -> str: ...
    def write_html(self, path: str | os.PathLike[str]) -> None: ...
    def write_figures(self, path: str | os.PathLike[str], plates: tuple[list[str], str, bool]) -> int: ...

def register(name: str, controller: type, summary: str) -> None: ...
def is_scripted(label: str) -> bool: ...
def scenarios() -> list[str]: ...
def mechanisms() -> list[tuple[str, str]]: ...
def trace(mechanism: str, script: str) -> str: ...

class Response:
    """A response: received by a client, or made by a handler from a payload (text or bytes), a code, a Content-Format, Max-Age in
    seconds, and further options as pairs of number and value.
    """

    def __init__(
        self,
        payload: bytes | str | None = None,
        code: str = "2.05",
        *,
        content_format: int | None = None,
        max_age: int | None = None,
        options: Sequence[tuple[int, bytes | str | int]] = (),
    ) -> None: ...
    @property
    def code(self) -> str:
        """The code as class and detail, such as `2.05`."""
    @property
    def is_success(self) -> bool:
        """Whether the request was carried out: the code has class 2."""
    @property
    def payload(self) -> bytes:
        """The payload, empty if there is none."""
    @property
    def text(self) -> str:
        """The payload as text, with U+FFFD for bytes that are no UTF-8."""
    @property
    def options(self) -> list[tuple[int, bytes]]:
        """The options as (number, value), in the order of their numbers."""
    @property
    def content_format(self) -> int | None:
        """The Content-Format of the payload; None if the response does not say."""
    @property
    def max_age(self) -> int:
        """The time that the response is fresh, in seconds; 60 if it does not say."""
    @property
    def elapsed(self) -> float:
        """The time from the request to this response, in seconds. 0 in a response that was not received."""
    @property
    def transmissions(self) -> int:
        """The number of transmissions of the request, the largest of any block. 0 in a response that was not received."""

class Request:
    """A request that a server has received."""

    @property
    def method(self) -> str:
        """The method: `GET`, `PUT`, …"""
    @property
    def path(self) -> str:
        """The path, with a slash before each segment."""
    def parameter(self, name: str) -> str | None:
        """Returns the segment that `{name}` matched in the path of the resource; None if the path has no `{name}`, or if
        the segment is not UTF-8.
        """
    @property
    def query(self) -> list[str]:
        """The arguments of the query, in their order."""
    def argument(self, name: str) -> str | None:
        """Returns the value of the argument `name=value` of the query: empty for a name alone, None without the argument."""
    @property
    def payload(self) -> bytes:
        """The payload, empty if there is none. Its blocks are put together."""
    @property
    def text(self) -> str:
        """The payload as text, with U+FFFD for bytes that are no UTF-8."""
    @property
    def options(self) -> list[tuple[int, bytes]]:
        """The options as (number, value), in the order of their numbers."""
    @property
    def content_format(self) -> int | None:
        """The Content-Format of the payload; None if the request does not say."""
    @property
    def accept(self) -> int | None:
        """The Content-Format that the response shall have; None if the request does not say."""
    @property
    def remote(self) -> str:
        """The client's address and port."""
    @property
    def identity(self) -> str | None:
        """The identity of the pre-shared key that the client has proved; None without DTLS."""

class Remote:
    """A destination of a client's requests, and the estimates of the mechanism for it. All times are in seconds."""

    @property
    def address(self) -> str:
        """The address and port."""
    @property
    def rto(self) -> float:
        """The RTO: the estimate that timeouts start from, before dither."""
    @property
    def srtt(self) -> float | None:
        """The smoothed round-trip time; None if the mechanism does not measure it, or has not yet."""
    @property
    def rttvar(self) -> float | None:
        """The variation of the round-trip time; None if the mechanism does not measure it, or has not yet."""
    @property
    def exchanges(self) -> int:
        """The number of exchanges that have ended."""
    @property
    def failed(self) -> int:
        """The number of exchanges that have ended without an answer."""
    @property
    def retransmissions(self) -> int:
        """The number of retransmissions in all exchanges that have ended."""

class Mailbox:
    def fileno(self) -> int: ...
    def deliver(self) -> None: ...

class Call:
    def cancel(self) -> None: ...

class NativeClient:
    def __init__(
        self,
        cc: str,
        bulk: str | None,
        q_block: bool,
        ack_timeout: Time | None,
        max_retransmit: int | None,
        nstart: int | None,
        block_size: int | None,
        psk: tuple[str | bytes, str | bytes] | None,
        proxy: str | None,
        fail_fast: bool,
    ) -> None: ...
    @property
    def mailbox(self) -> Mailbox: ...
    def request(self, future: Future[Response], asked: object) -> Call: ...
    def observe(self, future: Future[tuple[NativeObservation, Response]], asked: object) -> Call: ...
    def group(self, future: Future[NativeGroup], asked: object, leisure: Time) -> Call: ...
    def remotes(self) -> list[Remote]: ...
    def close(self) -> None: ...

class NativeObservation:
    def next(self, future: Future[Response | None]) -> Call: ...
    def end(self, future: Future[None]) -> Call: ...

class NativeGroup:
    def next(self, future: Future[tuple[str, Response] | None]) -> Call: ...
    def end(self) -> None: ...

#: Path, method, handler, and whether the resource can be observed.
Route = tuple[str, str, Callable[[Request], object], bool]

class Reply:
    def send(self, response: Response) -> None: ...

class NativeServer:
    def __init__(self, address: str, cc: str, psk: dict[str, str | bytes] | None, max_pending: int) -> None: ...
    @property
    def mailbox(self) -> Mailbox: ...
    @property
    def address(self) -> str: ...
    @property
    def uri(self) -> str: ...
    def serve(
        self,
        future: Future[None],
        dispatch: Callable[[Any, Request, Reply], None],
        routes: list[Route],
        attributes: list[tuple[str, list[tuple[str, str]]]],
    ) -> Call: ...
    def notify(self, path: str) -> bool: ...
    def shutdown(self) -> None: ...

def run(scenarios: list[Scenario], mechanisms: list[str] | None, run_settings: RunSettings) -> Results: ...

class RunSettings(TypedDict):
    """The seeds of runs, the number of threads (0 is one per core), and the callback of progress."""

    seeds: list[tuple[int, int]] | None
    first_seed: int
    jobs: int
    progress: Callable[[int, int], object]

class Coexistence:
    def pairs(self) -> Table: ...
    def sentences(self) -> list[str]: ...
    def charts(self) -> list[str]: ...
    def figure(self, name: str | None = None) -> str: ...
    def write_html(self, path: str | os.PathLike[str]) -> None: ...
    def write_figures(self, path: str | os.PathLike[str], plates: tuple[list[str], str, bool]) -> int: ...

class Ranking:
    HINDSIGHT: str
    def ratios(self) -> Table: ...
    def standings(self) -> Table: ...
    def hindsight(self) -> Table: ...
    def advice(self) -> str | None: ...
    def charts(self) -> list[str]: ...
    def figure(self, name: str | None = None) -> str: ...
    def write_html(self, path: str | os.PathLike[str]) -> None: ...

def reproduce(key: str, quick: bool, mechanisms: list[str], run_settings: RunSettings) -> Results: ...
def papers() -> list[tuple[str, str]]: ...
def coexist(scenario: Scenario, mechanisms: list[str], run_settings: RunSettings) -> Coexistence: ...
def rank(entries: list[Scenario | str], mechanisms: list[str], run_settings: RunSettings) -> Ranking: ...
def frames(scenario: Scenario, mechanism: str, seed: int, limit: int) -> tuple[Table, int]: ...

class Sweep:
    def __init__(
        self,
        scenario: Scenario,
        conditions: Sequence[Sequence[tuple[str, Value | Iterable[Value]]]],
        mechanisms: list[str] | None,
        seeds: tuple[int, int | None],
        to: Path,
        shard: str | None,
    ) -> None: ...
    @property
    def units(self) -> int: ...
    @property
    def missing(self) -> int: ...
    def conduct(self, jobs: int, progress: Callable[[int, int], object] | None) -> None: ...
    def batch(self, first: int, count: int) -> str: ...
    def settle(self) -> int: ...
    def close(self) -> None: ...

#: The mechanism of a piece, and the number of its scenario.
Piece: TypeAlias = tuple[str, int]

#: The costs of a piece, and its share beside `default`.
Measured: TypeAlias = tuple[list[float], float | None]

#: The version, the kind of the networks, the generator seed, the number of scenarios, and pieces.
Pieces: TypeAlias = tuple[str, str, int, int, list[Piece]]

class Search:
    NETWORKS: str
    GENERATOR_SEED: int
    SCENARIOS: int
    BRACKETS: int
    SEED: int

    def __init__(
        self,
        mechanisms: list[str],
        vary: list[str],
        drawn: tuple[str, int, int],
        brackets: int,
        seed: int,
        journal: Path | None,
    ) -> None: ...
    def conduct(self, jobs: int, progress: Callable[[int, int], object] | None) -> None: ...
    def ask(self) -> int: ...
    def batch(self, first: int, count: int) -> Pieces: ...
    def tell(self, first: int, measured: list[Measured]) -> None: ...
    def close(self) -> None: ...
    def progress(self) -> tuple[int, int]: ...
    def best(self) -> tuple[str, float]: ...
    def text(self, each: bool) -> str: ...
    def evaluations(self) -> Table: ...
    def ratios(self) -> Table: ...
    def shares(self) -> Table: ...
    def yardsticks(self) -> Table: ...

def measure(batch: Pieces) -> list[Measured]: ...
def make_batch(batch: str, to: Path) -> int: ...
def count_runs(path: Path) -> int: ...
def amount(text: str) -> tuple[int, str] | None: ...
def amount_text(value: int, dimension: str) -> str: ...
