//! Tables of results, which other libraries read through Arrow's PyCapsule interface.

use std::sync::Arc;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    ArrayRef, BooleanArray, Float64Array, Int64Array, RecordBatch, RecordBatchIterator, StringArray,
};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType, Field, Schema};
use coapace_lab::results::Value;
use pyo3::exceptions::{PyKeyError, PyRuntimeError};
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyList};

/// A table: columns with names and one type each. pandas, polars, pyarrow and DuckDB read it without a copy of their own.
#[pyclass(frozen, module = "coapace._native")]
#[derive(Clone, Debug)]
pub(crate) struct Table(RecordBatch);

/// The values of a column, all of one type. `None` is an unknown value.
pub(crate) enum Values {
    Text(Vec<Option<String>>),
    Number(Vec<Option<f64>>),
    Count(Vec<Option<i64>>),
    Flag(Vec<Option<bool>>),
}

impl Values {
    /// Returns the values of a column of rows. A column with a text in it is text, one with a broken number is of floats.
    pub(crate) fn of(values: Vec<Value>) -> Self {
        let has = |is: fn(&Value) -> bool| values.iter().any(is);
        if has(|value| matches!(value, Value::Text(_) | Value::Nested(_))) {
            return Self::Text(values.into_iter().map(text).collect());
        }
        if has(|value| matches!(value, Value::Flag(_))) {
            let flag = |value: Value| if let Value::Flag(flag) = value { Some(flag) } else { None };
            return Self::Flag(values.into_iter().map(flag).collect());
        }
        if has(|value| matches!(value, Value::Count(_))) && !has(|value| matches!(value, Value::Number(_))) {
            let count =
                |value: Value| if let Value::Count(count) = value { i64::try_from(count).ok() } else { None };
            return Self::Count(values.into_iter().map(count).collect());
        }
        let number = |value: Value| match value {
            Value::Number(number) => Some(number),
            Value::Count(count) => Some(count as f64),
            _ => None,
        };
        Self::Number(values.into_iter().map(number).collect())
    }

    fn array(self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(StringArray::from(values)),
            Self::Number(values) => Arc::new(Float64Array::from(values)),
            Self::Count(values) => Arc::new(Int64Array::from(values)),
            Self::Flag(values) => Arc::new(BooleanArray::from(values)),
        }
    }
}

fn text(value: Value) -> Option<String> {
    match value {
        Value::Nothing => None,
        Value::Text(text) => Some(text),
        Value::Number(number) => Some(number.to_string()),
        Value::Count(count) => Some(count.to_string()),
        Value::Flag(flag) => Some(flag.to_string()),
        Value::Nested(value) => Some(value.to_string()),
    }
}

impl Table {
    /// Returns a table of columns of one length.
    pub(crate) fn new(columns: Vec<(String, Values)>) -> PyResult<Self> {
        let (fields, arrays): (Vec<_>, Vec<_>) = columns
            .into_iter()
            .map(|(name, values)| {
                let array = values.array();
                (Field::new(name, array.data_type().clone(), true), array)
            })
            .unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(Self).map_err(failed)
    }
}

#[pymethods]
impl Table {
    /// The names of the columns, in their order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.num_rows()
    }

    /// Returns the values of a column as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(array) = self.0.column_by_name(name) else {
            return Err(PyKeyError::new_err(format!("no column {name:?}; `columns` has the names")));
        };
        let any = array.as_any();
        if let Some(array) = any.downcast_ref::<StringArray>() {
            PyList::new(py, array)
        } else if let Some(array) = any.downcast_ref::<Float64Array>() {
            PyList::new(py, array)
        } else if let Some(array) = any.downcast_ref::<Int64Array>() {
            PyList::new(py, array)
        } else if let Some(array) = any.downcast_ref::<BooleanArray>() {
            PyList::new(py, array)
        } else {
            Ok(PyList::empty(py))
        }
    }

    /// The schema, by Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema =
            FFI_ArrowSchema::try_from(DataType::Struct(self.0.schema().fields().clone())).map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, by Arrow's PyCapsule interface. The types are those of the table, whatever is requested.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        let _ = requested_schema;
        let batches = RecordBatchIterator::new([Ok::<_, ArrowError>(self.0.clone())], self.0.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}

fn failed(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
