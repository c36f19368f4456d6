"""The results: medians, spreads, ratios within a round, tables, CSV."""

import csv
from collections import defaultdict
from statistics import median

from .peer import FLOOR
from .questions import CLIENTS, FLOODS

NOTHING = "–"


class Results:
    """Values by question, peer, condition and measure; one for each round."""

    def __init__(self):
        self.values = defaultdict(dict)
        self.problems = []

    def add(self, question, peer, number, condition, measure, value):
        """Adds a value of a round, or a problem in words."""
        if measure == "problem":
            self.problem(question, peer, number, f"{condition}: {value}")
        else:
            self.values[question, peer, str(condition), measure][number] = value

    def problem(self, question, peer, number, words):
        """Adds a problem."""
        self.problems.append(f"{peer}, {question}, round {number}: {words}")

    def get(self, question, peer, condition, measure):
        """Returns the values by round."""
        return self.values.get((question, peer, str(condition), measure), {})

    def ratio(self, of, to):
        """Returns the ratios of two measures in the rounds that have both. Each is named like in `get`."""
        of, to = self.get(*of), self.get(*to)
        return {number: of[number] / to[number] for number in of.keys() & to.keys() if to[number]}

    def write_csv(self, path):
        """Writes one line for each value."""
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")
            writer.writerow(["question", "peer", "condition", "measure", "round", "value"])
            for (question, peer, condition, measure), rounds in self.values.items():
                for number, value in sorted(rounds.items()):
                    writer.writerow([question, peer, condition, measure, number, f"{value:.6g}"])


def shown(rounds, unit=""):
    """Formats the median and, if there are several rounds, the smallest and the largest value."""
    values = list(rounds.values())
    if not values:
        return NOTHING
    text = number(median(values)) + unit
    return text if len(values) == 1 else f"{text} ({number(min(values))}–{number(max(values))})"


def number(value):
    """Formats a number with three digits, or more if there are more before the point."""
    value = float(f"{value:.3g}") if abs(value) < 1000 else value
    if abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.0f}" if abs(value) >= 100 or value == 0 else f"{value:.{2 if abs(value) < 10 else 1}f}"


def table(title, header, rows):
    """Returns a table in Markdown that is also aligned for a terminal."""
    rows = [header, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(header))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    lines.insert(1, "|" + "|".join("-" * (width + 2) for width in widths) + "|")
    return "\n".join([title, "", *lines, ""])


def tables(results, question, peers):
    """Returns the tables of a question."""
    return {"cpu": cpu, "sources": sources, "client": client, "flood": flood}[question](results, peers)


def clients_header():
    return ["stack", *(f"{clients:,} client{'s' if clients > 1 else ''}" for clients in CLIENTS)]


def cpu(results, peers):
    def row(peer, cell):
        return [peer, *(cell(peer, clients) for clients in CLIENTS)]

    def cost(peer, clients):
        of, to = (("cpu", name, clients, "cpu_us") for name in (peer, FLOOR))
        return f"{shown(results.get(*of))}, ×{shown_ratio(results.ratio(of, to))}"

    def rate(peer, clients):
        lost = results.get("cpu", peer, clients, "lost_percent")
        lost = f", {number(median(lost.values()))} % lost" if any(lost.values()) else ""
        return shown(results.get("cpu", peer, clients, "rate")) + lost

    return [
        table("Processor time of the server per request, µs, and the median ratio to the bare responder of the same round",
              clients_header(), [row(peer, cost) for peer in peers]),
        table("Requests answered a second", clients_header(), [row(peer, rate) for peer in peers]),
    ]


def shown_ratio(rounds):
    return f"{median(rounds.values()):.2f}" if rounds else NOTHING


def sources(results, peers):
    def row(peer):
        cells = [shown(results.ratio(("sources", peer, n, "cpu_us"), ("cpu", peer, n, "cpu_us"))) for n in CLIENTS]
        kept = shown(results.get("sources", peer, "sources", "bytes_a_source"))
        return [peer, *cells, kept, shown(results.get("sources", peer, "sources", "answered_percent"))]

    header = [*clients_header(), "bytes a source", "answered, %"]
    title = "Processor time per request after the sources, as a multiple of the time without them, and the memory kept for them"
    return [table(title, header, map(row, peers))]


def client(results, peers):
    def row(peer):
        of, to = (("client", name, "client", "cpu_us") for name in (peer, FLOOR))
        return [peer, shown(results.get(*of)), shown(results.ratio(of, to))]

    rows = [row(peer) for peer in peers if results.get("client", peer, "client", "cpu_us")]
    return [table("Processor time of a client per request", ["stack", "µs", "× bare"], rows)]


def flood(results, peers):
    def row(peer):
        cells = [shown(results.get("flood", peer, FLOODS[0], "quiet_rate"))]
        for rate in FLOODS:
            cells += (shown(results.get("flood", peer, rate, measure)) for measure in ("completed_percent", "rate_percent"))
        return [peer, *cells]

    header = ["stack", "quiet, requests/s"]
    for rate in FLOODS:
        header += [f"{rate:,}/s: completed, %", "rate, % of quiet"]
    return [table("One client in a flood of malformed datagrams", header, map(row, peers))]
