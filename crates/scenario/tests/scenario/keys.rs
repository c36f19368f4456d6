//! Tests of keys that are unknown, misplaced or missing, and of files that are not TOML.

use coapace_scenario::Scenario;

use crate::refused;

#[test]
fn an_unknown_key_is_an_error_with_the_line_and_a_suggestion() {
    assert_eq!(
        refused("[clients]", "[clinets]"),
        "scenarios/x.toml:5: unknown key `clinets`; did you mean `clients`?"
    );
    assert_eq!(
        refused("count = 3", "count = 3\nmax_retransmits = 4"),
        "scenarios/x.toml:7: unknown key `clients.max_retransmits`; did you mean `clients.max_retransmit`?"
    );
    assert_eq!(
        refused("name = \"wire\"\n", "name = \"wire\"\ndelya = \"1 ms\"\n"),
        "scenarios/x.toml:13: unknown key `network.up.wire.delya`; did you mean `network.up.wire.delay`?"
    );
}

#[test]
fn the_error_of_a_key_in_the_wrong_table_names_its_own_table() {
    assert_eq!(
        refused("count = 3", "count = 3\nmtu = 296"),
        "scenarios/x.toml:7: unknown key `clients.mtu`; did you mean `network.mtu`?"
    );
    assert_eq!(
        refused("count = 3", "count = 3\noutstanding = 2"),
        "scenarios/x.toml:7: unknown key `clients.outstanding`; did you mean `workload.flows.FLOW.outstanding`?"
    );
}

#[test]
fn the_error_of_a_key_without_a_similar_one_lists_the_known_keys() {
    assert_eq!(
        refused("[workload]", "[workload]\nzzz = 1"),
        "scenarios/x.toml:9: unknown key `workload.zzz`; `workload` has `kind`, `exchanges`, `duration`, `warm_up`, \
         `batch_min`, `batch_max`, `think_time`, `interval`, `flows`, `transfers`"
    );
}

#[test]
fn the_error_of_a_missing_key_names_its_table_and_its_values() {
    assert_eq!(
        refused("kind = \"continuous\"", ""),
        "scenarios/x.toml:8: `workload.kind` is missing: it must be \"continuous\" or \"random\" or \"flows\" or \"transfer\""
    );
    assert_eq!(
        refused("[workload]\nkind = \"continuous\"", ""),
        "scenarios/x.toml:1: `workload.kind` is missing: it must be \"continuous\" or \"random\" or \"flows\" or \"transfer\""
    );
    assert_eq!(
        refused("[[network.down]]\nname = \"wire\"", ""),
        "scenarios/x.toml:11: `network.down` is missing: it must be 1 to 16 tables, each with a `name` of its own"
    );
}

#[test]
fn the_error_of_a_file_that_is_not_a_scenario_does_not_quote_it() {
    for text in [
        "root:secret:19000:0:::\n",
        "secret\n",
        "[secret\n",
        "a = secret\n",
        "SECRET = \"secret\"\n[secret]\nsecret = 1\n",
    ] {
        let error = Scenario::parse("x", "/etc/any", text, &[]).unwrap_err().to_string();
        assert!(error.starts_with("/etc/any:1: ") && !error.to_lowercase().contains("secret"), "{error}");
    }
    // A file of places is named by the scenario, which somebody else may have written.
    let path = std::env::temp_dir().join(format!("coapace-secret-{}", std::process::id()));
    for (ending, text) in
        [("", "root:secret:19000\n"), ("", "0 0 0 secret\n"), ("csc", "<secret><secret></x>")]
    {
        let path = path.with_extension(ending);
        std::fs::write(&path, text).unwrap();
        let topology = format!("{{ kind = \"file\", file = \"{}\" }}", path.display());
        let set = [("network.mesh.topology".to_owned(), topology)];
        let error = Scenario::load("mesh-grid", &set).unwrap_err().to_string();
        std::fs::remove_file(&path).unwrap();
        assert!(error.contains("cannot be used: line 1: "), "{error}");
        assert!(!error.replace("coapace-secret", "").contains("secret"), "{error}");
    }
}

#[test]
fn a_scenario_that_is_not_toml_is_an_error_with_its_line() {
    assert!(refused("count = 3", "count = ").starts_with("scenarios/x.toml:6: not TOML: "));
    assert!(
        refused("count = 3", "count = 3\ncount = 4")
            .starts_with("scenarios/x.toml:7: the key `count` is there twice")
    );
}
