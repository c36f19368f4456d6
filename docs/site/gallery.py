#!/usr/bin/env python3
"""Draws what papers published beside what the simulator gives, for the pages docs/reproductions/KEY.md of the site.

    docs/site/gallery.py --links            # the addresses of the playground that the pages have, as JSON, for tests/check-playground
    docs/site/gallery.py --keep DIR KEY     # the columns of an artefact's results that the pages need, for tests/check-reproductions

No run is made: KEY.cells.csv and KEY.orders.csv beside a page are rows of the same reproduction. What was published, and under which
conditions, is in the paper's folder, crates/lab/papers/KEY. A table of the paper becomes a chart for each condition, with published
values, ours and a witness's; an experiment whose orders were published becomes a chart of ratios for each condition, or over the key
that it varies."""

import csv
import json
import re
import sys
import tomllib
from functools import cached_property
from html import escape
from itertools import product
from math import inf
from pathlib import Path
from urllib.parse import urlencode

from charts import lines_chart, ratios_chart, significant, values_chart

ROOT = Path(__file__).resolve().parents[2]
KEPT = ROOT / "docs/reproductions"
#: An experiment over a key with so many numbers is drawn as lines.
LINE = 4
#: Runs of each mechanism in the playground. More take long in meshes.
SEEDS = 5


def paper(key):
    """Returns source.toml and the rows of published.csv of a paper."""
    folder = ROOT / "crates/lab/papers" / key
    published = folder / "published.csv"
    return tomllib.loads((folder / "source.toml").read_text()), rows(published) if published.exists() else []


def papers():
    return sorted(page.stem for page in KEPT.glob("*.md"))


def rows(path):
    with open(path, newline="") as file:
        return list(csv.DictReader(file))


def experiments(source):
    """Yields each experiment as its scenario, its conditions (each a list of settings), the key that it varies over numbers, and its claims
    as (metric, text)."""
    for one in source.get("experiments", []):
        claims = [(metric, says) for metric, says in one.get("orders", {}).items()]
        claims += [(claim["metric"], claim["says"]) for claim in one.get("claims", [])]
        if claims:
            sweep = one.get("sweep", {})
            over = next((key for key, values in sweep.items() if len(values) >= LINE and all(number(value) is not None for value in values)), None)
            others = {key: values for key, values in sweep.items() if key != over}
            fixed = list(one.get("set", {}).items())
            conditions = [fixed + list(zip(others, values)) for values in product(*others.values())]
            yield one.get("scenario", source["scenario"]), conditions, (over, sweep[over]) if over else None, claims


def number(text):
    """Returns the number that a text begins with, or None."""
    found = re.match(r"[-+]?\d+(\.\d+)?", text)
    return float(found[0]) if found else None


def chain(says):
    """Yields the orders of a chain, a > b >= 2 c, as (above, relation, factor, below) with the names of the paper."""
    parts = re.split(r"\s*(>=|>|=)\s*", says)
    for place in range(1, len(parts), 2):
        *factor, below_ = parts[place + 1].split()
        yield parts[place - 1].split()[-1], parts[place], float(factor[0]) if factor else 1.0, below_


def quoted(word):
    return word if re.fullmatch(r"[\w.:/,=+%@-]+", word) else f"'{word}'"


class Setting:
    """What makes runs: a scenario, its settings, and mechanisms."""

    def __init__(self, scenario, settings, mechanisms, runs, grid=None):
        self.scenario, self.mechanisms, self.runs = scenario, mechanisms, runs
        #: The playground shows one condition, the middle one.
        self.settings = settings + ([(grid[0], grid[1][len(grid[1]) // 2])] if grid else [])
        self.asked = settings + ([(grid[0], ",".join(grid[1]))] if grid else [])

    def address(self):
        """The state of the playground, which crates/web/page/main.js reads from the address."""
        state = {"s": self.scenario, "m": " ".join(self.mechanisms), "n": SEEDS, "set": [f"{key}={value}" for key, value in self.settings]}
        return urlencode(state, doseq=True)

    def command(self, settings=None, runs=None):
        words = ["coapace run", self.scenario]
        for key, value in self.asked if settings is None else settings:
            words += ["--set", quoted(f"{key}={value}")]
        for label in self.mechanisms:
            words += ["-m", quoted(label)]
        return " ".join([*words, "--seeds", str(runs or self.runs)])

    def link(self):
        """What tests/check-playground opens, and the command that the playground shows then."""
        return {"address": self.address(), "command": self.command(self.settings, SEEDS)}


class Panel:
    """A chart and what makes it again."""

    def __init__(self, kind, title, svg, setting, verdict, points):
        self.kind, self.title, self.svg, self.setting, self.verdict, self.points = kind, title, svg, setting, verdict, points

    def html(self, to_root):
        return (
            f'<figure class="panel"><figcaption><strong>{escape(self.title[0].upper() + self.title[1:]).replace(" %", chr(160) + "%")}</strong><span>{escape(self.verdict)}</span></figcaption>'
            f"{self.svg}"
            f'<a href="{to_root}playground/index.html#{escape(self.setting.address())}">Open in the playground'
            f'<span class="unseen">: {escape(self.title)}</span></a>'
            f"<details><summary>Command</summary><pre><code>{escape(self.setting.command())}</code></pre></details></figure>"
        )


class Page:
    """The charts of a paper."""

    def __init__(self, key):
        self.key = key
        self.source, self.published = paper(key)
        self.names = {label: name for name, label in self.source["mechanisms"].items()}
        self.cells = rows(KEPT / f"{key}.cells.csv")
        self.orders = rows(KEPT / f"{key}.orders.csv")
        self.markdown = (KEPT / f"{key}.md").read_text()

    def label(self, name):
        return self.source["mechanisms"][name]

    def find(self, rows_of, scenario, settings, **also):
        """Returns the rows of a scenario with these settings."""
        return [
            row for row in rows_of
            if row["scenario"] == scenario and all(row[f"knob.{key}"] == value for key, value in settings) and all(row[key] == value for key, value in also.items())
        ]

    def section(self, heading):
        """Returns the panels of a section of the page."""
        if heading == "Orders and ratios":
            return [panel for one in experiments(self.source) for panel in self.experiment(*one)]
        for name, table in [("", {"title": "Values"}), *self.source.get("tables", {}).items()]:
            if table["title"] == heading:
                return self.table([row for row in self.published if row.get("table", "") == name], table.get("factor"))
        return []

    def axis_name(self, metric, mechanism):
        """Returns the name of a metric in words, from the page."""
        value = next(significant(float(row[f"published_{metric}"])) for row in self.cells if row["mechanism"] == mechanism and row.get(f"published_{metric}"))
        value = re.escape(value).replace("\u202f", r"\s?")
        found = re.search(rf"\| {re.escape(mechanism)} \| ([^|]+) \| {value} \|", self.markdown)
        return found[1] if found else metric

    def conditions(self, row):
        """Returns the settings that a row of published.csv has."""
        return [(knob, row[column]) for column, knob in self.source["columns"].items() if row[column]]

    def table(self, published, factor):
        """Returns a panel for each condition of a table of published values."""
        groups = {}
        for row in published:
            metric = next(name for name in row if f"published_{name}" in self.cells[0] and row[name])
            groups.setdefault((row.get("scenario") or self.source["scenario"], tuple(self.conditions(row)), metric), []).append(row)
        varied = {key for _, settings, _ in groups for key, value in settings if {dict(other).get(key) for _, other, _ in groups} != {value}}
        for (scenario, settings, metric), own in groups.items():
            points = [self.point(scenario, settings, metric, row, factor) for row in own]
            title = ", ".join(f"{key} {value}" for key, value in settings if key in varied) or ", ".join(f"{key} {value}" for key, value in settings)
            good = sum(point["verdict"] == "within" for point in points)
            axis_name = self.axis_name(metric, points[0]["label"])
            setting = Setting(scenario, list(settings), [point["label"] for point in points], max(point["runs"] for point in points))
            by = f"a factor of {factor:g}" if factor else "5 %"
            chart = values_chart(f"{axis_name}: {title}", axis_name, points)
            yield Panel("values", title, chart, setting, f"{good} of {len(points)} within {by}", points)

    def point(self, scenario, settings, metric, row, factor):
        label, value = self.label(row["mechanism"]), float(row[metric])
        found = [
            cell for cell in self.find(self.cells, scenario, settings, mechanism=label)
            if cell[f"published_{metric}"] and abs(float(cell[f"published_{metric}"]) - value) <= 1e-6 * abs(value)
        ]
        [cell] = found
        measured = float(cell[metric]) if cell[metric] else None
        half = cell.get(f"half_{metric}")
        interval = [measured - float(half), measured + float(half)] if half and measured else []
        witness = [float(cell[f"witness_{end}_{metric}"]) for end in ("low", "high") if cell.get(f"witness_{end}_{metric}")]
        if factor:
            times = max(measured / value, value / measured) if measured else float("inf")
            distance, good = f"× {times:.2f}", times <= factor
        else:
            error = measured / value - 1 if measured else float("inf")
            distance, good = f"{error:+.1%}".replace("%", " %").replace("-", "−"), abs(error) <= 0.05
            distance = distance if abs(error) >= 0.0005 else "0.0 %"
        verdict = "within" if good else "beyond"
        words = f"{row['mechanism']}: published {significant(value)}, ours {significant(measured) if measured else 'unknown'}"
        words += f" (95 % interval {significant(interval[0])} to {significant(interval[1])})" if interval else ""
        words += f", witness {' to '.join(significant(end) for end in witness)}" if witness else ""
        return {
            "name": row["mechanism"], "label": label, "published": value, "measured": measured, "interval": interval, "witness": witness,
            "distance": distance, "verdict": verdict, "words": f"{words}: {verdict}", "runs": int(cell["runs"]), "row": (id(row), metric),
        }

    def experiment(self, scenario, conditions, over, claims):
        """Yields the panels of an experiment."""
        for settings in conditions:
            title = ", ".join(f"{key} {value}" for key, value in settings) or scenario
            mechanisms = list(dict.fromkeys(self.label(name) for _, says in claims for order in chain(says) for name in (order[3], order[0])))
            if over:
                yield from self.swept(scenario, settings, over, claims, title, mechanisms)
                continue
            points = [point for metric, says in claims for order in chain(says) for point in self.ordered(scenario, settings, metric, order)]
            runs = int(self.find(self.cells, scenario, settings, mechanism=mechanisms[0])[0]["runs"])
            setting = Setting(scenario, settings, mechanisms, runs)
            yield Panel("ratios", title, ratios_chart(f"Ratios: {title}", points), setting, counted(points), points)

    def swept(self, scenario, settings, over, claims, title, mechanisms):
        """Yields a panel of our values over a key for each metric, and the verdicts of the orders there."""
        key, values = over
        for metric in dict.fromkeys(metric for metric, _ in claims):
            series, points = {}, []
            for label in mechanisms:
                found = [self.find(self.cells, scenario, [*settings, (key, value)], mechanism=label)[0] for value in values]
                own = [(number(value), float(row[metric]), float(row.get(f"half_{metric}") or 0)) for value, row in zip(values, found) if row[metric]]
                series[self.names.get(label, label)] = own
            says = [text for own, text in claims if own == metric]
            for value in values:
                for order in (order for text in says for order in chain(text)):
                    points += self.ordered(scenario, [*settings, (key, value)], metric, order)
            unit = re.sub(r"^[-+\d.]+\s*", "", values[0])
            setting = Setting(scenario, settings, mechanisms, int(found[0]["runs"]), over)
            name = f"{points[0]['title']} over {key}: {title}"
            chart = lines_chart(name, f"{key} ({unit})" if unit else key, self.unit(metric, points[0]["title"]), series)
            published = "; ".join(says).replace(">=", "≥")
            yield Panel("lines", name, chart, setting, f"published: {published}. {counted(points)}", points)

    def unit(self, metric, title):
        found = re.search(rf"^\| `{metric}`[^|]*\|[^|]*\| ([^|]*) \|", (ROOT / "docs/results.md").read_text(), re.M)
        return f"{title} ({found[1].strip()})" if found and found[1].strip() else title

    def ordered(self, scenario, settings, metric, order):
        """Yields the points of an order."""
        first, relation, times, second = order
        labels = {"above": self.label(first), "below": self.label(second)}
        for row in self.find(self.orders, scenario, settings, metric=metric, relation=relation, **labels):
            if float(row["times"] or 1) != times:
                continue
            ratio = float(row["ratio"]) if row["ratio"] else None
            # An end that is not known is infinite: the second value was 0 in some run.
            interval = [float(row["ratio_low"]), float(row["ratio_high"] or inf)] if row["ratio_low"] else []
            factor = f" {times:g} ×" if row["times"] else ""
            name = f"{self.titles.get(metric, metric)}: {first} {relation.replace('>=', '≥')}{factor} {second}"
            ours = f"ours {ratio:.3g} (95 % interval {interval[0]:.3g} to {interval[1]:.3g})".replace("inf", "∞") if ratio and interval else "ours unknown"
            yield {
                "name": name, "title": self.titles.get(metric, metric), "ratio": ratio, "interval": interval, "bound": times, "relation": relation,
                "verdict": row["verdict"], "words": f"published {name}, {ours}: {row['verdict']}", "row": id(row),
            }

    @cached_property
    def titles(self):
        """Maps metrics to words, by the values that the page and the orders share."""
        titles = {}
        for row in self.orders:
            value = re.escape(significant(float(row["above_value"]))).replace("\u202f", r"\s?") if row["above_value"] else "–"
            found = re.search(rf"\| ([^|]+?) {re.escape(row['above'])} [≥>=][^|]*\| {value} ", self.markdown)
            if found:
                titles.setdefault(row["metric"], found[1])
        return titles


def counted(points):
    """Returns how many orders held, and how many did not."""
    words = [point["verdict"] for point in points]
    unknown = sum(point["ratio"] is None for point in points)
    counts = ", ".join(f"{words.count(word)} {word}" for word in ("held", "inconclusive", "not held") if word in words)
    return f"{counts}; {unknown} without a ratio: not measured in every run" if unknown else counts


OURS = ('<line x1="0" y1="8" x2="16" y2="8" class="whisker"/><circle cx="8" cy="8" r="4" class="ours"/>', "ours, with its 95 % interval")
#: The marks of each kind of chart.
MARKS = {
    "values": [
        ('<circle cx="8" cy="8" r="6" class="published"/>', "published"),
        OURS,
        ('<rect x="3" y="2" width="10" height="12" class="witness"/>', "the witness"),
    ],
    "ratios": [
        ('<circle cx="8" cy="8" r="6" class="published"/>', "a published ratio"),
        ('<rect x="0" y="2" width="16" height="12" class="claimed"/>', "ratios that a published order means"),
        OURS,
    ],
    "lines": [],
}
WORDS = {
    "values": "✓ within the allowed distance, ✗ beyond",
    "ratios": "✓ held, ? inconclusive, ✗ not held",
    "lines": "Our values with their 95 % intervals; of this metric the paper's order of the curves is used",
}


def legend(panels):
    text = ""
    for kind in dict.fromkeys(panel.kind for panel in panels):
        is_there = {words for panel in panels for words in re.findall('class="([a-z]+)"', panel.svg)}
        marks = [(drawn, words) for drawn, words in MARKS[kind] if set(re.findall('class="([a-z]+)"', drawn)) <= is_there]
        keys = "".join(f'<span><svg viewBox="0 0 16 16" aria-hidden="true">{drawn}</svg> {words}</span>' for drawn, words in marks)
        text += f'<p class="legend">{keys}<span>{WORDS[kind]}</span></p>'
    return text


def drawn(key, markdown, to_root):
    """Returns the Markdown of a page with charts before its tables, which are folded."""
    page, parts = Page(key), re.split(r"^(## .*)$", markdown, flags=re.M)
    made_of = parts[:1]
    for heading, body in zip(parts[1::2], parts[2::2]):
        panels = list(page.section(heading[3:].strip()))
        if panels:
            before, _, table = body.partition("\n| ")
            charts = "".join(panel.html(to_root) for panel in panels)
            body = f'{before}\n\n{legend(panels)}\n<div class="gallery" data-search-exclude>{charts}</div>\n\n<details markdown="1"><summary>All values</summary>\n\n| {table}\n</details>\n\n'
        made_of += [heading, body]
    return "".join(made_of)


def faults(key):
    """Yields what the charts of a paper lack: every published value and order is drawn, and as many are met as the page says."""
    page = Page(key)
    drawn_of = [panel for heading in re.findall(r"^## (.*)$", page.markdown, re.M) for panel in page.section(heading)]
    values = [point for panel in drawn_of if panel.kind == "values" for point in panel.points]
    orders = {point["row"]: point["verdict"] for panel in drawn_of if panel.kind != "values" for point in panel.points}
    published = sum(bool(row[name]) for row in page.published for name in row if f"published_{name}" in page.cells[0])
    if len({point["row"] for point in values}) != published:
        yield f"{key}: {len(values)} of {published} published values are drawn"
    if len(orders) != len(page.orders):
        yield f"{key}: {len(orders)} of {len(page.orders)} published orders are drawn"
    row = next(line for line in page.markdown.splitlines() if line.startswith(f"| `{key}` |"))
    within = sum(int(count) for count in re.findall(r"(?:\| |; )(\d+) of \d+ within (?:5 %|the factor)", row))
    met = sum(point["verdict"] == "within" for point in values)
    if met != within:
        yield f"{key}: {met} values are drawn as met, and {within} are"
    for word in ("held", "inconclusive", "not held"):
        count, said = list(orders.values()).count(word), re.search(rf"(?:\| |, )(\d+) {word}\b", row)
        if count != int(said[1] if said else 0):
            yield f"{key}: {count} orders are drawn as {word}, and {said[1] if said else 0} are"


def panels_of(key):
    page = Page(key)
    for heading in re.findall(r"^## (.*)$", page.markdown, re.M):
        yield from page.section(heading)


def half_of(metric):
    """Returns the column that has half of the 95 % interval of a metric."""
    found = re.search(rf"^\| `{metric}`[^|]*\| `(\w+)` \|", (ROOT / "docs/results.md").read_text(), re.M)
    return found[1] if found else None


def keep(folder, key):
    """Writes the columns of cells.csv and orders.csv that the charts need: conditions, and values that were published or compared."""
    source, _ = paper(key)
    cells = rows(Path(folder, "results/cells.csv"))
    header = list(cells[0]) if cells else []
    metrics = [name for name in header if f"published_{name}" in header]
    metrics += [metric for _, _, _, claims in experiments(source) for metric, _ in claims]
    columns = {name: name for name in ["scenario", "mechanism", "runs", *(name for name in header if name.startswith("knob."))]}
    for metric in dict.fromkeys(metrics):
        columns[metric] = metric
        if (half := half_of(metric)) in header:
            columns[f"half_{metric}"] = half
        columns |= {name: name for name in (f"published_{metric}", f"witness_low_{metric}", f"witness_high_{metric}") if name in header}
    write(Path(folder, f"{key}.cells.csv"), columns, cells)
    orders = rows(Path(folder, "results/orders.csv"))
    names = ["scenario", "metric", "above", "relation", "below", "times", "above_value", "below_value", "ratio", "ratio_low", "ratio_high", "verdict"]
    names += [name for name in (orders[0] if orders else []) if name.startswith("knob.")]
    write(Path(folder, f"{key}.orders.csv"), {name: name for name in names}, orders)


def write(path, columns, lines):
    with open(path, "w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([[row[name] for name in columns.values()] for row in lines])


def main():
    match sys.argv[1:]:
        case ["--links"]:
            print(json.dumps([panel.setting.link() | {"paper": key} for key in papers() for panel in panels_of(key)], indent=1))
        case ["--keep", folder, key]:
            keep(folder, key)
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    main()
