//! Tables of results, which other libraries read through Arrow's PyCapsule interface.

use std::fs::File;
use std::path::PathBuf;

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{BooleanArray, Float64Array, Int64Array, RecordBatchIterator, StringArray};
use arrow_schema::ffi::FFI_ArrowSchema;
use arrow_schema::{ArrowError, DataType};
use coapace_dataset::{VERSION, pack_table, unpack_table, write_parquet};
use pyo3::exceptions::{PyKeyError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyCapsule, PyList};

use crate::failing::{checked, refused_by_system};

/// A table: columns with names and one type each. pandas, polars, pyarrow and DuckDB read it without copying.
#[pyclass(frozen, eq, module = "coapace._native")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Table(coapace_dataset::Table);

impl Table {
    /// Wraps a table of results.
    pub(crate) fn new(table: Result<coapace_dataset::Table, ArrowError>) -> PyResult<Self> {
        table.map(Self).map_err(failed)
    }
}

#[pymethods]
impl Table {
    /// The names of the columns, from left to right.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.0.batch().schema().fields().iter().map(|field| field.name().clone()).collect()
    }

    fn __len__(&self) -> usize {
        self.0.batch().num_rows()
    }

    /// Returns the values of a column as a list.
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(array) = self.0.batch().column_by_name(name) else {
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
            // Tables of results have no other types.
            Ok(PyList::empty(py))
        }
    }

    /// Writes a Parquet file. Equal tables give equal bytes.
    fn write_parquet(&self, py: Python<'_>, path: PathBuf) -> PyResult<()> {
        let written = py.detach(|| write_parquet(&self.0, File::create(&path)?));
        written.map_err(|error| refused_by_system("cannot write", &path, &error))
    }

    /// Returns some of the rows, without copying them.
    fn slice(&self, first: usize, count: usize) -> Self {
        // Arrow panics at a slice beyond the last row.
        let first = first.min(self.__len__());
        Self(self.0.batch().slice(first, count.min(self.__len__() - first)).into())
    }

    /// Pickled as a stream of Arrow IPC.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, PickledTable<'py>)> {
        let bytes = py.detach(|| pack_table(&self.0)).map_err(failed)?;
        let restore = py.import("coapace._native")?.getattr("restore_table")?;
        Ok((restore, (VERSION, PyBytes::new(py, &bytes))))
    }

    /// The schema, by Arrow's PyCapsule interface.
    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(DataType::Struct(self.0.batch().schema().fields().clone()))
            .map_err(failed)?;
        PyCapsule::new_with_value(py, schema, c"arrow_schema")
    }

    /// The rows, by Arrow's PyCapsule interface. The columns have the types of the table, whatever is requested.
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // Arrow's interface lets a producer ignore the request.
        let _ = requested_schema;
        let batches =
            RecordBatchIterator::new([Ok::<_, ArrowError>(self.0.batch().clone())], self.0.batch().schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}

/// The content of a pickled table: the version, and its rows.
type PickledTable<'py> = (&'static str, Bound<'py, PyBytes>);

/// Restores a pickled table.
#[pyfunction]
pub(crate) fn restore_table(version: &str, bytes: &[u8]) -> PyResult<Table> {
    checked(version)?;
    unpack_table(bytes).map(Table).map_err(|error| PyValueError::new_err(error.to_string()))
}

fn failed(error: ArrowError) -> PyErr {
    PyRuntimeError::new_err(error.to_string())
}
