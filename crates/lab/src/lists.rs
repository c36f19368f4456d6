//! Helpers for lists: distinct items, groups, lists in words, and headings.

/// Returns each item once, in the sequence of their first occurrences.
pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
    // Compared one by one: items need no hash and no order, and lists are short.
    let mut known = Vec::new();
    for item in items {
        if !known.contains(&item) {
            known.push(item);
        }
    }
    known
}

/// Returns the first item that repeats an earlier one.
pub(crate) fn repeated<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Option<T> {
    let mut known = Vec::new();
    items.into_iter().find_map(|item| {
        if known.contains(&item) {
            return Some(item);
        }
        known.push(item);
        None
    })
}

/// Returns `items` in groups, in the sequence of their first items. An item joins the first group whose first item is
/// `alike`, or else begins a group.
pub fn grouped<T>(items: impl IntoIterator<Item = T>, alike: impl Fn(&T, &T) -> bool) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    for item in items {
        // Items only need to be compared. There are few groups, so no hash or order is asked for.
        match groups.iter_mut().find(|group| alike(&group[0], &item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// Returns a phrase that these mechanisms tie with the best one: `a ties with it`, `a and b tie with it`.
pub(crate) fn tied(names: &[&str]) -> String {
    let verb = if names.len() == 1 { "ties" } else { "tie" };
    format!("{} {verb} with it", listed(names, 3, "others"))
}

/// Lists names: `a`, `a and b`, `a, b and c`. If there are more than `most` names, lists the first two, the number of
/// the remaining ones, and the word `others`: `a, b and 4 others`.
pub fn listed(names: &[&str], most: usize, others: &str) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [several @ .., last] if names.len() <= most => format!("{} and {last}", several.join(", ")),
        [first, second, ..] => format!("{first}, {second} and {} {others}", names.len() - 2),
    }
}

/// Returns the text with a capital first letter.
pub fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters.next().map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// Joins a title and conditions with ` · `. If either is empty, returns the other.
pub fn joined(title: &str, conditions: &str) -> String {
    let gap = if title.is_empty() || conditions.is_empty() { "" } else { " · " };
    format!("{title}{gap}{conditions}")
}
