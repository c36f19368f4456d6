//! What is measured, by name and unit.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::{Estimate, Summary, Traffic};

/// A figure of the results that publications give too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "&'static str")]
pub enum Metric {
    /// The median flow completion time, in seconds.
    MedianFct,
    /// The mean flow completion time of the clients that finished, in seconds.
    MeanFct,
    /// Completed exchanges per second, of all clients together.
    Throughput,
    /// Payload of completed exchanges, in bits per second.
    Goodput,
    /// How long a completed exchange took on average, in seconds.
    ExchangeTime,
    /// Jain's fairness index over the clients' rates.
    Jain,
    /// Retransmissions of a client, on average.
    Retransmissions,
    /// Unnecessary retransmissions of a client, on average.
    Unnecessary,
    /// Exchanges given up, per run.
    GivenUp,
    /// The packet delivery ratio of flows, from 0 to 1.
    Pdr,
    /// The share of all messages offered that reached their sinks, those that the application dropped included, from 0 to 1.
    ReachedShare,
    /// Bits of CoAP messages that reached their sinks in a second.
    CarriedLoad,
    /// From the offer of a message to its first arrival, on average, in seconds.
    Delay,
    /// How long after an event the delay was as before, in seconds.
    SettlingTime,
    /// The mean timeout of first transmissions, in seconds.
    InitialRto,
    /// The mean timeout of all transmissions, in seconds.
    MeanRto,
    /// The longest timeout, in seconds.
    MaxRto,
    /// Energy for each byte of payload that reached its sink, in microjoule.
    EnergyPerByte,
}

impl Metric {
    /// Every metric there is.
    pub const ALL: [Self; 18] = [
        Self::MedianFct,
        Self::MeanFct,
        Self::Throughput,
        Self::Goodput,
        Self::ExchangeTime,
        Self::Jain,
        Self::Retransmissions,
        Self::Unnecessary,
        Self::GivenUp,
        Self::Pdr,
        Self::ReachedShare,
        Self::CarriedLoad,
        Self::Delay,
        Self::SettlingTime,
        Self::InitialRto,
        Self::MeanRto,
        Self::MaxRto,
        Self::EnergyPerByte,
    ];

    /// Its column in the results, which says the unit where the words below do not.
    pub const fn name(self) -> &'static str {
        match self {
            Self::MedianFct => "median_fct_s",
            Self::MeanFct => "mean_fct_s",
            Self::Throughput => "throughput",
            Self::Goodput => "goodput_bps",
            Self::ExchangeTime => "exchange_time_s",
            Self::Jain => "jain",
            Self::Retransmissions => "retransmissions_per_client",
            Self::Unnecessary => "unnecessary_per_client",
            Self::GivenUp => "given_up",
            Self::Pdr => "pdr",
            Self::ReachedShare => "reached_share",
            Self::CarriedLoad => "carried_load_bps",
            Self::Delay => "delay_s",
            Self::SettlingTime => "settling_time_s",
            Self::InitialRto => "initial_rto_s",
            Self::MeanRto => "rto_mean_s",
            Self::MaxRto => "rto_max_s",
            Self::EnergyPerByte => "energy_per_byte_uj",
        }
    }

    /// Its name for people.
    pub const fn title(self) -> &'static str {
        match self {
            Self::MedianFct => "median FCT",
            Self::MeanFct => "mean FCT",
            Self::Throughput => "throughput",
            Self::Goodput => "goodput",
            Self::ExchangeTime => "exchange time",
            Self::Jain => "Jain’s index",
            Self::Retransmissions => "retransmissions",
            Self::Unnecessary => "needless retransmissions",
            Self::GivenUp => "exchanges given up",
            Self::Pdr => "packet delivery ratio",
            Self::ReachedShare => "share of offered messages that arrived",
            Self::CarriedLoad => "carried load",
            Self::Delay => "delay",
            Self::SettlingTime => "settling time",
            Self::InitialRto => "initial RTO",
            Self::MeanRto => "mean RTO",
            Self::MaxRto => "longest RTO",
            Self::EnergyPerByte => "energy for a byte",
        }
    }

    /// Its unit, short; nothing for an index.
    pub const fn unit(self) -> &'static str {
        match self {
            Self::MedianFct
            | Self::MeanFct
            | Self::ExchangeTime
            | Self::Delay
            | Self::SettlingTime
            | Self::InitialRto
            | Self::MeanRto
            | Self::MaxRto => "s",
            Self::Throughput => "exchanges/s",
            Self::Goodput | Self::CarriedLoad => "bit/s",
            Self::Jain | Self::Pdr | Self::ReachedShare => "",
            Self::EnergyPerByte => "µJ",
            Self::Retransmissions | Self::Unnecessary => "per client",
            Self::GivenUp => "per run",
        }
    }

    /// Name and unit, as an axis says them.
    pub fn axis(self) -> String {
        match self.unit() {
            "" => self.title().to_owned(),
            "s" => format!("{} in seconds", self.title()),
            unit if unit.starts_with("per ") => format!("{} {unit}", self.title()),
            unit => format!("{} in {unit}", self.title()),
        }
    }

    /// Its value in pooled runs; `None` where it is not known.
    pub fn of(self, summary: &Summary) -> Option<f64> {
        if let Some(of) = self.of_traffic() {
            return of(summary.traffic.as_ref()?).map(|estimate| estimate.mean);
        }
        match self {
            Self::MedianFct => summary.fct.median,
            Self::MeanFct => summary.mean_fct_s,
            Self::ExchangeTime => summary.exchange_time_s(),
            Self::Jain => summary.jain,
            _ if summary.runs == 0 => None,
            Self::Throughput => Some(summary.throughput),
            Self::Goodput => Some(summary.goodput_bps),
            Self::Retransmissions => Some(summary.retransmissions_per_client),
            Self::Unnecessary => Some(summary.unnecessary_per_client),
            _ => Some(summary.given_up),
        }
    }

    /// Its estimate over the runs, where it is a metric of flows.
    pub(crate) const fn of_traffic(self) -> Option<fn(&Traffic) -> Option<Estimate>> {
        Some(match self {
            Self::Pdr => |traffic| traffic.pdr,
            Self::ReachedShare => |traffic| traffic.reached_share,
            Self::CarriedLoad => |traffic| traffic.carried_load_bps,
            Self::Delay => |traffic| traffic.delay_s,
            Self::SettlingTime => |traffic| traffic.settling_time_s,
            Self::InitialRto => |traffic| traffic.initial_rto_s,
            Self::MeanRto => |traffic| traffic.rto_mean_s,
            Self::MaxRto => |traffic| traffic.rto_max_s,
            Self::EnergyPerByte => |traffic| traffic.energy_per_byte_uj,
            _ => return None,
        })
    }
}

impl fmt::Display for Metric {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl From<Metric> for &'static str {
    fn from(metric: Metric) -> Self {
        metric.name()
    }
}

impl TryFrom<String> for Metric {
    type Error = String;

    fn try_from(name: String) -> Result<Self, String> {
        name.parse()
    }
}

impl std::str::FromStr for Metric {
    type Err = String;

    /// Reads the [name](Metric::name).
    fn from_str(name: &str) -> Result<Self, String> {
        Self::ALL.into_iter().find(|metric| metric.name() == name).ok_or_else(|| {
            let known = Self::ALL.map(Self::name).join(", ");
            format!("there is no metric `{name}`; there is {known}")
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::CELL_COLUMNS;
    use super::super::cell_result::tests::sample;
    use super::super::traffic::tests::flowing;
    use super::*;

    #[test]
    fn every_metric_is_a_column_of_the_results_and_found_by_its_name() {
        for metric in Metric::ALL {
            assert!(CELL_COLUMNS.contains(&metric.name()), "{metric}");
            assert_eq!(metric.name().parse(), Ok(metric));
        }
        let error = "troughput".parse::<Metric>().unwrap_err();
        assert!(
            error.starts_with("there is no metric `troughput`; there is median_fct_s, mean_fct_s"),
            "{error}"
        );
    }

    #[test]
    fn every_metric_is_the_value_of_its_column() {
        let mut result = sample();
        result.runs.iter_mut().for_each(|run| run.flows = flowing(1, 80).flows);
        let mut csv = Vec::new();
        super::super::write_cells_csv(&mut csv, "", std::slice::from_ref(&result)).unwrap();
        let mut csv = csv::Reader::from_reader(csv.as_slice());
        let header = csv.headers().unwrap().clone();
        let row = csv.records().next().unwrap().unwrap();
        for metric in Metric::ALL {
            let place = header.iter().position(|column| column == metric.name()).unwrap();
            let value = super::super::number::field(metric.of(&result.summary()));
            assert_eq!(&row[place], value, "{metric}");
        }
    }

    #[test]
    fn an_axis_says_the_unit() {
        assert_eq!(Metric::MedianFct.axis(), "median FCT in seconds");
        assert_eq!(Metric::Throughput.axis(), "throughput in exchanges/s");
        assert_eq!(Metric::Retransmissions.axis(), "retransmissions per client");
        assert_eq!(Metric::Jain.axis(), "Jain’s index");
    }

    #[test]
    fn without_runs_nothing_is_known() {
        let summary = Summary::default();
        assert!(Metric::ALL.into_iter().all(|metric| metric.of(&summary).is_none()));
    }
}
