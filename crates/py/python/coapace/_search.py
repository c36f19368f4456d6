"""Searches for the parameters of a mechanism, on networks that nobody chose."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from coapace import _native
from coapace._arguments import AnyMechanism, named, whole
from coapace._running import Progress, _Bar
from coapace._tables import Table

if TYPE_CHECKING:
    import pandas
    import polars

#: A value of a parameter: a number, or a text with a unit.
Parameter = str | int | float


class Search:
    """What a search has found, or how several mechanisms compare.

    Costs are those of a mechanism divided by the least of any published mechanism on the same network, so 1 is the best that is
    known. The loss is what a search makes small: see docs/search.md.
    """

    def __init__(self, native: _native.Search) -> None:
        self._native = native

    @property
    def best(self) -> str:
        """The mechanism with the least loss, with its parameters: a name that ``run`` takes."""
        return self._native.best()[0]

    @property
    def loss(self) -> float:
        """The loss of the best."""
        return self._native.best()[1]

    @cached_property
    def evaluations(self) -> Table:
        """A row for each evaluation of this search, those on most networks first, the least ``loss`` first.

        ``parameter.NAME`` has the value of each parameter that varies, ``scenarios`` the number of networks; ``mean_fct``, ``p90_fct``
        and ``transmissions`` (of meshes ``delivery``, ``delay`` and ``transmissions``) are geometric means of ratios, and ``worst`` is the worst one. ``least_share``, ``greatest_share`` and the
        number of ``unfair`` shares beside ``default`` are known of evaluations on all networks.
        """
        return Table(self._native.evaluations())

    @cached_property
    def ratios(self) -> Table:
        """A row for each network of each evaluation on all of them: its ratios to the yardstick."""
        return Table(self._native.ratios())

    @cached_property
    def shares(self) -> Table:
        """A row for each network that ``default`` shares, of each evaluation on all networks: 1 is a fair ``share``."""
        return Table(self._native.shares())

    @cached_property
    def yardsticks(self) -> Table:
        """A row for each network: the least costs of any published mechanism, and which one has them."""
        return Table(self._native.yardsticks())

    def text(self, *, each: bool = False) -> str:
        """Return the lines of ``coapace search``; with ``each``, also one for each network."""
        return self._native.text(each)

    def to_pandas(self) -> pandas.DataFrame:
        """Return ``evaluations`` as a data frame of pandas."""
        return self.evaluations.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return ``evaluations`` as a data frame of polars."""
        return self.evaluations.to_polars()

    def to_csv(self, path: str | Path | None = None) -> str | None:
        """Write ``evaluations`` as a CSV file, or return its text without ``path``."""
        return self.evaluations.to_csv(path)

    def to_parquet(self, path: str | Path) -> None:
        """Write ``evaluations`` as a Parquet file."""
        self.evaluations.to_parquet(path)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's PyCapsule interface, of ``evaluations``."""
        return self.evaluations.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<Search: {self.best}, loss {self.loss:.4f}, {len(self.evaluations)} evaluations>"

    def _repr_html_(self) -> str:
        best = f"<p>{html.escape(self.best)}: loss {self.loss:.4f}</p>"
        return best + self.evaluations._repr_html_()


def search(
    mechanisms: AnyMechanism | Iterable[AnyMechanism],
    vary: Mapping[str, Parameter | Iterable[Parameter]] | str | Iterable[str] | None = None,
    *,
    networks: str = _native.Search.NETWORKS,
    scenarios: SupportsIndex = _native.Search.SCENARIOS,
    generator_seed: SupportsIndex = _native.Search.GENERATOR_SEED,
    brackets: SupportsIndex = _native.Search.BRACKETS,
    seed: SupportsIndex = _native.Search.SEED,
    journal: str | Path | None = None,
    jobs: SupportsIndex | None = None,
    client: Any = None,
    progress: Progress = None,
) -> Search:
    """Search for the parameters of a mechanism, on networks that are drawn and not chosen. Without ``vary``, compare mechanisms there.

    ``vary`` has the values of each parameter, in a list or as the command takes them: ``{"min_rto": "10ms..1s", "initial_k": [1, 2]}``
    or ``["min_rto=10ms..1s", "initial_k=1|2"]``. ``scenarios`` networks are drawn with ``generator_seed``, and half as many more, which
    show how a mechanism shares with ``default``. ``networks="meshes"`` draws larger and harsher meshes instead, where nothing is shared.
    ``brackets`` of successive halving have about 40 evaluations each. Equal ``seed`` make
    equal searches.

    ``journal`` is a file that keeps what is measured: a search that was stopped or killed goes on, here or by the command. ``jobs`` is
    the number of threads. ``client`` is one of Dask's ``distributed.Client``: its workers then measure (``coapace[dask]``), and this
    process writes the journal. Results are equal however they were measured. ``progress`` is told the runs done and the most runs.

    Raises ``ValueError`` with a line that says what is wrong. Ctrl-C keeps what is in the journal.

    >>> found = search("default", {"ack_timeout": ["1s", "3s"]}, scenarios=9, brackets=1, progress=False)
    >>> sorted(set(found.evaluations["parameter.ack_timeout"]))
    ['1s', '3s']
    >>> found.best in found.evaluations["mechanism"]
    True
    """
    native = _native.Search(
        named(mechanisms),
        _written(vary),
        (networks, whole("generator_seed", generator_seed), whole("scenarios", scenarios, most=2**32 - 1)),
        whole("brackets", brackets, most=2**32 - 1),
        whole("seed", seed),
        None if journal is None else Path(journal),
    )
    bar = _Bar(None if callable(progress) else progress)
    show = progress if callable(progress) else bar.show
    try:
        if client is not None:
            from coapace import _dask

            _dask.conduct_search(native, client, show)
        else:
            native.conduct(whole("jobs", jobs or 0), show)
    finally:
        bar.close()
        native.close()
    return Search(native)


def _written(vary: Mapping[str, Parameter | Iterable[Parameter]] | str | Iterable[str] | None) -> list[str]:
    """Return the parameters to vary as the command takes them.

    >>> _written({"min_rto": "10ms..1s", "initial_k": [1, 2], "k": 4})
    ['min_rto=10ms..1s', 'initial_k=1|2', 'k=4']
    """
    if vary is None:
        return []
    if not isinstance(vary, Mapping):
        return [vary] if isinstance(vary, str) else list(vary)
    several = {name: it if isinstance(it, Iterable) and not isinstance(it, str) else [it] for name, it in vary.items()}
    return [f"{name}={'|'.join(str(value) for value in values)}" for name, values in several.items()]
