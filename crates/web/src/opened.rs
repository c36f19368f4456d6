//! Opens scenarios that the page passes as a name, a text and settings.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use coapace_scenario::{Scenario, Source, Template};

/// The name, the text and the settings of a scenario, and the scenario that was read from them.
type Opened = ([String; 3], Arc<Scenario>);

thread_local! {
    /// The scenario that was opened last. Runs with other seeds open the same scenario again.
    static LAST: RefCell<Option<Rc<Opened>>> = const { RefCell::new(None) };
}

/// Reads the text of a scenario file.
pub(crate) fn template(name: &str, text: &str) -> Result<Template, String> {
    let file = format!("{name}.toml");
    let source = Source { name: name.to_owned(), file, text: text.to_owned() };
    source.template().map_err(|error| error.to_string())
}

/// Reads settings from a JSON list of `[key, value]`.
pub(crate) fn settings(json: &str) -> Result<Vec<(String, String)>, String> {
    serde_json::from_str(json).map_err(|error| format!("the settings cannot be read: {error}"))
}

/// Reads the text of a scenario file, and applies the settings, a JSON list of `[key, value]`.
pub(crate) fn scenario(name: &str, text: &str, settings_json: &str) -> Result<Arc<Scenario>, String> {
    // The text may have changed under the same name.
    let key = [name, text, settings_json].map(str::to_owned);
    if let Some(last) = LAST.with_borrow(Clone::clone).filter(|last| last.0 == key) {
        return Ok(last.1.clone());
    }
    let read =
        template(name, text)?.scenario(&settings(settings_json)?).map_err(|error| error.to_string())?;
    let scenario = Arc::new(read);
    LAST.set(Some(Rc::new((key, scenario.clone()))));
    Ok(scenario)
}
