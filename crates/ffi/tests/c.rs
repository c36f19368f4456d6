//! Tests of the library from C: built like a user builds it, linked by the C compiler of this machine, and run.
//!
//! Without a C compiler (`$CC`, or else `cc`), each test says so and checks nothing.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::{Mutex, PoisonError};

const STRICT: [&str; 6] = ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];

fn here(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// Returns a path that tests may write to.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("c");
    fs::create_dir_all(&folder).unwrap();
    folder.join(name)
}

/// Returns the compiler that `variable` names, or `otherwise`, if the machine has it.
fn compiler(variable: &str, otherwise: &str) -> Option<OsString> {
    let name = env::var_os(variable).unwrap_or_else(|| otherwise.into());
    let found = Command::new(&name).arg("--version").output().is_ok_and(|output| output.status.success());
    if !found {
        eprintln!("skipped: {} is missing", name.display());
    }
    found.then_some(name)
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command that must succeed, and returns its output.
fn succeed(command: &mut Command) -> String {
    let output = run(command);
    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Returns the library with all mechanisms, or with these features alone. It is built once for all tests.
fn library(features: Option<&'static str>) -> PathBuf {
    static BUILT: Mutex<BTreeMap<Option<&str>, PathBuf>> = Mutex::new(BTreeMap::new());
    let mut built = BUILT.lock().unwrap_or_else(PoisonError::into_inner);
    let make = || {
        let folder = scratch("target");
        let mut cargo = Command::new(env!("CARGO"));
        cargo.args(["build", "--quiet", "--offline", "--package", "coapace-ffi", "--profile", "firmware"]);
        cargo.args(["--manifest-path".as_ref(), here("Cargo.toml").as_os_str()]);
        cargo.args(["--target-dir".as_ref(), folder.as_os_str()]);
        if let Some(features) = features {
            cargo.args(["--no-default-features", "--features", features]);
        }
        succeed(&mut cargo);
        let kept = scratch(&format!("libcoapace-{}.a", features.unwrap_or("all")));
        fs::copy(folder.join("firmware/libcoapace.a"), &kept).unwrap();
        kept
    };
    built.entry(features).or_insert_with(make).clone()
}

/// Compiles and links a program.
fn build(cc: &OsStr, source: &Path, library: &Path, name: &str) -> PathBuf {
    let program = scratch(name);
    let include = here("include");
    succeed(
        Command::new(cc).args(STRICT).arg("-I").arg(include).args([source, library]).arg("-o").arg(&program),
    );
    program
}

/// Returns the files of vectors of `mechanism`, or all files.
fn vectors(mechanism: Option<&str>) -> Vec<PathBuf> {
    let is_asked = |name: &str| mechanism.is_none_or(|asked| name.split(['@', '.']).next() == Some(asked));
    let files = fs::read_dir(here("../../vectors")).unwrap().map(|entry| entry.unwrap().path());
    let files = files.filter(|path| path.extension().is_some_and(|extension| extension == "csv"));
    let mut files: Vec<_> =
        files.filter(|path| is_asked(path.file_name().unwrap().to_str().unwrap())).collect();
    files.sort();
    assert!(!files.is_empty());
    files
}

/// Compiles a text as C, and returns the path of the program.
fn build_text(cc: &OsStr, text: &str, library: &Path, name: &str) -> PathBuf {
    let source = scratch(&format!("{name}.c"));
    fs::write(&source, text).unwrap();
    build(cc, &source, library, name)
}

#[test]
fn the_c_interface_reproduces_every_vector() {
    let Some(cc) = compiler("CC", "cc") else { return };
    let program = build(&cc, &here("examples/vectors.c"), &library(None), "vectors");
    let files = vectors(None);
    let output = succeed(Command::new(&program).args(&files));
    let sum = output.lines().last().unwrap();
    assert!(sum.starts_with(&format!("{} files: ", files.len())), "{output}");
    assert!(sum.ends_with(" 0 left out, 0 differences"), "{output}");
}

#[test]
fn the_c_player_reports_a_vector_that_is_wrong_by_two_microseconds() {
    let Some(cc) = compiler("CC", "cc") else { return };
    let program = build(&cc, &here("examples/vectors.c"), &library(None), "wrong-vectors");
    let play = |first: &str, next: &str| {
        let file = scratch("wrong.csv");
        let header = "# mechanism default\nat_ms,event,draw,answered,timeout_ms,rto_ms,next_ms\n";
        fs::write(&file, format!("{header}0.000,start,0.5,,{first},2000.000,{next}\n")).unwrap();
        let output = run(Command::new(&program).arg(&file));
        (output.status.success(), String::from_utf8(output.stdout).unwrap())
    };
    assert!(play("2500.001", "").0);
    assert!(play("2500.000", "0.001").0);
    for (first, next, difference) in [
        ("2500.002", "", ":3: timeout_ms is 2500.000, not 2500.002\n"),
        ("", "", ":3: a timeout is armed\n"),
        ("soon", "", ":3: a number was expected\n"),
        ("2500.000", "0.002", ":3: next_ms is 0.000, not 0.002\n"),
    ] {
        let (agrees, output) = play(first, next);
        assert!(!agrees && output.contains(difference), "{output}");
    }
    assert!(!run(&mut Command::new(&program)).status.success(), "nothing was played");
}

#[test]
fn a_c_library_of_one_mechanism_reproduces_its_vectors_and_contains_no_other() {
    let Some(cc) = compiler("CC", "cc") else { return };
    let mentions = |library: &Path, text: &str| {
        let bytes = fs::read(library).unwrap();
        bytes.windows(text.len()).any(|window| window == text.as_bytes())
    };
    assert!(mentions(&library(None), "CocoaState") || mentions(&library(None), "5cocoa"));
    for (features, left_out) in [("fasor,parameters", false), ("fasor", true)] {
        let library = library(Some(features));
        assert!(!mentions(&library, "cocoa") && mentions(&library, "5fasor"), "{features}");
        let program = build(&cc, &here("examples/vectors.c"), &library, &format!("vectors-{features}"));
        let output = succeed(Command::new(&program).args(vectors(Some("fasor"))));
        // Presets are parameters.
        assert_eq!(!output.ends_with(" 0 left out, 0 differences\n"), left_out, "{output}");
        let output = run(Command::new(&program).args(vectors(Some("default"))));
        assert!(!output.status.success(), "nothing of it is there to be played");
    }
}

#[test]
fn the_firmware_example_in_c_runs() {
    let Some(cc) = compiler("CC", "cc") else { return };
    let output = succeed(&mut Command::new(build(&cc, &here("examples/client.c"), &library(None), "client")));
    assert!(output.contains("retransmission 1, "), "{output}");
    assert!(output.contains("peer 0: SRTT 200 ms, "), "{output}");
}

#[test]
fn the_c_examples_in_the_readme_and_the_header_run() {
    let Some(cc) = compiler("CC", "cc") else { return };
    let library = library(None);
    let readme = fs::read_to_string(here("README.md")).unwrap();
    let example = readme.split_once("```c\n").unwrap().1.split_once("```").unwrap().0;
    let output = succeed(&mut Command::new(build_text(&cc, example, &library, "readme")));
    assert_eq!(output, "ok: wait 2000 ms\n");

    let header = fs::read_to_string(here("include/coapace.h")).unwrap();
    let example =
        header.split_once("one destination:\n *\n").unwrap().1.split_once("\n *\n * Time.").unwrap().0;
    let lines: Vec<_> = example.lines().map(|line| line.trim_start_matches(" *").trim()).collect();
    let (outside, inside) = lines.split_at(lines.iter().position(|line| line.is_empty()).unwrap());
    // The comments of the example say which timeouts are armed.
    let waits = ["// sent: wait ", "// sent again: wait "];
    let checked = inside.iter().map(|line| match waits.iter().find_map(|wait| line.split_once(wait)) {
        Some((call, seconds)) => {
            let seconds = seconds.strip_suffix(" s").unwrap();
            format!(
                "if ({} != 0 || timeout_us != {seconds}000000) return 1;",
                call.trim().trim_end_matches(';')
            )
        }
        None => (*line).to_owned(),
    });
    let body = checked.collect::<Vec<_>>().join("\n");
    assert_eq!(body.matches("return 1").count(), 2, "{body}");
    let text = format!(
        "#include \"coapace.h\"\n{}\nint main(void)\n{{\n{body}\nreturn 0;\n}}\n",
        outside.join("\n")
    );
    succeed(&mut Command::new(build_text(&cc, &text, &library, "header")));
}

#[test]
fn the_c_header_compiles_as_cpp() {
    let Some(cpp) = compiler("CXX", "c++") else { return };
    let text = "#include \"coapace.h\"\n\
        static COAPACE_STATE(COAPACE_STATE_SIZE_MAX) peers[2];\n\
        int main() {\n\
            coapace_mechanism mechanism;\n\
            if (coapace_init(&mechanism, COAPACE_NAMES - 1) != COAPACE_OK) return 1;\n\
            return coapace_state_init(&mechanism, &peers[1], sizeof peers[1]);\n\
        }\n";
    let source = scratch("header.cpp");
    fs::write(&source, text).unwrap();
    let program = scratch("header-cpp");
    let strict = ["-std=c++11", "-Wall", "-Wextra", "-Wpedantic", "-Werror"];
    let mut command = Command::new(cpp);
    command.args(strict).arg("-I").arg(here("include")).args([&source, &library(None)]);
    succeed(command.arg("-o").arg(&program));
    succeed(&mut Command::new(program));
}

#[test]
fn a_program_takes_the_c_source_by_its_include_path_and_its_linker_line() {
    let Some(cc) = compiler("CC", "cc") else { return };
    let text = r#"
#include <stdio.h>
#include "coapace.h"
#if COAPACE_VERSION_NUMBER < 100
#error "too old"
#endif
static COAPACE_STATE(COAPACE_STATE_SIZE_MAX) peer;
int main(void)
{
    struct coapace_mechanism mechanism;
    printf("%s %d %d\n", coapace_version(), COAPACE_VERSION_NUMBER, COAPACE_NAMES);
    for (int number = 0; number < COAPACE_NAMES; number++) {
        struct coapace_exchange exchange;
        struct coapace_cue cue = {0, 0x40000000, 1};
        struct coapace_outcome outcome = {{90000, 90000, 0, 0, 0, 0}, COAPACE_ACKED};
        struct coapace_limits limits;
        struct coapace_gauges gauges;
        uint64_t first_us = 0, second_us = 0, copy_us = 0;
        /* Every call of both libraries. The C source has fewer mechanisms. */
        if (number != COAPACE_DEFAULT && number != COAPACE_LINUX_RTO && number != COAPACE_COCOA && number != COAPACE_FASOR &&
            number != COAPACE_FASOR_TOKEN && number != COAPACE_FASOR_OPTION && number != COAPACE_EBB && number != COAPACE_EBB_PLAIN) {
            continue;
        }
        if (coapace_parse(&mechanism, coapace_name(number)) != COAPACE_OK || coapace_init(&mechanism, number) != COAPACE_OK ||
            coapace_state_size(&mechanism) > sizeof peer || coapace_state_init(&mechanism, &peer, sizeof peer) != COAPACE_OK ||
            coapace_on_start(&mechanism, &peer, &exchange, &cue, &first_us) != COAPACE_OK ||
            coapace_on_end(&mechanism, &peer, &exchange, &outcome, &cue) != COAPACE_OK ||
            coapace_on_start(&mechanism, &peer, &exchange, &cue, &second_us) != COAPACE_OK ||
            coapace_on_retransmit(&mechanism, &peer, &exchange, &cue, &copy_us) != COAPACE_OK ||
            coapace_limits(&mechanism, &peer, &limits) != COAPACE_OK || coapace_gauges(&mechanism, &peer, &gauges) != COAPACE_OK) {
            return 1;
        }
        printf("%d %s %lu %lu %lu %d %lu\n", number, coapace_name(number), (unsigned long)first_us, (unsigned long)second_us,
               (unsigned long)copy_us, limits.marking, (unsigned long)gauges.rto_us);
    }
    puts(coapace_strerror(coapace_init(&mechanism, COAPACE_NAMES)));
    return 0;
}
"#;
    let rust = succeed(&mut Command::new(build_text(&cc, text, &library(None), "both")));
    let program = scratch("both-c");
    succeed(
        Command::new(&cc)
            .args(STRICT)
            .arg("-I")
            .arg(here("../../c"))
            .args([scratch("both.c"), here("../../c/coapace.c")])
            .arg("-o")
            .arg(&program),
    );
    assert_eq!(rust, succeed(&mut Command::new(program)));
    assert_eq!(rust.lines().count(), 10, "{rust}");
}
