//! Lists: each item once, in groups, or in words.

/// Returns each item once, in the order in which they come first.
pub fn distinct<T: PartialEq>(items: impl IntoIterator<Item = T>) -> Vec<T> {
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

/// Returns items in groups, in the order of their first items. An item joins the first group whose first item is like it.
pub fn grouped<T>(items: impl IntoIterator<Item = T>, alike: impl Fn(&T, &T) -> bool) -> Vec<Vec<T>> {
    let mut groups: Vec<Vec<T>> = Vec::new();
    for item in items {
        match groups.iter_mut().find(|group| alike(&group[0], &item)) {
            Some(group) => group.push(item),
            None => groups.push(vec![item]),
        }
    }
    groups
}

/// Says that these mechanisms tie with the best one: `a ties with it`, `a and b tie with it`.
pub(crate) fn tied(names: &[&str]) -> String {
    let verb = if names.len() == 1 { "ties" } else { "tie" };
    format!("{} {verb} with it", listed(names, 3, "others"))
}

/// Lists names: `a`, `a and b`, `a, b and c`. A list of more than `most` names has the first two, the number of the rest, and the
/// word in `others`.
pub fn listed(names: &[&str], most: usize, others: &str) -> String {
    match names {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [several @ .., last] if names.len() <= most => format!("{} and {last}", several.join(", ")),
        [first, second, ..] => format!("{first}, {second} and {} {others}", names.len() - 2),
    }
}
