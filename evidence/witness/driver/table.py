"""The quantities of both simulators, side by side."""

from dataclasses import dataclass

from .cells import Cell, Quantity
from .estimate import Estimate

HEAD = ["cell", "quantity", "coapace", "ns-3", "ratio", "bound", ""]


@dataclass
class Row:
    """A quantity of a cell in both simulators."""

    cell: Cell
    quantity: Quantity
    value: float
    half: float | None
    theirs: Estimate

    @property
    def ratio(self):
        return self.value / self.theirs.value if self.theirs.value else 1.0

    def beyond(self):
        """Returns whether the quantity is beyond its bound, by the values without their intervals."""
        return self.quantity.bound is not None and abs(self.ratio - 1) > self.quantity.bound

    def fails(self):
        return self.beyond() and self.quantity.name not in self.cell.reasons

    def words(self):
        bound = self.quantity.bound
        verdict = "" if bound is None else "FAR" if self.fails() else "explained" if self.beyond() else "within"
        return [self.cell.name, self.quantity.name, number(self.value, self.half), number(self.theirs.value, self.theirs.half),
                f"{self.ratio:.3f}", "" if bound is None else f"{bound:.0%}".replace("%", " %"), verdict]


def number(value, half):
    digits = max(0, 3 - len(str(int(abs(value))))) if abs(value) >= 1 else 4
    return f"{value:.{digits}f}" + (f" ± {half:.{digits}f}" if half else "")


def text(rows):
    lines = [HEAD, *(row.words() for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(HEAD))]
    shown = ["  ".join(word.ljust(width) for word, width in zip(line, widths)).rstrip() for line in lines]
    return "\n".join([*shown, *reasons(rows)])


def markdown(rows):
    lines = ["| " + " | ".join(HEAD) + " |", "|---|---|--:|--:|--:|--:|---|"]
    lines += ["| " + " | ".join(row.words()) + " |" for row in rows]
    return "\n".join([*lines, *reasons(rows)])


def reasons(rows):
    return [f"{row.cell.name}, {row.quantity.name}: {row.cell.reasons[row.quantity.name]}"
            for row in rows if row.beyond() and not row.fails()]
