//! The arguments of mechanisms that are written in Python.

use coapace_control::{Cue, Ratio, Sample};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::seconds::{seconds, span};

/// The present moment, a random number, and the load: the arguments of every step of a mechanism.
#[pyclass(frozen, name = "Cue", module = "coapace")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct CueOfPython(pub(crate) Cue);

#[pymethods]
impl CueOfPython {
    /// The present moment, in seconds.
    #[getter]
    fn now(&self) -> f64 {
        self.0.now.as_micros() as f64 / 1e6
    }

    /// The present moment, in whole microseconds: exact, as every mechanism of Coapace counts.
    #[getter]
    fn now_us(&self) -> u64 {
        self.0.now.as_micros()
    }

    /// The random number of this step, uniform in [0, 1).
    #[getter]
    fn draw(&self) -> f64 {
        // Both numbers are exact in an f64, so the result stays below 1.
        f64::from(self.0.draw.to_bits()) / 4_294_967_296.0
    }

    /// The random number of this step times 2³²: a whole number, and so exact.
    #[getter]
    fn draw_bits(&self) -> u32 {
        self.0.draw.to_bits()
    }

    /// The number of exchanges with this destination that are under way, the present one included.
    #[getter]
    fn outstanding(&self) -> u16 {
        self.0.outstanding
    }

    /// Returns a time between `base` and `factor` times `base`, by the random number of this step: the dither of RFC
    /// 7252 §4.2. `base` and the result are rounded to microseconds, and `factor` to thousandths.
    #[pyo3(signature = (base, factor=1.5))]
    fn dither(&self, base: f64, factor: f64) -> PyResult<f64> {
        if !(1.0..=10.0).contains(&factor) {
            return Err(PyValueError::new_err(format!("factor is {factor}, but must be from 1 to 10")));
        }
        #[allow(clippy::cast_sign_loss)] // at least 1
        let ratio = Ratio::new((factor * 1_000.0).round() as u16, 1_000);
        Ok(seconds(self.0.draw.dither(span("base", base)?, ratio)))
    }
}

/// The measurements of an acknowledged exchange.
#[pyclass(frozen, name = "Sample", module = "coapace")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct SampleOfPython(pub(crate) Sample);

#[pymethods]
impl SampleOfPython {
    /// The time since the first transmission departed, in seconds.
    #[getter]
    fn since_first(&self) -> f64 {
        seconds(self.0.since_first)
    }

    /// The time since the first transmission departed, in whole microseconds.
    #[getter]
    fn since_first_us(&self) -> u64 {
        self.0.since_first.as_micros()
    }

    /// The time since the last transmission departed, in seconds.
    #[getter]
    fn since_last(&self) -> f64 {
        seconds(self.0.since_last)
    }

    /// The time since the last transmission departed, in whole microseconds.
    #[getter]
    fn since_last_us(&self) -> u64 {
        self.0.since_last.as_micros()
    }

    /// The number of retransmissions.
    #[getter]
    fn retransmits(&self) -> u8 {
        self.0.retransmits
    }

    /// The number of the answered transmission, 0 for the first; None unless a marking in the messages shows it.
    #[getter]
    fn answered(&self) -> Option<u8> {
        self.0.answered.map(|answer| answer.ordinal)
    }

    /// The round-trip time in seconds if it is unambiguous: without a retransmission, or if a marking shows which copy was answered.
    #[getter]
    fn unambiguous(&self) -> Option<f64> {
        self.0.unambiguous().map(seconds)
    }
}
