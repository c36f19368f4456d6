//! Seconds of Python and microseconds of mechanisms.

use coapace_control::{Draw, Duration, Instant};
use coapace_scenario::parse_time;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::value::microseconds;

/// The largest accepted time, in seconds: a double counts microseconds exactly up to here.
const LONGEST_S: f64 = 9e9;

/// A time in seconds, given as a number, as a `timedelta`, or as a text such as `2s`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seconds(pub(crate) f64);

impl<'py> FromPyObject<'_, 'py> for Seconds {
    type Error = PyErr;

    fn extract(value: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        // This also takes integers and the scalars of numpy.
        if let Ok(seconds) = value.extract::<f64>() {
            return Ok(Self(seconds));
        }
        if let Some(us) = microseconds(&value)? {
            return Ok(Self(us as f64 / 1e6));
        }
        let text: Option<String> = value.extract().ok();
        if let Some(span) = text.as_deref().and_then(parse_time) {
            return Ok(Self(span.as_micros() as f64 / 1e6));
        }
        Err(PyTypeError::new_err(format!(
            "a time must be seconds, a timedelta, or a text such as '2s', not {}",
            value.repr()?
        )))
    }
}

/// Converts seconds since the start to a moment.
///
/// # Errors
/// Raises `ValueError` if the time is negative, not finite, or longer than 285 years.
pub(crate) fn moment(name: &str, seconds: f64) -> PyResult<Instant> {
    span(name, seconds).map(|span| Instant::from_micros(span.as_micros()))
}

/// Converts seconds to a span.
///
/// # Errors
/// Returns the errors of [`moment`].
pub(crate) fn span(name: &str, seconds: f64) -> PyResult<Duration> {
    if (0.0..=LONGEST_S).contains(&seconds) {
        #[allow(clippy::cast_sign_loss)] // not below 0
        Ok(Duration::from_micros((seconds * 1e6).round() as u64))
    } else {
        Err(PyValueError::new_err(format!(
            "{name} is {seconds}, but must be seconds from 0 to {LONGEST_S:e}"
        )))
    }
}

/// Returns a span in seconds.
pub(crate) fn seconds(span: Duration) -> f64 {
    span.as_micros() as f64 / 1e6
}

/// Converts a random number to a draw.
///
/// # Errors
/// Raises `ValueError` if the number is not in [0, 1).
pub(crate) fn draw(fraction: f64) -> PyResult<Draw> {
    if (0.0..1.0).contains(&fraction) {
        // Below 2³², because the fraction is below 1.
        #[allow(clippy::cast_sign_loss)] // not below 0
        Ok(Draw::from_bits((fraction * 4_294_967_296.0) as u32))
    } else {
        Err(PyValueError::new_err(format!("draw is {fraction}, but must be a number from 0 to below 1")))
    }
}
