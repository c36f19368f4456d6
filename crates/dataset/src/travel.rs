//! Serialised tables and results, for processes of the same version.

use arrow_array::RecordBatch;
use arrow_ipc::reader::StreamReader;
use arrow_ipc::writer::StreamWriter;
use arrow_schema::ArrowError;
use coapace_lab::papers::References;
use coapace_lab::results::CellResult;

use crate::Table;

/// Returns a table as a stream of Arrow IPC.
///
/// # Errors
/// Errors of Arrow.
pub fn pack_table(table: &Table) -> Result<Vec<u8>, ArrowError> {
    let batch = table.batch();
    let mut writer = StreamWriter::try_new(Vec::new(), &batch.schema())?;
    writer.write(batch)?;
    writer.into_inner()
}

/// Reads the bytes of [`pack_table`].
///
/// # Errors
/// An error if the bytes are not a table.
pub fn unpack_table(bytes: &[u8]) -> Result<Table, ArrowError> {
    let mut reader = StreamReader::try_new(bytes, None)?;
    let schema = reader.schema();
    let batch = reader.next().transpose()?;
    // A stream of a schema alone is a table without rows.
    Ok(Table::from(batch.unwrap_or_else(|| RecordBatch::new_empty(schema))))
}

/// Returns results as JSON, with the published values and bounds that they are compared with. Films of meshes are left out.
///
/// # Errors
/// An error if a value is not finite.
pub fn pack_results(results: &[CellResult], references: &References) -> Result<String, String> {
    serde_json::to_string(&(results, references)).map_err(|error| error.to_string())
}

/// Reads the text of [`pack_results`].
///
/// # Errors
/// Returns one line if the text does not contain results.
pub fn unpack_results(text: &str) -> Result<(Vec<CellResult>, References), String> {
    serde_json::from_str(text).map_err(|error| format!("this text has no results of coapace: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Values;

    #[test]
    fn a_serialised_table_reads_back_unchanged_and_other_bytes_are_an_error() {
        for rows in [0, 3] {
            let table = Table::new(vec![
                ("name".to_owned(), Values::Text(vec![Some("a".to_owned()); rows])),
                ("number".to_owned(), Values::Number(vec![None; rows])),
            ])
            .unwrap();
            assert_eq!(unpack_table(&pack_table(&table).unwrap()).unwrap(), table);
        }
        unpack_table(b"no table").unwrap_err();
        unpack_results("no results").unwrap_err();
    }
}
