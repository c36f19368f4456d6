//! Values of settings, in the types that Python users write.

use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyFloat, PyInt, PyString};

/// Converts a Python value to text as `--set` accepts it.
///
/// # Errors
/// Raises `TypeError` if the value cannot be a setting.
pub(crate) fn written(value: &Bound<'_, PyAny>) -> PyResult<String> {
    let Some(single) = single(value)? else {
        let Ok(items) = value.try_iter() else { return Err(refused(value)) };
        let items = items.map(|item| {
            let item = item?;
            match single_of_list(&item)? {
                Some(text) => Ok(text),
                None => written(&item),
            }
        });
        return Ok(format!("[{}]", items.collect::<PyResult<Vec<String>>>()?.join(", ")));
    };
    Ok(single.0)
}

fn single_of_list(item: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    // Text in a list may contain a comma, so it is quoted.
    Ok(single(item)?.map(|(text, is_text)| if is_text { format!("{text:?}") } else { text }))
}

/// Returns a single value as text, and whether it is text in Python; `None` if it may be several values.
fn single(value: &Bound<'_, PyAny>) -> PyResult<Option<(String, bool)>> {
    // A bool is an int in Python, so it comes first.
    if let Ok(flag) = value.cast::<PyBool>() {
        return Ok(Some((flag.is_true().to_string(), false)));
    }
    if value.is_instance_of::<PyString>() || value.is_instance_of::<PyInt>() {
        return Ok(Some((value.str()?.to_string(), value.is_instance_of::<PyString>())));
    }
    if value.is_instance_of::<PyFloat>() {
        // Display writes no exponent, and quantities have none.
        return Ok(Some((format!("{}", value.extract::<f64>()?), false)));
    }
    if let Some(us) = microseconds(value)? {
        return Ok(Some((format!("{us} us"), true)));
    }
    if value.hasattr("__fspath__")? {
        return Ok(Some((value.call_method0("__fspath__")?.str()?.to_string(), true)));
    }
    // Scalars and arrays of numpy and of libraries like it.
    for plain in ["tolist", "__index__", "__float__"] {
        if value.hasattr(plain)? {
            let inner = value.call_method0(plain)?;
            // A type that returns itself would be asked without end.
            return if inner.get_type().is(value.get_type()) {
                Err(refused(value))
            } else {
                single_or_list(&inner)
            };
        }
    }
    Ok(None)
}

/// Returns one or several values as text. `inner` is a scalar or an array of a library, converted to a plain type of
/// Python.
fn single_or_list(inner: &Bound<'_, PyAny>) -> PyResult<Option<(String, bool)>> {
    match single(inner)? {
        Some(single) => Ok(Some(single)),
        None => written(inner).map(|text| Some((text, false))),
    }
}

/// Returns the microseconds of a `timedelta`, of pandas too; `None` for anything else.
pub(crate) fn microseconds(value: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    // The type of pandas has the same attributes, and its nanoseconds are dropped.
    if value.hasattr("total_seconds")? {
        let part = |name: &str| value.getattr(name)?.extract::<i64>();
        let seconds = part("days")? * 86_400 + part("seconds")?;
        // A `timedelta` may have 10⁹ days, whose microseconds exceed 64 bits.
        return Ok(seconds.checked_mul(1_000_000).map(|us| us + part("microseconds").unwrap_or_default()));
    }
    Ok(None)
}

fn refused(value: &Bound<'_, PyAny>) -> PyErr {
    let shown = value.repr().map_or_else(|_| "this".to_owned(), |shown| shown.to_string());
    PyTypeError::new_err(format!(
        "a value must be a str, a number, a bool, a path, a timedelta, or a list of these, not {shown}"
    ))
}
