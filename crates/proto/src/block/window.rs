//! The blocks of a body that may arrive in any sequence.

/// The length of the window, in blocks. A block is only requested or accepted if it is less than this number ahead of
/// the first missing block.
pub(super) const SPAN: u32 = 1024;

/// The number of losses of the first missing block at which the transfer fails. Each of them is the loss of a request
/// with all its transmissions.
const MAX_LOSSES: u8 = 4;

/// The received blocks: all before the first missing one, and some of the next [`SPAN`].
#[derive(Clone, Debug)]
pub(super) struct ArrivedBlocks {
    first: u32,
    /// Bit `num` modulo [`SPAN`] is set if block `num` has arrived. Blocks before `first` have no bit.
    bits: Bits,
}

/// A bit for each of [`SPAN`] blocks.
#[derive(Clone, Debug)]
struct Bits([u64; SPAN as usize / 64]);

impl Bits {
    const NONE: Self = Self([0; SPAN as usize / 64]);

    const fn place(num: u32) -> (usize, u64) {
        ((num % SPAN / 64) as usize, 1 << (num % 64))
    }

    const fn has(&self, num: u32) -> bool {
        let (word, bit) = Self::place(num);
        self.0[word] & bit != 0
    }

    /// Sets the bit of a block to `to`. Returns whether the bit has changed.
    const fn set(&mut self, num: u32, to: bool) -> bool {
        let changes = self.has(num) != to;
        let (word, bit) = Self::place(num);
        self.0[word] = if to { self.0[word] | bit } else { self.0[word] & !bit };
        changes
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }
}

impl ArrivedBlocks {
    /// Creates the set of all blocks before `first`.
    pub(super) const fn before(first: u32) -> Self {
        Self { first, bits: Bits::NONE }
    }

    /// Returns the first missing block.
    pub(super) const fn first(&self) -> u32 {
        self.first
    }

    /// Returns whether a block has arrived.
    pub(super) const fn has(&self, num: u32) -> bool {
        num < self.first || num - self.first < SPAN && self.bits.has(num)
    }

    /// Adds a block. Returns false if it has arrived before, or is too far ahead.
    pub(super) const fn add(&mut self, num: u32) -> bool {
        if num < self.first || num - self.first >= SPAN || !self.bits.set(num, true) {
            return false;
        }
        // The cleared bits are the places of the blocks that are `SPAN` ahead.
        while self.bits.set(self.first, false) {
            self.first += 1;
        }
        true
    }
}

/// The blocks that have arrived, are outstanding, or are to be requested.
#[derive(Clone, Debug)]
pub(super) struct Window {
    arrived: ArrivedBlocks,
    under_way: Bits,
    /// A block number. Each block before it has arrived or is outstanding.
    next: u32,
    /// A block number. This block and all after it are requested one by one, once all earlier blocks have arrived.
    limit: u32,
    /// The number of times that the first missing block was lost.
    losses: u8,
}

impl Window {
    /// Creates a window in which all blocks before `first` have arrived and none is outstanding.
    pub(super) const fn from(first: u32) -> Self {
        Self {
            arrived: ArrivedBlocks::before(first),
            under_way: Bits::NONE,
            next: first,
            limit: u32::MAX,
            losses: 0,
        }
    }

    /// Returns the first missing block.
    pub(super) const fn first(&self) -> u32 {
        self.arrived.first()
    }

    /// Returns whether a block has arrived.
    pub(super) const fn has(&self, num: u32) -> bool {
        self.arrived.has(num)
    }

    /// Returns the next block to request, and whether it must be the only one outstanding. Returns `None` if
    /// outstanding blocks must arrive first. Blocks from `end` on may not exist. They are requested one by one, once
    /// all earlier blocks have arrived.
    pub(super) fn ask(&mut self, end: u32) -> Option<(u32, bool)> {
        let first = self.first();
        let end = end.min(self.limit).min(first.saturating_add(SPAN));
        self.next = self.next.max(first);
        while self.next < end {
            let num = self.next;
            self.next += 1;
            if !self.arrived.has(num) && self.under_way.set(num, true) {
                return Some((num, false));
            }
        }
        // Beyond `end` a request is a trial, and waits for all others.
        (first >= end && self.under_way.is_empty()).then_some((first, true))
    }

    /// Counts a block as not outstanding. Returns whether the block is still missing.
    pub(super) const fn end(&mut self, num: u32) -> bool {
        if self.arrived.has(num) {
            return false;
        }
        self.under_way.set(num, false);
        // The search for the next block begins here again, so a missing block is requested before later ones.
        if num < self.next {
            self.next = num;
        }
        true
    }

    /// Counts a lost block as not outstanding. Returns false if the first missing block was lost too often
    /// ([`MAX_LOSSES`]).
    pub(super) const fn lose(&mut self, num: u32) -> bool {
        // Only the first missing block counts: as long as it changes, the transfer advances.
        if self.end(num) && num == self.first() {
            self.losses += 1;
        }
        self.losses < MAX_LOSSES
    }

    /// Adds a received block.
    pub(super) const fn add(&mut self, num: u32) {
        self.under_way.set(num, false);
        let first = self.first();
        self.arrived.add(num);
        if self.first() > first {
            self.losses = 0;
        }
    }

    /// Makes requests for this block and all after it wait for the earlier blocks, because the server answers only in
    /// sequence.
    pub(super) const fn refuse(&mut self, num: u32) {
        if num < self.limit {
            self.limit = num;
        }
    }
}
