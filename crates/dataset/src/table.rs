//! Tables with typed columns.

use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{ArrowError, Field, Schema};

use crate::Values;

/// A table: named columns of one type each and of equal length.
#[derive(Clone, Debug, PartialEq)]
pub struct Table(RecordBatch);

impl Table {
    /// Makes a table of columns.
    ///
    /// # Errors
    /// An error if the columns have different lengths.
    pub fn new(columns: Vec<(String, Values)>) -> Result<Self, ArrowError> {
        let (fields, arrays): (Vec<_>, Vec<_>) = columns
            .into_iter()
            .map(|(name, values)| {
                let array = values.array();
                // Nullable, because a value may be unknown in one table and known in the next, and both need one schema.
                (Field::new(name, array.data_type().clone(), true), array)
            })
            .unzip();
        RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).map(Self)
    }

    /// Returns the rows as a record batch of Arrow.
    pub fn batch(&self) -> &RecordBatch {
        &self.0
    }
}

impl From<RecordBatch> for Table {
    fn from(batch: RecordBatch) -> Self {
        Self(batch)
    }
}
