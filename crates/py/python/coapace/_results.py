"""Results of runs, of papers, of pairs and of rankings."""

from __future__ import annotations

import html
import os
from collections.abc import Iterable
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Protocol

from coapace import _native
from coapace._extras import needed
from coapace._tables import Table
from coapace._travelling import Travelling

if TYPE_CHECKING:
    import pandas
    import polars


class _Drawable(Protocol):
    def charts(self) -> list[str]: ...
    def figure(self, name: str | None = None) -> str: ...
    def write_html(self, path: str | os.PathLike[str]) -> None: ...


class _Writable(_Drawable, Protocol):
    def write_figures(self, path: str | os.PathLike[str], plates: tuple[list[str], str, bool]) -> int: ...


class _Charted(Travelling):
    """What has charts."""

    _native: _Drawable

    @cached_property
    def charts(self) -> list[str]:
        """The names of all charts, those of the command's report."""
        return self._native.charts()

    def plot(self, metric: str | None = None) -> Any:
        """Return a chart of the report as a ``plotly.graph_objects.Figure``.

        ``metric`` is a column, such as ``median_fct_s``, or a name of ``charts``. Without one it is the first chart that compares
        mechanisms. It needs plotly, which ``pip install 'coapace[plot]'`` installs.

        Raises ``ValueError`` with the names of all charts if there is none of this name.
        """
        reader = needed("plotly.io", "plot")
        return reader.from_json(self._native.figure(metric))

    def to_html(self, path: str | os.PathLike[str]) -> None:
        """Write the report of the command: one page with all charts and tables, about 5 MB. It needs no other library."""
        self._native.write_html(path)


class _Figured(_Charted):
    """What has charts as files."""

    _native: _Writable

    def to_figures(
        self,
        path: str | os.PathLike[str],
        charts: str | Iterable[str] = (),
        *,
        size: Literal["page", "column", "double", "slide"] = "page",
        titles: bool = True,
    ) -> int:
        """Write charts into a directory as SVG, PDF and PNG, and return their number.

        ``charts`` are names of ``charts``, columns, or ``"all"``; without any they are those that compare conditions, or all if there is one.
        ``size`` is that of a page, of a column or both columns of an IEEE paper (3.5 and 7.16 inches), or of a slide. It needs no other
        library.

        Raises ``ValueError`` with the names of all charts if there is none of a name.
        """
        chosen = [charts] if isinstance(charts, str) else list(charts)
        return self._native.write_figures(path, (chosen, size, titles))


class Results(_Figured):
    """The results of runs, as tables."""

    def __init__(self, native: _native.Results) -> None:
        self._native: _native.Results = native

    @cached_property
    def cells(self) -> Table:
        """A row for each scenario and mechanism, its seeds pooled: the columns of ``coapace run --format csv``."""
        return Table(self._native.cells())

    @cached_property
    def runs(self) -> Table:
        """A row for each run: the columns of ``coapace run --each --format csv``."""
        return Table(self._native.runs())

    @cached_property
    def clients(self) -> Table:
        """A row for each client of each run: ``fct_s``, None for one that gave up, and its ``exchanges``."""
        return Table(self._native.clients())

    @cached_property
    def series(self) -> Table:
        """A row for each point of a time series: ``quantity`` (``rto_s`` of clients, ``queue_bytes`` of hops), ``name``, ``t_s``, ``value``.

        The first seed alone has series, of at most 1,000 points each.
        """
        return Table(self._native.series())

    def to_pandas(self) -> pandas.DataFrame:
        """Return ``cells`` as a data frame of pandas."""
        return self.cells.to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """Return ``cells`` as a data frame of polars."""
        return self.cells.to_polars()

    def to_parquet(self, path: str | os.PathLike[str]) -> None:
        """Write ``runs`` as a Parquet file."""
        self.runs.to_parquet(path)

    def to_csv(self, path: str | os.PathLike[str] | None = None) -> str | None:
        """Write ``runs`` as a CSV file, or return its text without ``path``."""
        return self.runs.to_csv(path)

    def __len__(self) -> int:
        """Return the number of cells."""
        return len(self.cells)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Arrow's PyCapsule interface, of ``cells``."""
        return self.cells.__arrow_c_stream__(requested_schema)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self.cells)} cells, {len(self.runs)} runs>"

    def _repr_html_(self) -> str:
        return self.cells._repr_html_()


class Reproduction(Results):
    """The results of a paper's experiments, beside what it published."""

    @cached_property
    def summary(self) -> str:
        """The agreement with the paper, in the sentences of ``coapace reproduce``."""
        return self._native.summary()

    @cached_property
    def values(self) -> Table:
        """A row for each published value: ``published`` and ``measured``, ``relative_error``, ``factor``, a witness if there is one, and its place."""
        return Table(self._native.values())

    @cached_property
    def orders(self) -> Table:
        """A row for each published order, the worst first: the columns of ``coapace reproduce --orders --format csv``."""
        return Table(self._native.orders())

    def plot(self, metric: str | None = None) -> Any:
        """Return a chart as ``Results.plot`` does. Without ``metric`` it is measured values over published ones, if there are any."""
        published = (name for name in self.charts if metric is None and name.startswith("published-"))
        return super().plot(next(published, metric))

    def _repr_html_(self) -> str:
        return _paragraphs(self.summary.splitlines()) + super()._repr_html_()


class Coexistence(_Figured):
    """Every two mechanisms at one bottleneck, half of the clients each."""

    def __init__(self, native: _native.Coexistence) -> None:
        self._native: _native.Coexistence = native

    @cached_property
    def pairs(self) -> Table:
        """A row for each mechanism with each other: the columns of ``coapace run coexistence --pairs --format csv``."""
        return Table(self._native.pairs())

    @cached_property
    def sentences(self) -> list[str]:
        """Who takes the most and the least, who starves whom, and who is fair: the sentences of ``coapace run --pairs``."""
        return self._native.sentences()

    def __repr__(self) -> str:
        return f"<Coexistence: {len(self.pairs)} encounters>"

    def _repr_html_(self) -> str:
        return _paragraphs(self.sentences) + self.pairs._repr_html_()


class Ranking(_Charted):
    """Mechanisms over many conditions, by how many times worse they are than the best of each."""

    def __init__(self, native: _native.Ranking) -> None:
        self._native: _native.Ranking = native

    @cached_property
    def ratios(self) -> Table:
        """A row for each metric of each mechanism in each cell: the columns of ``coapace rank --format csv``."""
        return Table(self._native.ratios())

    @cached_property
    def standings(self) -> Table:
        """A row for each mechanism, the smallest worst ratio first, and those without dither last."""
        return Table(self._native.standings())

    @cached_property
    def hindsight(self) -> Table:
        """What somebody reaches who takes the best mechanism of each cell: the rows ``hindsight`` of ``coapace rank``.

        One row is for the published mechanisms that dither, and ``hindsight*`` for these and those made by Coapace, if any is ranked.
        A single cell has no row: its first mechanism is the best.
        """
        return Table(self._native.hindsight())

    @cached_property
    def advice(self) -> str | None:
        """The mechanism to use, how far it is from the best, and what it costs; None if nothing could be compared."""
        return self._native.advice()

    def __repr__(self) -> str:
        return f"<Ranking: {len(self.standings)} mechanisms, {len(self.ratios)} ratios>"

    def _repr_html_(self) -> str:
        shown = _paragraphs([self.advice] if self.advice else []) + self.standings._repr_html_()
        if len(self.hindsight):
            shown += _paragraphs([self._native.HINDSIGHT]) + self.hindsight._repr_html_()
        return shown


def _paragraphs(sentences: list[str]) -> str:
    return "".join(f"<p>{html.escape(sentence)}</p>" for sentence in sentences)
