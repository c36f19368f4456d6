//! The time that a server works on a request.

use coapace_sim::{Jitter, Span, Stream};
use serde_json::Value;

use crate::patterns::exponential;
use crate::schema::document::{Item, TomlValue};
use crate::schema::error::Fault;
use crate::schema::json::any_of;
use crate::schema::kind::{KeyEntry, Lines, ValueKind};
use crate::schema::scalar::{RANGE, Scalar, TIME};
use crate::schema::table::{Keys, keys, table};

/// The distribution of the time that a server works on a request.
#[derive(Clone, Debug, PartialEq)]
pub enum ServiceTime {
    /// The same time for every request.
    Constant(Span),
    /// Uniform between two times.
    Uniform(Jitter),
    /// Exponentially distributed.
    Exponential(Exponential),
}

keys! {
    /// An exponentially distributed time, like the time in an M/M/1 queue.
    pub struct Exponential {
        /// The mean of the time.
        mean: Span, TIME;
    }
}

impl Default for ServiceTime {
    fn default() -> Self {
        Self::Constant(Span::ZERO)
    }
}

impl ServiceTime {
    /// Draws the time for one request from `stream`, with the key (`a`, `b`, 0).
    pub fn draw(&self, stream: Stream, a: u64, b: u64) -> Span {
        match self {
            Self::Constant(span) => *span,
            // Does not underflow: `RANGE` refuses a first time above the second.
            Self::Uniform(Jitter { min, max }) => *min + stream.within(*max - *min, a, b, 0),
            Self::Exponential(Exponential { mean }) => exponential(*mean, stream.unit(a, b, 0)),
        }
    }
}

/// The kind of `server.service_time`: a time, a list of two times, or the table of an [`Exponential`].
pub(crate) struct ServiceTimeKind;

impl ValueKind for ServiceTimeKind {
    type Value = ServiceTime;
    fn accepts(&self) -> String {
        let table = table::<Exponential>().accepts();
        format!("{}, or {}, or {table}", Scalar::accepts(&TIME), Scalar::accepts(&RANGE))
    }
    fn schema(&self) -> Value {
        any_of([Scalar::schema(&TIME), Scalar::schema(&RANGE), table::<Exponential>().schema()])
    }
    fn read(&self, item: &Item, path: &str) -> Result<ServiceTime, Fault> {
        let read = match item.value {
            // A table names its wrong key itself, which says more than the three accepted forms.
            TomlValue::Table(_) => return Exponential::read(item, path).map(ServiceTime::Exponential),
            TomlValue::List(_) => RANGE.parse(&item.value).map(ServiceTime::Uniform),
            _ => TIME.parse(&item.value).map(ServiceTime::Constant),
        };
        read.ok_or_else(|| self.refuse(item, path))
    }
    fn write(&self, value: &ServiceTime, path: &str, lines: &mut Lines) {
        match value {
            ServiceTime::Constant(span) => TIME.write(span, path, lines),
            ServiceTime::Uniform(range) => RANGE.write(range, path, lines),
            ServiceTime::Exponential(exponential) => exponential.write(path, lines),
        }
    }
    fn hint(&self, value: &TomlValue) -> String {
        Scalar::hint(&TIME, value) + &Scalar::hint(&RANGE, value)
    }
    fn keys(&self) -> Vec<KeyEntry> {
        Exponential::keys()
    }
}

#[cfg(test)]
mod tests {
    use coapace_sim::Luck;

    use super::*;

    /// Returns the mean and the standard deviation of 100,000 draws, in seconds.
    fn moments(time: &ServiceTime) -> (f64, f64) {
        let stream = Luck::new(1).stream("service");
        let draws: Vec<f64> =
            (0..100_000).map(|n| time.draw(stream, n % 7, n).as_nanos() as f64 / 1e9).collect();
        let mean = draws.iter().sum::<f64>() / draws.len() as f64;
        let variance = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>() / draws.len() as f64;
        (mean, variance.sqrt())
    }

    #[test]
    fn each_distribution_of_service_times_has_its_mean_and_standard_deviation() {
        let two = Span::from_secs(2);
        let uniform = Jitter { min: Span::from_secs(1), max: Span::from_secs(3) };
        for (time, deviation) in [
            (ServiceTime::Constant(two), 0.0),
            (ServiceTime::Uniform(uniform), 2.0 / 12_f64.sqrt()),
            (ServiceTime::Exponential(Exponential { mean: two }), 2.0),
        ] {
            let (mean, measured) = moments(&time);
            assert!((mean - 2.0).abs() < 0.03, "{time:?}: {mean}");
            assert!((measured - deviation).abs() < 0.03, "{time:?}: {measured}");
        }
    }
}
