//! Results on their way to other processes.

use std::sync::Arc;

use coapace_lab::experiment::{Trial, conduct};
use coapace_lab::results::CellResult;
use coapace_run::contender::Contender;
use coapace_scenario::Scenario;

fn cells(name: &str, settings: &[(&str, &str)], mechanism: &str) -> Vec<CellResult> {
    let settings: Vec<_> =
        settings.iter().map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect();
    let scenario = Arc::new(Scenario::load(name, &settings).unwrap());
    conduct(&[Trial::new(&scenario, Contender::parse(mechanism).unwrap(), 2)], 1, &|| ())
}

#[test]
fn results_read_back_from_json_unchanged_except_films() {
    let of_mesh = [("duration", "100 s"), ("routing", "shortest")];
    for (name, settings, mechanism) in [
        ("nb-iot", [("clients", "3"), ("errors", "high")].as_slice(), "cocoa"),
        ("nb-iot", &[("clients", "3")], "tcp"),
        ("coexistence", &[("clients", "4"), ("duration", "60 s")], "default+cocoa"),
        ("aqm", &[("clients", "3")], "fasor"),
        ("mesh-grid", &of_mesh, "default"),
    ] {
        let mut cells = cells(name, settings, mechanism);
        let text = serde_json::to_string(&cells).unwrap();
        cells.iter_mut().flat_map(|cell| &mut cell.runs).for_each(|run| run.film = None);
        assert_eq!(serde_json::from_str::<Vec<CellResult>>(&text).unwrap(), cells, "{name}");
    }
}
