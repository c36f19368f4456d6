//! Jain's fairness index.

/// Returns Jain's fairness index of the shares, `(Σx)² / (n Σx²)`: from 1/n, if one has everything, to 1, if all have the same
/// (Jain, Chiu, Hawe 1984). Returns `None` if there are no shares or all are 0.
pub fn jain_index(shares: impl IntoIterator<Item = f64>) -> Option<f64> {
    let (count, sum, squares) = shares
        .into_iter()
        .fold((0_u32, 0.0, 0.0), |(count, sum, squares), x| (count + 1, sum + x, squares + x * x));
    (squares > 0.0).then(|| sum * sum / (f64::from(count) * squares))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shares_are_perfectly_fair() {
        assert_eq!(jain_index([3.0; 7]), Some(1.0));
    }

    #[test]
    fn one_taking_everything_among_four_is_a_quarter_fair() {
        assert_eq!(jain_index([0.0, 0.0, 8.0, 0.0]), Some(0.25));
    }

    #[test]
    fn nobody_and_nothing_have_no_fairness() {
        assert_eq!(jain_index([]), None);
        assert_eq!(jain_index([0.0, 0.0]), None);
    }
}
