//! `ro-crate-metadata.json`: a description of the files for archives and search engines (RO-Crate 1.1).

use std::path::Path;

use serde_json::{Value, json};

use super::{ArtefactFile, METADATA, Manifest};

/// The address and the name of each licence: first of the program and its scenarios, then of the published values.
const LICENSES: [(&str, &str); 2] = [
    ("https://spdx.org/licenses/MIT", "MIT License"),
    ("https://spdx.org/licenses/Apache-2.0", "Apache License 2.0"),
];

/// The identifier of the program in the metadata. The next constants are the identifiers of its action and of the
/// paper.
const PROGRAM: &str = "#coapace";
const ACTION: &str = "#reproduction";
const PAPER: &str = "#paper";

/// Returns the metadata of an artefact with these files; the metadata file itself is not among them.
pub(super) fn metadata(manifest: &Manifest, files: &[ArtefactFile]) -> Value {
    let Manifest { title, source, written, .. } = manifest;
    // The first entity describes this file itself, which is how RO-Crate 1.1 finds the folder's entity.
    let mut graph = vec![
        json!({
            "@id": METADATA,
            "@type": "CreativeWork",
            "conformsTo": id("https://w3id.org/ro/crate/1.1"),
            "about": id("./"),
        }),
        json!({
            "@id": "./",
            "@type": "Dataset",
            "name": format!("Reproduction of {}: {title}", manifest.request.paper),
            "description": format!(
                "The experiments of a paper, simulated again: {source}. `coapace reproduce --check` makes the {} runs once more and \
                 compares them.",
                manifest.runs()
            ),
            "datePublished": written,
            "license": LICENSES.map(|(license, _)| id(license)),
            "hasPart": files.iter().map(|file| id(&file.path)).collect::<Vec<_>>(),
            "mentions": id(ACTION),
            "citation": id(PAPER),
        }),
        // The action links the files to the program that made them.
        action(manifest, files),
        json!({
            "@id": PROGRAM,
            "@type": "SoftwareApplication",
            "name": "coapace",
            "description": "Congestion control for CoAP: mechanisms, simulations and published experiments",
            "url": env!("CARGO_PKG_REPOSITORY"),
            "version": manifest.program.version,
            "softwareVersion": manifest.program.words(),
            "identifier": manifest.program.commit,
        }),
        json!({ "@id": PAPER, "@type": "ScholarlyArticle", "name": title, "description": source }),
    ];
    let licenses =
        LICENSES.map(|(license, name)| json!({ "@id": license, "@type": "CreativeWork", "name": name }));
    graph.extend(licenses);
    graph.extend(arguments(manifest).into_iter().map(|(name, value)| {
        json!({ "@id": argument_id(name), "@type": "PropertyValue", "name": name, "value": value })
    }));
    // Every entity that another one names by its `@id` must be in the graph, too.
    graph.extend(files.iter().map(entity));
    json!({
        // The context of RO-Crate 1.1 lacks the term that schema.org has.
        "@context": ["https://w3id.org/ro/crate/1.1/context", { "sha256": "https://schema.org/sha256" }],
        "@graph": graph,
    })
}

fn id(of: &str) -> Value {
    json!({ "@id": of })
}

fn argument_id(name: &str) -> String {
    format!("#argument-{name}")
}

/// Returns the entity that describes how the results were made from the scenarios.
fn action(manifest: &Manifest, files: &[ArtefactFile]) -> Value {
    let is_scenario = |file: &&ArtefactFile| file.path.starts_with("scenarios/");
    let ids = |files: Vec<&ArtefactFile>| files.into_iter().map(|file| id(&file.path)).collect::<Vec<_>>();
    // The runs read the scenarios. All other files come from the runs.
    let (scenarios, made): (Vec<_>, Vec<_>) = files.iter().partition(is_scenario);
    let arguments = arguments(manifest).into_iter().map(|(name, _)| id(&argument_id(name)));
    json!({
        "@id": ACTION,
        "@type": "CreateAction",
        "name": format!("Reproduction of {}", manifest.request.paper),
        "description": manifest.command,
        "endTime": manifest.written,
        "instrument": id(PROGRAM),
        "object": ids(scenarios).into_iter().chain(arguments).collect::<Vec<_>>(),
        "result": ids(made),
    })
}

/// Returns the names and values of the arguments that determine the runs.
fn arguments(manifest: &Manifest) -> Vec<(&'static str, String)> {
    let request = &manifest.request;
    // If no seeds were given, the runs have the seeds of the paper's file.
    let seeds = || {
        let seeds = manifest.cells.iter().flat_map(|cell| cell.trace_hashes.keys());
        let (first, last) = (seeds.clone().min(), seeds.max());
        first.zip(last).map_or_else(String::new, |(first, last)| format!("{first}-{last}"))
    };
    vec![
        ("paper", request.paper.clone()),
        ("quick", request.quick.to_string()),
        ("mechanisms", request.mechanisms.join(" ")),
        ("seeds", request.seeds.clone().unwrap_or_else(seeds)),
    ]
}

fn entity(file: &ArtefactFile) -> Value {
    let (format, description) = meaning(&file.path);
    json!({
        "@id": file.path,
        "@type": "File",
        "name": Path::new(&file.path).file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned()),
        "description": description,
        "encodingFormat": format,
        // A text in schema.org, not a number.
        "contentSize": file.bytes.to_string(),
        "sha256": file.sha256,
    })
}

/// Returns the media type and the description of a file.
fn meaning(path: &str) -> (&'static str, &'static str) {
    let stem = Path::new(path).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let table = match stem {
        "cells" => "A row for each mechanism under each condition, its runs pooled",
        "runs" => "A row for each run",
        "clients" => "A row for each client of each run",
        "orders" => "A row for each published order and ratio, with its verdict",
        _ => "A table",
    };
    match Path::new(path).extension().and_then(|extension| extension.to_str()) {
        Some("csv") => ("text/csv", table),
        Some("parquet") => ("application/vnd.apache.parquet", table),
        Some("toml") => ("application/toml", "A scenario as it was run: a network and a workload"),
        Some("txt") => (
            "text/plain",
            "Every key of a scenario with its effective value; the hash of a scenario is of this text",
        ),
        Some("html") => ("text/html", "The report, with charts"),
        Some("json") => ("application/json", "The arguments, the program, and the hash of every run"),
        Some("md") if stem == "README" => ("text/markdown", "How to check and repeat this artefact"),
        Some("md") => ("text/markdown", "Every published value and order beside the measured one"),
        _ => ("application/octet-stream", "A file"),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::artifact::manifest::tests::{manifest, results};

    #[test]
    fn the_ro_crate_metadata_describe_every_file_with_its_hash_and_every_reference_resolves() {
        let file = |path: &str| ArtefactFile { path: path.to_owned(), sha256: "ab".repeat(32), bytes: 7 };
        let files = ["scenarios/nb-iot-1.toml", "results/runs.parquet", "manifest.json"].map(file);
        let metadata = metadata(&manifest(&results()), &files);
        let graph = metadata["@graph"].as_array().unwrap();
        let ids: BTreeSet<_> = graph.iter().map(|entity| entity["@id"].as_str().unwrap()).collect();
        assert_eq!(ids.len(), graph.len(), "identifiers are unique");
        let mut referred = Vec::new();
        for entity in graph {
            for (_, value) in entity.as_object().unwrap() {
                let values = value.as_array().map_or(std::slice::from_ref(value), Vec::as_slice);
                referred.extend(values.iter().filter_map(|value| value.get("@id")?.as_str()));
            }
        }
        let outside = "https://w3id.org/ro/crate/1.1";
        assert!(referred.iter().all(|id| ids.contains(id) || *id == outside), "{referred:?}");
        for file in &files {
            assert!(referred.contains(&file.path.as_str()), "{}", file.path);
            let entity = graph.iter().find(|entity| entity["@id"] == *file.path).unwrap();
            assert_eq!((&entity["sha256"], &entity["contentSize"]), (&json!(file.sha256), &json!("7")));
        }
        let seeds = graph.iter().find(|entity| entity["@id"] == "#argument-seeds").unwrap();
        assert_eq!(seeds["value"], "1-2");
    }
}
