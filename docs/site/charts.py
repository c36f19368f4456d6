"""Charts of the gallery as SVG: published values beside ours, ratios, and lines over a key."""

from html import escape
from math import ceil, floor, inf, isfinite, log10

WIDTH, LEFT, RIGHT = 340, 12, 328
#: Signs of the verdicts: colour alone does not carry them.
SIGNS = {"held": "✓", "within": "✓", "inconclusive": "?", "not held": "✗", "beyond": "✗"}
DASHES = ["none", "6 3", "2 3", "8 3 2 3", "1 2"]


def significant(value, digits=4):
    """Returns a number as people read it."""
    if value == 0:
        return "0"
    return f"{value:,.{max(0, digits - 1 - floor(log10(abs(value))))}f}".replace(",", "\u202f")


class Axis:
    """A scale from values to pixels. It is logarithmic if the values differ much."""

    def __init__(self, values, begin, end, log=None, through=None):
        low, high = min(values), max(values)
        self.log = log if log is not None else low > 0 and high / low > 20
        if self.log:
            low, high = low / 1.15, high * 1.15
            if through:
                low, high = min(low, through / 1.15), max(high, through * 1.15)
            self.low, self.high = log10(low), log10(high)
        else:
            self.low, self.high = min(0.0, low), high * 1.05 or 1.0
        self.begin, self.end = begin, end

    def __call__(self, value):
        """Returns the pixel of a value; the end of the scale for one beyond it."""
        if self.log and value <= 0:
            return self.begin
        if value == inf:
            return self.end
        at = log10(value) if self.log else value
        share = (at - self.low) / (self.high - self.low)
        return round(self.begin + min(1.0, max(0.0, share)) * (self.end - self.begin), 1)

    def ticks(self, most=4):
        if self.log:
            steps = [m * 10.0**e for e in range(floor(self.low), ceil(self.high) + 1) for m in (1, 2, 5)]
            found = [step for step in steps if self.low <= log10(step) <= self.high]
            if len(found) > most + 2:
                found = [step for step in found if log10(step) % 1 < 1e-9]
            if len(found) < 2:
                found = [float(f"{10**at:.2g}") for at in (self.low, (self.low + self.high) / 2, self.high)]
            return found
        step = 10.0 ** floor(log10((self.high - self.low) / most))
        step *= next(factor for factor in (1, 2, 5, 10) if (self.high - self.low) / (step * factor) <= most)
        return [round(step * i, 10) for i in range(ceil(self.low / step), floor(self.high / step) + 1)]


def plain(value):
    return f"{value:g}"


def text(x, y, words, kind="", anchor="start"):
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{f" class={kind!r}" if kind else ""}>{escape(words)}</text>'


def line(x1, y1, x2, y2, kind):
    return f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" class="{kind}"/>'


def below(axis, top, bottom, words):
    """The ticks of a horizontal axis, and its name."""
    parts = []
    for tick in axis.ticks():
        x = axis(tick)
        parts += [line(x, top, x, bottom, "grid"), text(x, bottom + 13, plain(tick), "tick", "middle")]
    return [*parts, text((axis.begin + axis.end) / 2, bottom + 28, words, "tick", "middle")]


#: Numbers of the charts, for the ids of their titles.
made = iter(range(1_000_000))


def svg(height, title, desc, parts, name):
    name = f"{name}-{next(made)}"
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-labelledby="{name}-t {name}-d"><title id="{name}-t">{escape(title)}</title>'
        f'<desc id="{name}-d">{escape(desc)}</desc>{"".join(parts)}</svg>'
    )


def values_chart(title, axis_name, points):
    """Published values, ours and the witness's, a row for each mechanism."""
    every = [value for point in points for value in (point["published"], point["measured"], *point["interval"], *point["witness"]) if value is not None]
    axis = Axis([value for value in every if value > 0] or [1.0], LEFT, RIGHT)
    step, parts = 38, []
    bottom = step * len(points) + 6
    parts += below(axis, 4, bottom, axis_name)
    for place, point in enumerate(points):
        y, sign = place * step + 16, SIGNS[point["verdict"]]
        parts.append(text(LEFT, y, point["name"]))
        parts.append(text(RIGHT, y, f"{sign} {point['distance']}", "sign", "end"))
        y += 14
        parts.append(line(LEFT, y, RIGHT, y, "row"))
        if point["witness"]:
            low, high = (axis(value) for value in (point["witness"][0], point["witness"][-1]))
            parts.append(f'<rect x="{low - 2}" y="{y - 6}" width="{round(high - low + 4, 1)}" height="12" class="witness"/>')
        if point["measured"]:
            if point["interval"]:
                parts.append(line(axis(max(point["interval"][0], min(every))), y, axis(point["interval"][1]), y, "whisker"))
            parts.append(f'<circle cx="{axis(point["measured"])}" cy="{y}" r="4" class="ours"/>')
        parts.append(f'<circle cx="{axis(point["published"])}" cy="{y}" r="6" class="published"/>')
    desc = "; ".join(point["words"] for point in points)
    return svg(bottom + 34, title, f"{desc}.", parts, "values")


def ratios_chart(title, points):
    """Orders and ratios: ours with its interval, and the ratios that the published order means."""
    every = [value for point in points for value in (point["ratio"], *point["interval"], point["bound"]) if value and isfinite(value)]
    axis = Axis(every, LEFT, RIGHT, log=True, through=1.0)
    step, parts = 38, []
    bottom = step * len(points) + 6
    parts += below(axis, 4, bottom, "first by second")
    parts.append(line(axis(1.0), 4, axis(1.0), bottom, "one"))
    for place, point in enumerate(points):
        y = place * step + 16
        parts.append(text(LEFT, y, f"{SIGNS[point['verdict']]} {point['name']}", "order"))
        y += 14
        parts.append(line(LEFT, y, RIGHT, y, "row"))
        if point["relation"] == "=":
            parts.append(f'<circle cx="{axis(point["bound"])}" cy="{y}" r="6" class="published"/>')
        else:
            x = axis(point["bound"])
            parts.append(f'<rect x="{x}" y="{y - 6}" width="{round(RIGHT - x, 1)}" height="12" class="claimed"/>')
        if point["ratio"]:
            if point["interval"]:
                parts.append(line(axis(point["interval"][0]), y, axis(point["interval"][1]), y, "whisker"))
            parts.append(f'<circle cx="{axis(point["ratio"])}" cy="{y}" r="4" class="ours"/>')
    return svg(bottom + 34, title, "; ".join(point["words"] for point in points) + ".", parts, "ratios")


def lines_chart(title, x_name, y_name, series):
    """Our values of several mechanisms over a key, each with its interval; `series` maps a name to (x, value, half)."""
    every = [end for points in series.values() for _, value, half in points for end in (value, value - half, value + half) if end > 0]
    xs = [x for points in series.values() for x, _, _ in points]
    left, top, bottom = 46, 22 + 18 * len(series), 190 + 18 * len(series)
    y_axis, x_axis = Axis(every, bottom, top), Axis(xs, left, RIGHT, log=False)
    x_axis.low = min(xs) - (max(xs) - min(xs)) * 0.03
    parts = below(x_axis, top, bottom, x_name)
    for tick in y_axis.ticks():
        parts += [line(left, y_axis(tick), RIGHT, y_axis(tick), "grid"), text(left - 5, y_axis(tick) + 4, plain(tick), "tick", "end")]
    parts.append(text(LEFT, top - 8, y_name, "tick"))
    said = []
    for place, (name, points) in enumerate(series.items()):
        y, kind = 14 + 18 * place, f"series s{place % len(DASHES)}"
        dash = f'stroke-dasharray="{DASHES[place % len(DASHES)]}"'
        parts.append(f'<line x1="{LEFT}" y1="{y - 4}" x2="{LEFT + 30}" y2="{y - 4}" class="{kind}" {dash}/>{text(LEFT + 36, y, name)}')
        path = " ".join(f"{x_axis(x)},{y_axis(value)}" for x, value, _ in points)
        parts.append(f'<polyline points="{path}" class="{kind}" {dash}/>')
        for x, value, half in points:
            if half:
                low = value - half if value > half else value
                parts.append(line(x_axis(x), y_axis(low), x_axis(x), y_axis(value + half), kind))
        said.append(f"{name}: {significant(points[0][1])} at {points[0][0]:g} to {significant(points[-1][1])} at {points[-1][0]:g}")
    return svg(bottom + 34, title, "; ".join(said) + ".", parts, "lines")
