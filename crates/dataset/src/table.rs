//! A table.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, Schema};

use crate::Values;

/// A table: columns with names and one type each, all of one length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table(RecordBatch);

impl Table {
    /// Makes a table of columns.
    ///
    /// # Errors
    /// Fails if the columns have different lengths.
    pub fn new(columns: Vec<(String, Values)>) -> Result<Self, ArrowError> {
        let (fields, arrays): (Vec<_>, Vec<_>) = columns
            .into_iter()
            .map(|(name, values)| {
                let array = values.array();
                (Field::new(name, array.data_type().clone(), true), array)
            })
            .unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(Self)
    }

    /// Returns the rows as Arrow has them.
    pub fn batch(&self) -> &RecordBatch {
        &self.0
    }
}

impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Self {
        Self(batch)
    }
}
