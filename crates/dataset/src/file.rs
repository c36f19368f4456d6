//! Parquet files.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use arrow_array::{Array, RecordBatch, StringArray};
use parquet::arrow::arrow_reader::{ParquetRecordBatchReaderBuilder, RowSelection, RowSelector};
use parquet::arrow::{ArrowWriter, ProjectionMask};
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::Table;

/// Writes a table as a Parquet file. Equal tables give equal bytes.
///
/// # Errors
/// Errors of `out`.
pub fn write_parquet(table: &Table, out: impl Write + Send) -> io::Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        // The default names the parquet crate instead of the program that made the rows.
        .set_created_by(format!("coapace {}", env!("CARGO_PKG_VERSION")))
        .build();
    let batch = table.batch();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).map_err(broken)?;
    writer.write(batch).map_err(broken)?;
    writer.close().map(drop).map_err(broken)
}

/// Reads a Parquet file, whose rows may be divided over several tables.
///
/// # Errors
/// Errors of the file, or an incomplete Parquet file.
pub fn read_parquet(path: &Path) -> io::Result<Vec<Table>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?).map_err(broken)?;
    let batches: Result<Vec<RecordBatch>, _> = reader.build().map_err(broken)?.collect();
    Ok(batches.map_err(io::Error::other)?.into_iter().map(Table::from).collect())
}

/// Reads one text column of a Parquet file.
///
/// # Errors
/// Errors of the file, or a missing column.
pub(crate) fn read_parquet_text(path: &Path, column: &str) -> io::Result<Vec<String>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?).map_err(broken)?;
    let only = ProjectionMask::columns(reader.parquet_schema(), [column]);
    let mut texts = Vec::new();
    for batch in reader.with_projection(only).build().map_err(broken)? {
        let batch = batch.map_err(io::Error::other)?;
        let array =
            batch.column_by_name(column).and_then(|array| array.as_any().downcast_ref::<StringArray>());
        let Some(array) = array else { return Err(io::Error::other(format!("it has no column `{column}`"))) };
        // Only keys are read like this, and every row has one. So the n-th text belongs to the n-th row.
        texts.extend(array.iter().flatten().map(str::to_owned));
    }
    Ok(texts)
}

/// Reads some rows of a Parquet file. `is_wanted` has a value for each row: true if the row is read.
///
/// # Errors
/// Errors of the file.
pub(crate) fn read_parquet_rows(path: &Path, is_wanted: &[bool]) -> io::Result<Table> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?).map_err(broken)?;
    let rows =
        is_wanted.iter().map(|wanted| if *wanted { RowSelector::select(1) } else { RowSelector::skip(1) });
    let reader = reader.with_row_selection(RowSelection::from(rows.collect::<Vec<_>>()));
    // One batch for all rows: the default is 1024 rows a batch, and only the first batch is taken.
    let mut batches = reader.with_batch_size(is_wanted.len()).build().map_err(broken)?;
    let batch = batches.next().ok_or_else(|| io::Error::other("it has no row"))?;
    batch.map(Table::from).map_err(io::Error::other)
}

fn broken(error: ParquetError) -> io::Error {
    match error {
        // The text of the wrapper begins with `External:`, which means nothing to a user.
        ParquetError::External(error) => io::Error::other(error),
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;

    #[test]
    fn a_parquet_file_reads_back_as_its_table_and_a_truncated_one_is_an_error() {
        let table = Table::new(vec![
            ("name".to_owned(), Values::Text(vec![Some("a".to_owned()), None])),
            ("number".to_owned(), Values::Number(vec![None, Some(0.1)])),
        ])
        .unwrap();
        let mut bytes = Vec::new();
        write_parquet(&table, &mut bytes).unwrap();
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &bytes).unwrap();
        assert_eq!(read_parquet(file.path()).unwrap(), [table]);
        std::fs::write(file.path(), &bytes[..bytes.len() / 2]).unwrap();
        read_parquet(file.path()).unwrap_err();
    }
}
