//! `coapace reproduce --artifact` and `coapace reproduce --check`.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;
use std::sync::LazyLock;

use crate::common::{Scratch, coapace, column, command, interrupt};

/// The arguments of a reproduction of 30 runs.
pub(crate) const PAPER: [&str; 5] = ["reproduce", "betzler2015", "--seeds", "2-2", "--quiet"];

/// An artefact in memory.
struct Artefact {
    /// The bytes of each file, with its path inside the artefact.
    files: Vec<(String, Vec<u8>)>,
    /// The rows that the command printed.
    rows: String,
}

/// The artefact that all tests copy: to make it takes seconds.
static ARTEFACT: LazyLock<Artefact> = LazyLock::new(|| {
    let scratch = Scratch::new();
    let folder = scratch.file("artifact");
    let rows = coapace(&[&PAPER[..], &["--format", "csv", "--artifact", &folder]].concat()).success();
    let names = |part: &str| {
        let entries = fs::read_dir(format!("{folder}/{part}")).expect("a folder");
        let files = entries.map(|entry| entry.expect("an entry")).filter(|entry| entry.path().is_file());
        files.map(|file| format!("{part}/{}", file.file_name().display())).collect::<Vec<_>>()
    };
    let files = [".", "results", "scenarios"].into_iter().flat_map(names);
    let files = files.map(|name| (name.clone(), fs::read(format!("{folder}/{name}")).expect("a file")));
    Artefact { files: files.collect(), rows }
});

/// Writes an artefact to a folder of its own. Returns the folder, and the rows that the command printed.
fn artifact(scratch: &Scratch) -> (String, String) {
    let folder = scratch.file("artifact");
    for (name, bytes) in &ARTEFACT.files {
        let path = Path::new(&folder).join(name);
        fs::create_dir_all(path.parent().expect("the folder at least")).expect("a folder");
        fs::write(path, bytes).expect("it is written");
    }
    (folder, ARTEFACT.rows.clone())
}

/// Changes the text of a file, and takes its hash out of `SHA256SUMS`, so that its content is believed.
fn forge(folder: &str, name: &str, change: impl FnOnce(String) -> String) {
    let path = format!("{folder}/{name}");
    fs::write(&path, change(fs::read_to_string(&path).expect("the file"))).expect("it is written");
    let sums = format!("{folder}/SHA256SUMS");
    let text = fs::read_to_string(&sums).expect("the hashes");
    let others: String =
        text.lines().filter(|line| !line.ends_with(name)).flat_map(|line| [line, "\n"]).collect();
    fs::write(sums, others).expect("they are written");
}

#[test]
fn an_artefact_has_the_rows_that_the_command_printed_and_repeats_identically() {
    let scratch = Scratch::new();
    let (folder, rows) = artifact(&scratch);
    assert_eq!(fs::read_to_string(format!("{folder}/results/cells.csv")).expect("the cells"), rows);
    let runs = fs::read_to_string(format!("{folder}/results/runs.csv")).expect("the runs");
    assert_eq!(column(&runs, "seed"), ["2"; 30]);
    for name in
        ["report.html", "page.md", "README.md", "manifest.json", "ro-crate-metadata.json", "SHA256SUMS"]
    {
        assert!(fs::metadata(format!("{folder}/{name}")).expect(name).len() > 100, "{name}");
    }
    let said = coapace(&["reproduce", "--check", &folder]).success();
    let lines: Vec<&str> = said.lines().collect();
    assert_eq!(lines[0], "identical: 30 runs, every event and every value");
    let compared = lines[1].strip_prefix("identical byte for byte: ").expect(lines[1]);
    for name in [
        "README.md",
        "manifest.json",
        "page.md",
        "report.html",
        "results/runs.csv",
        "results/clients.parquet",
    ] {
        assert!(compared.contains(name), "{name}: {said}");
    }
    assert!(
        compared.contains("ro-crate-metadata.json") && compared.ends_with(" files in scenarios/"),
        "{said}"
    );
    assert_eq!(lines[2..], ["taken as recorded: the command line, the program and the moment of writing"]);
    let occupied = coapace(&[&PAPER[..], &["--artifact", &folder]].concat());
    assert!(occupied.failure(1).contains("name a new folder"), "{occupied:?}");
}

#[test]
fn a_scenario_of_an_artefact_runs_on_its_own_and_gives_the_recorded_trace() {
    let scratch = Scratch::new();
    let (folder, rows) = artifact(&scratch);
    let (hash, mechanism) =
        (column(&rows, "scenario_hash")[0].to_owned(), column(&rows, "mechanism")[0].to_owned());
    let scenario = format!("{folder}/scenarios/{}-{hash}.toml", column(&rows, "scenario")[0]);
    let run = ["run", &scenario, "-m", &mechanism, "--seeds", "2-2", "--format", "csv", "--quiet"];
    let alone = coapace(&run).success();
    assert_eq!(column(&alone, "trace_hash")[0], column(&rows, "trace_hash")[0]);
}

#[test]
fn a_damaged_artefact_is_reported_before_any_run_starts() {
    let scratch = Scratch::new();
    let (folder, _) = artifact(&scratch);
    let path = format!("{folder}/results/runs.parquet");
    let mut bytes = fs::read(&path).expect("the runs");
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    fs::write(&path, bytes).expect("it is written");
    let outcome = coapace(&["reproduce", "--check", &folder]);
    assert_eq!(outcome.failure(3), "the artefact is damaged, or was edited");
    assert_eq!(outcome.stdout, "results/runs.parquet is not as it was written\n");
    fs::remove_file(format!("{folder}/SHA256SUMS")).expect("it is removed");
    assert!(coapace(&["reproduce", "--check", &folder]).failure(1).contains("an incomplete artefact"));
}

#[test]
fn runs_that_differ_from_an_artefact_are_reported_with_both_hashes() {
    let scratch = Scratch::new();
    let (folder, rows) = artifact(&scratch);
    let runs = fs::read_to_string(format!("{folder}/results/runs.csv")).expect("the runs");
    let hash = column(&runs, "trace_hash")[0].to_owned();
    forge(&folder, "manifest.json", |text| text.replacen(&hash, "0123456789abcdef", 1));
    let differs = coapace(&["reproduce", "--check", &folder, "--quiet"]);
    assert_eq!(differs.failure(3), "1 of 30 runs differ");
    let message = format!("seed 2: recorded 0123456789abcdef, repeated {hash}\n");
    assert!(differs.stdout.ends_with(&message) && differs.stdout.lines().count() == 1, "{}", differs.stdout);

    let scenario = column(&rows, "scenario_hash")[0].to_owned();
    forge(&folder, "manifest.json", |text| {
        let text = text.replace(&scenario, "00000000000000ff");
        text.replacen("\"commit\": \"", "\"commit\": \"other-", 1)
    });
    let other = coapace(&["reproduce", "--check", &folder]);
    assert!(other.failure(3).contains("nothing was run"), "{other:?}");
    assert!(other.stdout.starts_with("another program: recorded by coapace "), "{other:?}");
    assert!(other.stdout.contains("(scenario 00000000000000ff)"), "{other:?}");
}

#[test]
fn edited_results_of_an_artefact_are_reported_even_with_adjusted_hashes() {
    let scratch = Scratch::new();
    let (folder, _) = artifact(&scratch);
    forge(&folder, "ro-crate-metadata.json", |text| {
        text.replacen("\"name\": ", "\"author\": \"me\", \"name\": ", 1)
    });
    let said = coapace(&["reproduce", "--check", &folder, "--quiet"]).success();
    assert!(said.ends_with("not compared: ro-crate-metadata.json, which was edited\n"), "{said}");
    assert_eq!(said.matches("ro-crate-metadata.json").count(), 1, "{said}");

    forge(&folder, "results/cells.csv", |text| text.replacen(",2", ",3", 1));
    forge(&folder, "page.md", |text| text + "All of it is met.\n");
    forge(&folder, "manifest.json", |text| text.replacen("\"title\": \"", "\"title\": \"Another ", 1));
    let edited = coapace(&["reproduce", "--check", &folder, "--quiet"]);
    assert!(edited.failure(3).starts_with("every run is identical, but 3 of "), "{edited:?}");
    for name in ["results/cells.csv", "page.md", "manifest.json"] {
        assert!(edited.stdout.contains(&format!("{name} differs from the repeated file\n")), "{edited:?}");
    }
    assert!(!edited.stdout.contains("identical"), "{edited:?}");
}

#[test]
fn live_and_interrupted_reproductions_write_no_artefact() {
    let scratch = Scratch::new();
    let folder = scratch.file("artifact");
    let live = coapace(&["reproduce", "raitahila2019", "--live", "--artifact", &folder]);
    assert!(live.failure(2).contains("--artifact <DIR>"), "{live:?}");

    let mut child = command()
        .args(["reproduce", "raitahila2019", "--seeds", "50000", "--format", "csv", "--jobs", "1"])
        .args(["--artifact", &folder])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("it starts");
    // It handles signals before it prints the header.
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    let mut header = String::new();
    stdout.read_line(&mut header).expect("a line");
    interrupt(&child);
    std::io::copy(&mut stdout, &mut std::io::sink()).expect("the rest");
    assert_eq!(child.wait().expect("it ends").code(), Some(130));
    assert_eq!(fs::read_dir(&folder).expect("the folder").count(), 0);
}
