//! Sweeps into directories: the same rows however they came there.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use arrow_array::cast::AsArray;
use arrow_array::{Array, RecordBatch};
use arrow_schema::DataType;
use coapace_dataset::sweep::{self, Batch, Plan, Shard, SweepDirectory};
use coapace_dataset::{Table, VERSION, read_parquet, write_parquet};
use coapace_lab::experiment::{Trial, conduct};
use coapace_lab::grid::conditions;
use coapace_run::contender::Contender;
use coapace_scenario::{Scenario, Source};
use tempfile::TempDir;

/// The exchanges of a client, few so that a run is short.
const FEW: (&str, &str) = ("workload.exchanges", "5");

fn plan(settings: &[(&str, &str)], mechanisms: &[&str], seeds: (u64, u32)) -> Arc<Plan> {
    try_plan("nb-iot", settings, mechanisms, seeds).unwrap().into()
}

fn try_plan(
    scenario: &str,
    settings: &[(&str, &str)],
    mechanisms: &[&str],
    seeds: (u64, u32),
) -> Result<Plan, String> {
    let settings: Vec<_> =
        settings.iter().chain([&FEW]).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let mechanisms: Vec<_> = mechanisms.iter().map(|&label| label.to_owned()).collect();
    let source = Source::find(scenario).unwrap();
    Plan::new(source, conditions(&settings).unwrap(), &mechanisms, Some(seeds))
        .map_err(|error| error.to_string())
}

fn small() -> Arc<Plan> {
    plan(&[("clients", "2,5"), ("buffer", "2500,1410000")], &["default", "cocoa", "tcp"], (1, 3))
}

/// Opens a directory and makes the missing runs. Returns the number of runs made.
fn make(directory: &Path, plan: &Arc<Plan>, shard: Option<Shard>, jobs: usize) -> usize {
    let directory = SweepDirectory::open(directory, plan, shard).unwrap();
    let missing = directory.missing(plan);
    sweep::conduct(plan, &directory, missing, jobs, &AtomicBool::new(false), || Ok(()), &mut |_| ()).unwrap()
}

fn refusal(directory: &Path, plan: &Plan) -> String {
    SweepDirectory::open(directory, plan, None).unwrap_err().to_string()
}

/// Returns the row of every key. No key has two.
fn rows(directory: &Path) -> BTreeMap<String, RecordBatch> {
    let mut rows = BTreeMap::new();
    for path in files(directory, "parquet") {
        for table in read_parquet(&directory.join(path)).unwrap() {
            let batch = table.batch();
            let keys = batch.column_by_name("key").unwrap().as_string::<i32>();
            for place in 0..batch.num_rows() {
                let row = rows.insert(keys.value(place).to_owned(), batch.slice(place, 1));
                assert!(row.is_none(), "{} is there twice", keys.value(place));
            }
        }
    }
    rows
}

fn files(directory: &Path, ending: &str) -> Vec<String> {
    let names =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name.ends_with(ending)).collect()
}

fn texts(rows: &BTreeMap<String, RecordBatch>, column: &str) -> Vec<String> {
    rows.values()
        .map(|row| row.column_by_name(column).unwrap().as_string::<i32>().value(0).to_owned())
        .collect()
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

#[test]
fn the_rows_of_a_sweep_are_equal_for_any_number_of_threads_shards_and_batches() {
    let plan = small();
    let one = folder();
    assert_eq!(make(one.path(), &plan, None, 1), 36);
    let rows_of_one = rows(one.path());
    assert_eq!(rows_of_one.len(), 36);

    let two = folder();
    make(two.path(), &plan, None, 2);
    assert_eq!(rows(two.path()), rows_of_one);

    // Two shards in one directory, and a third in another whose files are copied.
    let (shards, elsewhere) = (folder(), folder());
    let made: usize = (1..=3)
        .map(|place| {
            make(
                if place < 3 { shards.path() } else { elsewhere.path() },
                &plan,
                Some(Shard { place, of: 3 }),
                1,
            )
        })
        .sum();
    assert_eq!(made, 36);
    for file in files(elsewhere.path(), "") {
        fs::copy(elsewhere.path().join(&file), shards.path().join(&file)).unwrap();
    }
    assert_eq!(rows(shards.path()), rows_of_one);
    assert_eq!(make(shards.path(), &plan, None, 1), 0, "nothing is missing");

    // Batches, as the workers of a cluster make them; one of them twice.
    let batches = folder();
    let directory = SweepDirectory::open(batches.path(), &plan, None).unwrap();
    let never = AtomicBool::new(false);
    for units in directory.missing(&plan).chunks(10) {
        let text = plan.batch(directory.columns(), units).to_json();
        for _ in 0..2 {
            let made = Batch::from_json(&text).unwrap().make(batches.path(), &never, || Ok(())).unwrap();
            assert_eq!(made, units.len());
        }
    }
    assert_eq!(files(batches.path(), "parquet").len(), 4);
    assert_eq!(rows(batches.path()), rows_of_one);
}

#[test]
fn a_row_of_a_sweep_equals_the_row_of_the_same_run_alone() {
    let folder = folder();
    let plan = plan(&[("clients", "3")], &["cocoa"], (7, 1));
    make(folder.path(), &plan, None, 1);
    let rows = rows(folder.path());
    let settings = [("clients".to_owned(), "3".to_owned()), (FEW.0.to_owned(), FEW.1.to_owned())];
    let scenario = Arc::new(Scenario::load("nb-iot", &settings).unwrap());
    // This one records series, too.
    let trial = Trial { first_seed: 7, ..Trial::new(&scenario, Contender::parse("cocoa").unwrap(), 1) };
    let alone = conduct(&[trial], 1, &|| ());
    assert_eq!(texts(&rows, "trace_hash"), [alone[0].runs[0].trace_hash.to_string()]);
    assert_eq!(texts(&rows, "scenario_hash"), [scenario.hash()]);
}

#[test]
fn an_interrupted_sweep_continues_without_repeating_runs() {
    let (plan, whole) = (small(), folder());
    make(whole.path(), &plan, None, 1);
    let folder = folder();
    let mut made = 0;
    // The first ends after some units, the others when they are stopped, if they are not done before.
    for most in [12, 36, 36] {
        let directory = SweepDirectory::open(folder.path(), &plan, None).unwrap();
        let stop = AtomicBool::new(false);
        let mut missing = directory.missing(&plan);
        missing.truncate(most);
        made += sweep::conduct(&plan, &directory, missing, 2, &stop, || Ok(()), &mut |_| {
            stop.store(most > 12, Ordering::Relaxed);
        })
        .unwrap();
    }
    assert!((14..=36).contains(&made), "{made}");
    // A process that was killed left this.
    fs::write(folder.path().join(".part-x.tmp"), "half a part").unwrap();
    fs::write(folder.path().join(".part-1-of-2-x.tmp"), "half a part").unwrap();
    assert_eq!(make(folder.path(), &plan, None, 2), 36 - made);
    assert_eq!(rows(folder.path()), rows(whole.path()));
    assert!(files(folder.path(), ".tmp").is_empty());
}

#[test]
fn a_larger_plan_adds_only_its_new_runs_to_a_sweep() {
    let folder = folder();
    make(folder.path(), &plan(&[("clients", "2")], &["default"], (1, 2)), None, 1);
    assert_eq!(make(folder.path(), &plan(&[("clients", "2,3")], &["default", "ebb"], (2, 2)), None, 1), 7);
    assert_eq!(rows(folder.path()).len(), 9);
}

#[test]
fn the_types_of_columns_do_not_depend_on_the_values_in_a_part_of_a_sweep() {
    let folder = folder();
    let settings = [("clients", "2,3"), ("network.up.radio.delay", "0.1 s,1 s"), ("errors", "none,high")];
    make(folder.path(), &plan(&settings, &["default", "cocoa+default"], (1, 1)), None, 1);
    // Each part alone has the schema of all.
    let rows = rows(folder.path());
    let types: BTreeMap<String, DataType> = rows
        .values()
        .next()
        .unwrap()
        .schema()
        .fields()
        .iter()
        .map(|field| (field.name().clone(), field.data_type().clone()))
        .collect();
    for (name, kind) in [
        ("key", DataType::Utf8),
        ("mechanism", DataType::Utf8),
        ("clients", DataType::Int64),
        ("seed", DataType::Int64),
        ("median_fct_s", DataType::Float64),
        ("relative_error", DataType::Float64),
        ("knob.clients", DataType::Float64),
        ("knob.errors", DataType::Utf8),
        ("share.cocoa", DataType::Float64),
        ("knob.network.up.radio.delay", DataType::Utf8),
    ] {
        assert_eq!(types.get(name), Some(&kind), "{name}");
    }
    // However it was written, a value is what the scenario made of it.
    let mut delays = texts(&rows, "knob.network.up.radio.delay");
    delays.sort();
    delays.dedup();
    assert_eq!(delays, ["1 s", "100 ms"]);
    let share = rows.values().map(|row| row.column_by_name("share.cocoa").unwrap().is_valid(0));
    assert_eq!(share.filter(|known| *known).count(), 8, "the mix has shares, and the other rows do not");
}

#[test]
fn duplicate_rows_are_removed_by_the_next_sweep() {
    let (plan, folder) = (small(), folder());
    make(folder.path(), &plan, None, 1);
    let before = rows(folder.path());
    // Processes that were thought dead wrote the same units in parts that were cut otherwise.
    let [part] = &files(folder.path(), "parquet")[..] else { panic!("one part is enough for 36 short runs") };
    let table = read_parquet(&folder.path().join(part)).unwrap().remove(0);
    for (name, rows) in [("part-0", table.batch().slice(0, 20)), ("part-z", table.batch().slice(5, 3))] {
        let file = fs::File::create(folder.path().join(format!("{name}.parquet"))).unwrap();
        write_parquet(&Table::from(rows), file).unwrap();
    }
    assert_eq!(make(folder.path(), &plan, None, 1), 0);
    assert_eq!(rows(folder.path()), before);
    assert_eq!(files(folder.path(), "parquet").len(), 2);
}

#[test]
fn a_batch_that_overlaps_two_smaller_ones_leaves_every_row_once() {
    let (plan, folder) = (small(), folder());
    let directory = SweepDirectory::open(folder.path(), &plan, None).unwrap();
    let make = |units: &[sweep::Unit]| {
        let batch = plan.batch(directory.columns(), units);
        batch.make(folder.path(), &AtomicBool::new(false), || Ok(())).unwrap();
    };
    // Names are hashes, so whole batches come before, between and after their halves.
    for pair in plan.units().chunks(2) {
        make(pair);
        pair.chunks(1).for_each(make);
    }
    directory.settle().unwrap();
    assert_eq!(rows(folder.path()).len(), 36);
}

#[test]
fn a_directory_of_a_sweep_refuses_plans_of_another_sweep() {
    let folder = folder();
    let first = plan(&[("clients", "2")], &["default"], (1, 1));
    make(folder.path(), &first, None, 1);

    let other = try_plan("lossy-lan", &[], &["default"], (1, 1)).unwrap();
    assert!(
        refusal(folder.path(), &other).starts_with("its sweep is of the scenario nb-iot, not of lossy-lan")
    );
    let mix = plan(&[("clients", "2")], &["default+cocoa"], (1, 1));
    let error = refusal(folder.path(), &mix);
    assert!(
        error.contains(
            "the rows of the sweep have no column `share.default`: name another directory with --to"
        ),
        "{error}"
    );
    let text =
        plan(&[("clients", "2"), (FEW.0, "5"), ("network.up.radio.delay", "1 s")], &["default"], (1, 1));
    assert!(refusal(folder.path(), &text).contains("no column `knob.network.up.radio.delay`"));

    let held = SweepDirectory::open(folder.path(), &first, None).unwrap();
    assert!(refusal(folder.path(), &first).contains("another sweep writes into it"));
    let shard = SweepDirectory::open(folder.path(), &first, Some(Shard { place: 1, of: 2 }));
    assert!(shard.unwrap_err().to_string().contains("another sweep writes into it"));
    drop(held);
    let shard = |place| SweepDirectory::open(folder.path(), &first, Some(Shard { place, of: 2 }));
    let (one, two) = (shard(1).unwrap(), shard(2).unwrap());
    assert_eq!(one.units(&first) + two.units(&first), 1);
    assert!(shard(1).is_err());
    drop((one, two));

    let manifest = folder.path().join("sweep.json");
    let text = fs::read_to_string(&manifest).unwrap();
    fs::write(&manifest, text.replace(VERSION, "0.0.0+zzz")).unwrap();
    assert!(
        refusal(folder.path(), &first)
            .starts_with("its sweep was begun with coapace 0.0.0+zzz, and this is ")
    );
    fs::write(&manifest, text.replace("\"scenario_hash\":\"", "\"scenario_hash\":\"0")).unwrap();
    assert!(refusal(folder.path(), &first).contains("the scenario nb-iot has changed since"));
    fs::remove_file(&manifest).unwrap();
    assert!(refusal(folder.path(), &first).contains("there are parts but no sweep.json"));
    fs::write(&manifest, "[]").unwrap();
    assert!(refusal(folder.path(), &first).contains("does not describe a sweep"));
    fs::write(&manifest, text).unwrap();

    let part = folder.path().join(&files(folder.path(), "parquet")[0]);
    let whole = fs::read(&part).unwrap();
    fs::write(&part, &whole[..whole.len() / 2]).unwrap();
    let error = refusal(folder.path(), &first);
    assert!(error.contains("is not a part of a sweep") && error.contains("remove it"), "{error}");
}

#[test]
fn a_batch_of_runs_from_another_version_is_refused() {
    let (plan, folder) = (small(), folder());
    let directory = SweepDirectory::open(folder.path(), &plan, None).unwrap();
    let text = plan.batch(directory.columns(), &plan.units()[..1]).to_json();
    let other = Batch::from_json(&text.replace(VERSION, "0.0.0+zzz")).unwrap();
    let error = other.make(folder.path(), &AtomicBool::new(false), || Ok(())).unwrap_err().to_string();
    assert!(
        error.contains("the sweep was made with coapace 0.0.0+zzz")
            && error.contains("same version everywhere"),
        "{error}"
    );
    assert!(Batch::from_json("{}").is_err());
}

#[test]
fn an_impossible_plan_of_a_sweep_is_refused() {
    for (settings, mechanisms, seeds, expected) in [
        (&[("cleints", "2")][..], &["default"][..], (1, 1), "did you mean `clients`?"),
        (&[], &["cocoaa"], (1, 1), "did you mean cocoa"),
        (&[("clients", "1")], &["default+cocoa"], (1, 1), "needs at least 2 clients"),
        (&[], &["default"], (1, 0), "are 0 runs; a sweep has 1 to 10000000"),
        (&[("clients", "1,2")], &["default"], (1, 10_000_000), "are 20000000 runs"),
        (&[], &["default"], (u64::MAX, 2), "runs"),
    ] {
        let error = try_plan("nb-iot", settings, mechanisms, seeds).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }
}

#[test]
fn conditions_with_equal_runs_count_once_in_a_sweep() {
    let plan = plan(&[("network.up.radio.delay", "0.1 s,100 ms")], &["default"], (1, 2));
    assert_eq!(plan.units().len(), 2);
}
