//! The texts of a metric, and its value in one or several runs.

use std::fmt;

use super::Metric;
use super::measures::{MEASURES, Pooling};
use coapace_run::measured::{Estimate, RunResult};

impl Metric {
    /// Returns the name of the column with the half-width of the 95 % confidence interval, if there is one.
    pub fn interval_name(self) -> Option<&'static str> {
        Some(self.interval()).filter(|name| !name.is_empty())
    }

    /// Returns the name with the unit in words, for an axis.
    pub fn axis(self) -> String {
        match self.unit() {
            "" => self.title().to_owned(),
            "s" => format!("{} in seconds", self.title()),
            unit if unit.starts_with("per ") => format!("{} {unit}", self.title()),
            unit => format!("{} in {unit}", self.title()),
        }
    }

    /// Returns the value in one run; `None` if it is unknown.
    pub fn of_run(self, run: &RunResult) -> Option<f64> {
        match MEASURES[self as usize].pooling {
            Pooling::Mean(of) => of(run),
            Pooling::Together(of) => of(std::slice::from_ref(run)),
        }
        // A quantile among clients that gave up is infinite, and so not known.
        .filter(|value| value.is_finite())
    }

    /// Returns the [estimate](Self::estimate) if every run has a value; `None` otherwise, because runs without a value are the
    /// bad ones.
    pub fn estimate_in_all(self, runs: &[RunResult]) -> Option<Estimate> {
        if runs.iter().all(|run| self.of_run(run).is_some()) { self.estimate(runs) } else { None }
    }

    /// Returns the value in these runs and the half-width of the 95 % confidence interval (Student's t) over the values of the
    /// runs.
    ///
    /// A metric computed from all runs together, such as a quantile, has an interval only if every single run has a value.
    pub fn estimate(self, runs: &[RunResult]) -> Option<Estimate> {
        let values: Vec<f64> = runs.iter().filter_map(|run| self.of_run(run)).collect();
        let over_runs = Estimate::of(&values);
        match MEASURES[self as usize].pooling {
            Pooling::Mean(_) => over_runs,
            Pooling::Together(of) => {
                let mean = of(runs).filter(|value| value.is_finite() && !runs.is_empty())?;
                // Runs without a value are the worst, so an interval of the others would be too narrow.
                let half_width =
                    over_runs.filter(|_| values.len() == runs.len()).and_then(|it| it.half_width);
                Some(Estimate { mean, half_width })
            }
        }
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl TryFrom<String> for Metric {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl From<Metric> for String {
    fn from(metric: Metric) -> Self {
        metric.name().to_owned()
    }
}

impl std::str::FromStr for Metric {
    type Err = String;

    /// Parses the [name](Metric::name) of a metric. Former names are `reached_share` of `pdr`, and `unnecessary` of `spurious`.
    fn from_str(name: &str) -> Result<Self, String> {
        // Files of papers and of users may still have former names.
        let name = match name {
            "reached_share" => Self::Pdr.name(),
            "unnecessary" => Self::AllSpurious.name(),
            "unnecessary_per_client" => Self::Spurious.name(),
            _ => name,
        };
        Self::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("`{name}` is not the name of a metric; the metrics are {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::flowing;
    use super::*;

    #[test]
    fn every_metric_is_found_by_its_name_and_no_two_columns_have_one() {
        for metric in Metric::ALL {
            assert_eq!(metric.name().parse(), Ok(metric));
            assert!(!metric.title().is_empty() && metric.about().ends_with('.'), "{metric}");
        }
        let intervals = Metric::ALL.into_iter().filter_map(Metric::interval_name);
        let mut columns: Vec<_> = Metric::ALL.into_iter().map(Metric::name).chain(intervals).collect();
        columns.sort_unstable();
        assert!(columns.windows(2).all(|pair| pair[0] != pair[1]), "{columns:?}");
        let error = "troughput".parse::<Metric>().unwrap_err();
        assert!(
            error.starts_with("`troughput` is not the name of a metric; the metrics are median_fct_s, p10"),
            "{error}"
        );
        assert_eq!("reached_share".parse(), Ok(Metric::Pdr));
        assert_eq!("unnecessary_per_client".parse(), Ok(Metric::Spurious));
    }

    #[test]
    fn a_quantile_is_over_all_runs_and_its_interval_over_the_quantiles_of_single_runs() {
        let run = |seed, fct_s: [f64; 3]| RunResult {
            seed,
            fct_s: fct_s.map(Some).to_vec(),
            ..RunResult::default()
        };
        let mut runs = [run(1, [10.0, 11.0, 30.0]), run(2, [12.0, 13.0, 14.0])];
        let Estimate { mean, half_width } = Metric::MedianFct.estimate(&runs).unwrap();
        assert!((mean - 12.5).abs() < 1e-12, "{mean}");
        // The medians are 11 and 13, with deviation √2: the half-width is 12.706 · √2 / √2.
        assert!((half_width.unwrap() - 12.706).abs() < 1e-3);
        assert_eq!(
            Metric::MedianFct.estimate(&runs[..1]).unwrap().half_width,
            None,
            "one seed has no interval"
        );
        runs[1].fct_s[1..].fill(None);
        let Estimate { mean, half_width } = Metric::MedianFct.estimate(&runs).unwrap();
        assert!((mean - 21.0).abs() < 1e-12 && half_width.is_none(), "a seed without a median: {mean}");
    }

    #[test]
    fn messages_that_the_application_drops_are_not_delivered() {
        let run = flowing(1, 60);
        assert_eq!(Metric::Pdr.of_run(&run), Some(0.5), "60 of 120 offered");
        assert_eq!(Metric::PdrSent.of_run(&run), Some(0.6), "20 were dropped");
        assert_eq!(Metric::DroppedByApplication.of_run(&run), Some(40.0), "both flows count");
    }

    #[test]
    fn metrics_of_flows_and_radios_are_means_over_the_runs() {
        let runs = [flowing(1, 80), flowing(2, 60)];
        let mean = |metric: Metric| metric.estimate(&runs).unwrap().mean;
        // The load is 2 flows · 70 messages · 800 bits / 100 s.
        assert!((mean(Metric::CarriedLoad) - 1_120.0).abs() < 1e-9);
        assert!((mean(Metric::Delay) - 0.5).abs() < 1e-12);
        // The energies are 20 mJ for 160 · 50 bytes and for 120 · 50 bytes.
        assert!((mean(Metric::EnergyPerByte) - f64::midpoint(2.5, 20.0 / 6.0)).abs() < 1e-12);
        assert!(
            (mean(Metric::SettlingTime) - 8.0).abs() < 1e-12 && (mean(Metric::Unsettled) - 1.0).abs() < 1e-12
        );
    }

    #[test]
    fn the_label_of_an_axis_has_the_unit() {
        assert_eq!(Metric::MedianFct.axis(), "median FCT in seconds");
        assert_eq!(Metric::Throughput.axis(), "throughput in exchanges/s");
        assert_eq!(Metric::Retransmissions.axis(), "retransmissions per client");
        assert_eq!(Metric::Jain.axis(), "Jain’s index");
    }

    #[test]
    fn metrics_are_unknown_without_runs() {
        assert!(Metric::ALL.into_iter().all(|metric| metric.estimate(&[]).is_none()));
    }
}
