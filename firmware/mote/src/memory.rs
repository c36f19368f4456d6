//! The memory: a heap with a bound, and the most that heap and stack have had in use.
//!
//! Paint on the stack (cortex-m-rt's feature `paint-stack`) shows how far down it ever went.
#![allow(unsafe_code)]

use core::alloc::{GlobalAlloc, Layout};
use core::fmt;
use core::mem::MaybeUninit;
use core::sync::atomic::{AtomicUsize, Ordering};

use cortex_m_rt::STACK_PAINT_VALUE;
use embedded_alloc::LlffHeap;

/// The bytes of the heap. An allocation beyond them ends the program with a message.
const HEAP_BYTES: usize = 23 * 1024;

#[global_allocator]
static HEAP: Heap = Heap { heap: LlffHeap::empty(), most: AtomicUsize::new(0) };

/// A heap that remembers the most bytes that were in use at once.
struct Heap {
    heap: LlffHeap,
    most: AtomicUsize,
}

// SAFETY: Both calls are handed on as they come to an allocator that keeps the contract.
unsafe impl GlobalAlloc for Heap {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: The caller keeps the contract of `alloc`.
        let allocated = unsafe { GlobalAlloc::alloc(&self.heap, layout) };
        self.most.fetch_max(self.heap.used(), Ordering::Relaxed);
        allocated
    }

    unsafe fn dealloc(&self, allocated: *mut u8, layout: Layout) {
        // SAFETY: The caller keeps the contract of `dealloc`.
        unsafe { GlobalAlloc::dealloc(&self.heap, allocated, layout) }
    }
}

/// Opens the heap. Call this once, before the first allocation.
///
/// # Panics
/// If it was called before.
pub(crate) fn open_heap() {
    static mut MEMORY: [MaybeUninit<u8>; HEAP_BYTES] = [MaybeUninit::uninit(); HEAP_BYTES];
    // SAFETY: The memory is a static of this size that nothing else can name, and `init` refuses a second call.
    unsafe { HEAP.heap.init(&raw mut MEMORY as usize, HEAP_BYTES) }
}

unsafe extern "C" {
    // Addresses from the linker: see memory.x, and link.x of cortex-m-rt. They are never read or written as variables.
    static mut _stack_end: u32;
    static mut _stack_start: u32;
    static mut __sdata: u32;
    static mut __euninit: u32;
}

/// The memory of this program, in bytes. It is displayed as one line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Usage {
    heap: usize,
    stack: usize,
    stack_bytes: usize,
    statics: usize,
}

impl Usage {
    /// Returns the most that heap and stack have had in use so far, and the size of the statics.
    pub(crate) fn so_far() -> Self {
        let (bottom, top) = (&raw const _stack_end, &raw const _stack_start);
        let (first, last) = (&raw const __sdata, &raw const __euninit);
        let stack_bytes = top.addr() - bottom.addr();
        let is_paint = |&word: &usize| {
            // SAFETY: The word lies within the region of the stack, which is readable and initialised: the program was
            // started with paint in it. The functions that use the stack run on, but not while this reads.
            let value = unsafe { bottom.add(word).read_volatile() };
            value == STACK_PAINT_VALUE
        };
        let untouched = (0..stack_bytes / 4).take_while(is_paint).count() * 4;
        Self {
            heap: HEAP.most.load(Ordering::Relaxed),
            stack: stack_bytes - untouched,
            stack_bytes,
            statics: last.addr() - first.addr() - HEAP_BYTES,
        }
    }
}

impl fmt::Display for Usage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { heap, stack, stack_bytes, statics } = self;
        write!(
            f,
            "memory: heap {heap} of {HEAP_BYTES} bytes, stack {stack} of {stack_bytes} bytes, statics {statics} bytes, \
             {} of {} bytes in all",
            heap + stack + statics,
            HEAP_BYTES + stack_bytes + statics
        )
    }
}
