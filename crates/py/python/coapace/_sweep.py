"""Sweeps: every mechanism under many conditions with many seeds, into a directory that keeps what was done."""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

from coapace import _native
from coapace._arguments import AnyMechanism, AnyScenario, Seeds, loaded, named, stretches, whole
from coapace._design import Design, Range, Setting, conditions
from coapace._extras import needed
from coapace._running import _Bar

if TYPE_CHECKING:
    import duckdb
    import pandas
    import polars


class Dataset:
    """The directory of a sweep: Parquet files with a row for each run.

    ``key`` identifies the run. The columns of ``Results.runs`` follow. ``knob.PATH`` has the value of a key of the sweep. ``number.NAME``
    has the number of a knob or key with a unit: seconds, bits per second, bytes, or a share from 0 to 1.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        if not self.path.exists():
            raise FileNotFoundError(errno.ENOENT, "there is no dataset", str(self.path))
        if not (self.path / "sweep.json").is_file():
            raise ValueError(f"{self.path} is no dataset: there is no sweep.json in it")

    @property
    def parts(self) -> list[str]:
        """The Parquet files."""
        parts = sorted(str(part) for part in self.path.glob("part-*.parquet"))
        if not parts:
            raise ValueError(f"{self.path} has no runs yet")
        return parts

    def __len__(self) -> int:
        """Return the number of runs."""
        return _native.count_runs(self.path)

    def scan(self) -> polars.LazyFrame:
        """Return the runs as a lazy frame of polars, which reads what a query needs."""
        scanned: polars.LazyFrame = needed("polars", "polars").scan_parquet(self.parts)
        return scanned

    def to_polars(self) -> polars.DataFrame:
        """Return all runs as a data frame of polars, ordered by condition, mechanism and seed."""
        frame = self.scan().collect()
        return frame.sort(_order(frame.columns), nulls_last=True)

    def to_pandas(self) -> pandas.DataFrame:
        """Return all runs as a data frame of pandas, ordered by condition, mechanism and seed."""
        parts = needed("pyarrow.dataset", "pandas").dataset(self.parts, format="parquet")
        frame: pandas.DataFrame = parts.to_table().to_pandas()
        return frame.sort_values(_order(list(frame.columns))).reset_index(drop=True)

    def duckdb(self) -> duckdb.DuckDBPyRelation:
        """Return the runs as a relation of DuckDB, which reads what a query needs."""
        read: duckdb.DuckDBPyRelation = needed("duckdb", "duckdb").read_parquet(self.parts)
        return read

    def __repr__(self) -> str:
        return f"<Dataset: {len(self)} runs in {self.path}>"


def _order(columns: list[str]) -> list[str]:
    texts = [name for name in columns if name.startswith("knob.")]
    numbers = [f"number.{name.split('.', 1)[1]}" for name in texts]
    of_condition = [number if number in columns else text for text, number in zip(texts, numbers, strict=True)]
    return [*of_condition, "mechanism", "seed"]


def sweep(
    scenario: AnyScenario,
    grid: Mapping[str, Setting | Range | Iterable[Setting]] | Iterable[Mapping[str, Setting]] | None = None,
    mechanisms: AnyMechanism | Iterable[AnyMechanism] | None = None,
    seeds: Seeds | None = None,
    *,
    to: str | Path,
    design: Design = "grid",
    points: SupportsIndex | None = None,
    design_seed: SupportsIndex = 1,
    first_seed: SupportsIndex = 1,
    jobs: SupportsIndex | None = None,
    shard: str | None = None,
    client: Any = None,
    progress: bool | Callable[[int, int], object] | None = None,
) -> Dataset:
    """Run mechanisms under many conditions into the directory ``to``, and return its dataset.

    ``grid`` has one or more values for each knob or key, and every combination is run; or it is a list of conditions, each with one
    value for each knob. With the design ``"random"`` or ``"latin-hypercube"`` there are ``points`` conditions. A knob then has a
    range, ``(low, high)`` or ``(low, high, "log")``, or values to choose from; ``("1 %", "10 %")`` has a unit, and
    whole ends give whole numbers. Equal ``design_seed`` give equal conditions. Designs need SciPy (``coapace[sweep]``).

    Runs that the directory has are not made again: a sweep that was stopped or killed goes on, and a larger one adds to it. ``shard`` is a
    share of the runs, such as ``"2/8"``. ``jobs`` is the number of threads. ``client`` is one of Dask's ``distributed.Client``: its
    workers then make the runs and write them into ``to``, a directory that they and this process share (``coapace[dask]``). Rows
    are equal however they were made.

    Raises ``ValueError`` with a line that says what is wrong. Ctrl-C keeps the runs that are over.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as to:
    ...     dataset = sweep("nb-iot", {"clients": [2, 3]}, ["default", "cocoa"], seeds=2, to=to, progress=False)
    ...     len(dataset)
    8
    """
    asked: Sequence[tuple[int, int | None]] = stretches(seeds, first_seed) or [(whole("first_seed", first_seed), None)]
    if len(asked) > 1:
        raise ValueError("the seeds of a sweep have no gaps: give their number, or a range such as '21-40'")
    chosen = None if points is None else whole("points", points)
    native = _native.Sweep(
        loaded(scenario),
        conditions(grid, design, chosen, whole("design_seed", design_seed)),
        None if mechanisms is None else named(mechanisms),
        asked[0],
        Path(to),
        shard,
    )
    bar = _Bar(False if callable(progress) else progress)
    show = progress if callable(progress) else bar.show
    try:
        if client is not None:
            from coapace._dask import conduct

            conduct(native, client, Path(to).absolute(), show)
        elif native.missing:
            native.conduct(whole("jobs", jobs or 0), show)
    finally:
        native.close()
        bar.close()
    return Dataset(to)
