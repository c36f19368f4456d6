"""Means and medians over runs, with intervals."""

import statistics
from dataclasses import dataclass


@dataclass
class Estimate:
    """A value, and half of its 95 % confidence interval."""

    value: float
    half: float


def half_width(values):
    """Returns half of the 95 % confidence interval of a mean, by Student's t; 0 for fewer than three values."""
    count = len(values)
    if count < 3:
        return 0.0
    return quantile(count - 1) * statistics.stdev(values) / count**0.5


def quantile(freedom):
    """Returns the 97.5 % quantile of Student's t, from that of the normal distribution (Abramowitz and Stegun 26.7.5)."""
    z = 1.959964
    return (z + (z**3 + z) / (4 * freedom) + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * freedom**2)
            + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * freedom**3))


def mean(values):
    return Estimate(statistics.fmean(values), half_width(values))


def pooled_median(runs):
    """Returns the median over the times of all clients of all runs. -1 stands for a client that never finished. The interval is
    that of the mean of the medians of the runs."""
    times = [[time if time >= 0 else float("inf") for time in run] for run in runs]
    return Estimate(statistics.median(sum(times, [])), half_width([statistics.median(run) for run in times]))
