//! Headings and captions.

/// Returns the text with a capital at its beginning.
pub(super) fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Joins a title and conditions by a dot. Either may be empty.
pub(super) fn joined(title: &str, conditions: &str) -> String {
    let gap = if title.is_empty() || conditions.is_empty() { "" } else { " · " };
    format!("{title}{gap}{conditions}")
}
