//! Unknown keys of a table, and the keys that were probably meant.

use coapace_control::nearest;

use super::document::joined;
use super::error::{Fault, Stray, ValueOrigin, shown};
use super::kind::KeyEntry;

/// Finds the key at the dotted `path`, which begins with one of the keys `root` at the top of a file. An error about an
/// unknown key may also suggest a name in `others`.
pub(crate) fn resolve<'a>(
    root: &'a [KeyEntry],
    path: &str,
    others: &[&str],
    at: ValueOrigin,
) -> Result<Option<&'a KeyEntry>, Fault> {
    let (mut keys, mut last) = (root, None);
    let mut walked = String::new();
    let mut parts = path.split('.');
    while let Some(part) = parts.next() {
        let Some(key) = keys.iter().find(|key| key.name == part) else {
            // Knobs are names at the top of a file. Within a table none can be meant.
            let others = if walked.is_empty() { others } else { &[] };
            return Err(elsewhere(unknown(&walked, part, keys, others, at), root));
        };
        walked = joined(&walked, part);
        // The next part is the name of a table in the list, which the file chooses.
        if key.is_list
            && let Some(name) = parts.next()
        {
            walked = joined(&walked, name);
        }
        (keys, last) = (&key.keys, Some(key));
    }
    Ok(last)
}

/// Returns the fault of the unknown key `name` in the table at `path`. The fault suggests the table's key or the knob
/// (`others`) that resembles the name. If none resembles it, the fault lists all keys and knobs.
pub(crate) fn unknown(path: &str, name: &str, keys: &[KeyEntry], others: &[&str], at: ValueOrigin) -> Fault {
    let line = format!("unknown key `{}`", shown(&joined(path, name)));
    let here = keys.iter().map(|key| key.name).chain(others.iter().copied());
    if let Some(near) = nearest(name, here) {
        // The name of a knob is its whole path.
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

/// Suggests another table in the error about an unknown key, if that table has a key of this name. `root` has the keys
/// of the file.
pub(crate) fn elsewhere(fault: Fault, root: &[KeyEntry]) -> Fault {
    let Some(Stray { name, line }) = &fault.stray else { return fault };
    let mut paths = Vec::new();
    all_paths(root, "", &mut paths);
    // Two tables may have a key of this name. The first in the order of the reference is suggested.
    match paths.iter().find(|path| path.rsplit('.').next() == Some(name)) {
        Some(near) => Fault::new(fault.at, format!("{line}; did you mean `{near}`?")),
        None => fault,
    }
}

/// Collects the dotted path of every key that is not a table. In a path through a list of tables, the singular of the
/// list, such as `FLOW`, is in place of a table's name, as on the reference page.
fn all_paths(keys: &[KeyEntry], table: &str, paths: &mut Vec<String>) {
    for key in keys {
        let path = joined(table, key.name);
        match (key.keys.is_empty(), key.is_list) {
            (true, _) => paths.push(path),
            (false, false) => all_paths(&key.keys, &path, paths),
            (false, true) => {
                let name = match key.name {
                    "up" | "down" => "HOP".to_owned(),
                    list => list.trim_end_matches('s').to_uppercase(),
                };
                all_paths(&key.keys, &format!("{path}.{name}"), paths);
            }
        }
    }
}
