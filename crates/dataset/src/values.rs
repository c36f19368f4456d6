//! The values of a column.

use std::sync::Arc;

use arrow_array::{ArrayRef, BooleanArray, Float64Array, Int64Array, StringArray};
use coapace_lab::output::SheetValue;
use serde::{Deserialize, Serialize};

/// The type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ColumnKind {
    /// Texts.
    Text,
    /// Floating-point numbers of 64 bits.
    Number,
    /// Signed whole numbers of 64 bits.
    Count,
    /// Truth values.
    Flag,
}

/// The values of a column, all of one type. `None` is an unknown value.
#[derive(Clone, Debug, PartialEq)]
pub enum Values {
    /// Texts.
    Text(Vec<Option<String>>),
    /// Floating-point numbers of 64 bits.
    Number(Vec<Option<f64>>),
    /// Signed whole numbers of 64 bits.
    Count(Vec<Option<i64>>),
    /// Truth values.
    Flag(Vec<Option<bool>>),
}

impl Values {
    /// Makes a column of these values, with the [type](ColumnKind::of) that can hold all of them.
    pub fn of(values: Vec<SheetValue>) -> Self {
        Self::of_kind(ColumnKind::of(&values), values)
    }

    /// Makes a column of this type. Values that the type cannot hold become unknown.
    pub fn of_kind(kind: ColumnKind, values: Vec<SheetValue>) -> Self {
        let values = values.into_iter();
        match kind {
            ColumnKind::Text => Self::Text(values.map(text).collect()),
            ColumnKind::Number => Self::Number(values.map(|value| number(&value)).collect()),
            ColumnKind::Count => Self::Count(values.map(|value| count(&value)).collect()),
            ColumnKind::Flag => Self::Flag(values.map(|value| flag(&value)).collect()),
        }
    }

    pub(crate) fn array(self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(StringArray::from(values)),
            Self::Number(values) => Arc::new(Float64Array::from(values)),
            Self::Count(values) => Arc::new(Int64Array::from(values)),
            Self::Flag(values) => Arc::new(BooleanArray::from(values)),
        }
    }
}

impl ColumnKind {
    /// Returns the type of a column with these values; numbers if all of them are unknown.
    pub fn of(values: &[SheetValue]) -> Self {
        let has = |is: fn(&SheetValue) -> bool| values.iter().any(is);
        // In this order, because a text can show every other value, and a count is a number, too.
        if has(|value| matches!(value, SheetValue::Text(_) | SheetValue::Nested(_))) {
            Self::Text
        } else if has(|value| matches!(value, SheetValue::Flag(_))) {
            Self::Flag
        } else if has(|value| matches!(value, SheetValue::Count(_)))
            && !has(|value| matches!(value, SheetValue::Number(_)))
        {
            Self::Count
        } else {
            // Unknown values alone are numbers, too: the column then takes numbers that are added later.
            Self::Number
        }
    }
}

fn number(value: &SheetValue) -> Option<f64> {
    match value {
        SheetValue::Number(number) => Some(*number),
        SheetValue::Count(count) => Some(*count as f64),
        // Sheets have knobs as texts. `kind_of_knob` makes a column of numbers if all are numbers.
        SheetValue::Text(text) => text.parse().ok().filter(|number: &f64| number.is_finite()),
        _ => None,
    }
}

fn count(value: &SheetValue) -> Option<i64> {
    if let SheetValue::Count(count) = value { i64::try_from(*count).ok() } else { None }
}

fn flag(value: &SheetValue) -> Option<bool> {
    if let SheetValue::Flag(flag) = value { Some(*flag) } else { None }
}

fn text(value: SheetValue) -> Option<String> {
    match value {
        SheetValue::Nothing => None,
        SheetValue::Text(text) => Some(text),
        SheetValue::Number(number) => Some(number.to_string()),
        SheetValue::Count(count) => Some(count.to_string()),
        SheetValue::Flag(flag) => Some(flag.to_string()),
        SheetValue::Nested(value) => Some(value.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_column_has_the_type_that_holds_all_its_values() {
        let (count, number) = (SheetValue::Count(3), SheetValue::Number(0.5));
        assert_eq!(Values::of(vec![count.clone(), SheetValue::Nothing]), Values::Count(vec![Some(3), None]));
        assert_eq!(Values::of(vec![count.clone(), number]), Values::Number(vec![Some(3.0), Some(0.5)]));
        assert_eq!(
            Values::of(vec![count, SheetValue::Text("inf".into())]),
            Values::Text(vec![Some("3".into()), Some("inf".into())])
        );
        assert_eq!(Values::of(vec![SheetValue::Flag(true)]), Values::Flag(vec![Some(true)]));
        assert_eq!(Values::of(vec![SheetValue::Nothing]), Values::Number(vec![None]));
    }
}
