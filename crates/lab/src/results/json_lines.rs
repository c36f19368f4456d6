//! Results as JSON lines: one object a cell, or one object a run with everything it measured.

use std::borrow::Cow;
use std::io;

use serde::{Deserialize, Serialize};

use super::{Cell, CellResult, Published, RunResult, Summary};

#[derive(Serialize)]
struct CellLine<'a> {
    #[serde(flatten)]
    cell: &'a Cell,
    #[serde(flatten)]
    summary: Summary,
    published: Option<&'a Published>,
    relative_error: Option<f64>,
    commit: &'a str,
}

#[derive(Serialize, Deserialize)]
struct RunLine<'a> {
    #[serde(flatten)]
    cell: Cow<'a, Cell>,
    #[serde(flatten)]
    run: Cow<'a, RunResult>,
    published: Option<Cow<'a, Published>>,
    commit: Cow<'a, str>,
}

/// Writes one object a cell, its seeds pooled. The names are those of the CSV's columns.
///
/// # Errors
/// Those of `out`.
pub fn write_cells_json_lines(
    mut out: impl io::Write,
    commit: &str,
    results: &[CellResult],
) -> io::Result<()> {
    for result in results {
        let line = CellLine {
            cell: &result.cell,
            summary: result.summary(),
            published: result.published.as_ref(),
            relative_error: result.relative_error(),
            commit,
        };
        serde_json::to_writer(&mut out, &line)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}

/// Writes one object a run, its series included but not its film, so that [`read_runs_json_lines`] loses nothing else.
///
/// # Errors
/// Those of `out`.
pub fn write_runs_json_lines(
    mut out: impl io::Write,
    commit: &str,
    results: &[CellResult],
) -> io::Result<()> {
    for result in results {
        for run in &result.runs {
            let line = RunLine {
                cell: Cow::Borrowed(&result.cell),
                run: Cow::Borrowed(run),
                published: result.published.as_ref().map(Cow::Borrowed),
                commit: commit.into(),
            };
            serde_json::to_writer(&mut out, &line)?;
            out.write_all(b"\n")?;
        }
    }
    out.flush()
}

/// Reads what [`write_runs_json_lines`] wrote: the commit of the first line, and the cells in the order they come.
///
/// # Errors
/// Those of `input`; one of kind `InvalidData` that names the line if it is no run.
pub fn read_runs_json_lines(input: impl io::BufRead) -> io::Result<(String, Vec<CellResult>)> {
    let mut commit = None;
    let mut results: Vec<CellResult> = Vec::new();
    for (number, line) in input.lines().enumerate() {
        let line = line?;
        if line.trim().is_empty() {
            continue;
        }
        let line: RunLine = serde_json::from_str(&line).map_err(|error| {
            io::Error::new(io::ErrorKind::InvalidData, format!("line {}: {error}", number + 1))
        })?;
        commit.get_or_insert_with(|| line.commit.into_owned());
        let (cell, run) = (line.cell.into_owned(), line.run.into_owned());
        if let Some(result) = results.iter_mut().rev().find(|result| result.cell == cell) {
            result.runs.push(run);
        } else {
            let published = line.published.map(Cow::into_owned);
            results.push(CellResult { cell, runs: vec![run], published });
        }
    }
    Ok((commit.unwrap_or_default(), results))
}

#[cfg(test)]
mod tests {
    use super::super::cell_result::tests::sample;
    use super::*;

    #[test]
    fn runs_parse_back_to_what_they_were() {
        let mut other = sample();
        other.cell.mechanism = "default".into();
        other.published = None;
        let results = [sample(), other];
        let mut out = Vec::new();
        write_runs_json_lines(&mut out, "c0ffee", &results).unwrap();
        assert_eq!(str::from_utf8(&out).unwrap().lines().count(), 4);
        let (commit, read) = read_runs_json_lines(out.as_slice()).unwrap();
        assert_eq!(commit, "c0ffee");
        assert_eq!(read, results);
    }

    #[test]
    fn a_cell_is_one_object_that_says_how_to_make_it_again() {
        let mut out = Vec::new();
        write_cells_json_lines(&mut out, "c0ffee", &[sample()]).unwrap();
        let line: serde_json::Value = serde_json::from_slice(&out).unwrap();
        assert_eq!(line["median_fct_s"], 37.75);
        assert_eq!(line["p90"], serde_json::Value::Null);
        assert_eq!(line["buffer_bytes"], 2500);
        assert_eq!(line["knobs"]["delay_ms"], "200");
        assert_eq!(
            (&line["seed_first"], &line["seed_last"], &line["runs"]),
            (&1.into(), &2.into(), &2.into())
        );
        assert_eq!(line["commit"], "c0ffee");
        assert_eq!(line["scenario_hash"], "0000000000000abc");
        assert_eq!(line["trace_hash"], sample().summary().trace_hash.to_string());
    }

    #[test]
    fn a_film_is_too_much_for_a_line() {
        let mut filmed = sample();
        filmed.runs[0].film = Some(Box::default());
        let mut out = Vec::new();
        write_runs_json_lines(&mut out, "c0ffee", &[filmed]).unwrap();
        assert!(!str::from_utf8(&out).unwrap().contains("film"));
        assert_eq!(read_runs_json_lines(out.as_slice()).unwrap().1, [sample()]);
    }

    #[test]
    fn a_broken_line_is_named() {
        let error = read_runs_json_lines("\n{}\n".as_bytes()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::InvalidData);
        assert!(error.to_string().starts_with("line 2: "), "{error}");
    }
}
