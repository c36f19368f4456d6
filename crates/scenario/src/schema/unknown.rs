//! Unknown keys of a table, and the keys that were probably meant.

use coapace_control::nearest;

use super::document::joined;
use super::error::{Fault, Stray, ValueOrigin, shown};
use super::kind::KeyEntry;

/// Follows `path` through the keys of a file, which are `root`. An error may suggest a name in `others`, too.
pub(crate) fn resolve(root: &[KeyEntry], path: &str, others: &[&str], at: ValueOrigin) -> Result<(), Fault> {
    let mut keys = root;
    let mut walked = String::new();
    let mut parts = path.split('.');
    while let Some(part) = parts.next() {
        let Some(key) = keys.iter().find(|key| key.name == part) else {
            let others = if walked.is_empty() { others } else { &[] };
            return Err(elsewhere(unknown(&walked, part, keys, others, at), root));
        };
        walked = joined(&walked, part);
        if key.is_list
            && let Some(name) = parts.next()
        {
            walked = joined(&walked, name);
        }
        keys = &key.keys;
    }
    Ok(())
}

/// Returns the fault of the unknown key `name` in the table at `path`. It suggests the nearest of the table's keys and of `others`,
/// the knobs, or lists both.
pub(crate) fn unknown(path: &str, name: &str, keys: &[KeyEntry], others: &[&str], at: ValueOrigin) -> Fault {
    let line = format!("unknown key `{}`", shown(&joined(path, name)));
    let here = keys.iter().map(|key| key.name).chain(others.iter().copied());
    if let Some(near) = nearest(name, here) {
        let near = if others.contains(&near) { near.to_owned() } else { joined(path, near) };
        return Fault::new(at, format!("{line}; did you mean `{near}`?"));
    }
    let listed =
        |names: Vec<&str>| names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let knobs = match others {
        [] => String::new(),
        _ => format!("; the knobs are {}", listed(others.to_vec())),
    };
    let names = listed(keys.iter().map(|key| key.name).collect());
    let message = match path {
        _ if names.is_empty() => format!("{line}; `{path}` has no keys"),
        "" => format!("{line}{knobs}; a scenario has {names}"),
        _ => format!("{line}; `{path}` has {names}"),
    };
    Fault { stray: Some(Stray { name: name.to_owned(), line }), ..Fault::new(at, message) }
}

/// Makes the fault suggest the key of that name elsewhere in the file, whose keys are `root`, if there is one.
pub(crate) fn elsewhere(fault: Fault, root: &[KeyEntry]) -> Fault {
    let Some(Stray { name, line }) = &fault.stray else { return fault };
    let mut paths = Vec::new();
    all_paths(root, "", &mut paths);
    match paths.iter().find(|path| path.rsplit('.').next() == Some(name)) {
        Some(near) => Fault::new(fault.at, format!("{line}; did you mean `{near}`?")),
        None => fault,
    }
}

/// Collects the dotted path of every key that is not a table, with `HOP` in place of names in lists.
fn all_paths(keys: &[KeyEntry], table: &str, paths: &mut Vec<String>) {
    for key in keys {
        let path = joined(table, key.name);
        match (key.keys.is_empty(), key.is_list) {
            (true, _) => paths.push(path),
            (false, false) => all_paths(&key.keys, &path, paths),
            (false, true) => all_paths(&key.keys, &format!("{path}.HOP"), paths),
        }
    }
}
