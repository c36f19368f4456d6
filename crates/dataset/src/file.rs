//! Parquet files.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use arrow_array::RecordBatch;
use parquet::arrow::ArrowWriter;
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use parquet::basic::Compression;
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;

use crate::Table;

/// Writes a table as a Parquet file. Equal tables give equal bytes.
///
/// # Errors
/// Fails as `out` does.
pub fn write_parquet(table: &Table, out: impl Write + Send) -> io::Result<()> {
    let properties = WriterProperties::builder()
        .set_compression(Compression::SNAPPY)
        .set_created_by(format!("coapace {}", env!("CARGO_PKG_VERSION")))
        .build();
    let batch = table.batch();
    let mut writer = ArrowWriter::try_new(out, batch.schema(), Some(properties)).map_err(broken)?;
    writer.write(batch).map_err(broken)?;
    writer.close().map(drop).map_err(broken)
}

/// Reads a Parquet file.
///
/// # Errors
/// Fails as the file does, or if it is no whole Parquet file.
pub fn read_parquet(path: &Path) -> io::Result<Vec<Table>> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?).map_err(broken)?;
    let batches: Result<Vec<RecordBatch>, _> = reader.build().map_err(broken)?.collect();
    Ok(batches.map_err(io::Error::other)?.into_iter().map(Table::from).collect())
}

fn broken(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(error) => io::Error::other(error),
        other => io::Error::other(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;

    #[test]
    fn a_file_gives_back_the_table_and_a_cut_one_an_error() {
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
