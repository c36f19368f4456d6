//! A set of block numbers: the blocks of a body that have arrived.

/// A set of block numbers.
#[derive(Clone, Debug, Default)]
pub(super) struct BlockSet(Vec<u64>);

impl BlockSet {
    /// Adds a block number. Returns whether it is new in the set.
    pub(super) fn note(&mut self, number: u32) -> bool {
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        let is_new = self.0[word] & bit == 0;
        self.0[word] |= bit;
        is_new
    }

    /// Removes all blocks, for the next body.
    pub(super) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_block_counts_as_new_once_in_each_body() {
        let mut seen = BlockSet::default();
        assert_eq!(
            [0, 63, 64, 63, 1_048_575, 64].map(|block| seen.note(block)),
            [true, true, true, false, true, false]
        );
        seen.clear();
        assert!(seen.note(63));
    }
}
