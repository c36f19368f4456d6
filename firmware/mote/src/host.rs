//! The host: the debugger's console and command line, by Arm semihosting.
#![allow(unsafe_code)]

use alloc::string::String;
use alloc::vec;
use core::fmt::{self, Write};

use cortex_m_semihosting::{hprint, nr, syscall1};

/// The longest command line, bytes.
const LONGEST: usize = 512;

/// Prints a line in one piece. The processor stands still meanwhile.
pub(crate) fn print(line: fmt::Arguments<'_>) {
    let mut text = String::new();
    // Writing to a string does not fail unless a `Display` does, and then the line is as long as it got.
    _ = writeln!(text, "{line}");
    hprint!("{}", text);
}

/// Returns the command line; `None` if the host has none, or one of 512 bytes or more.
pub(crate) fn command_line() -> Option<String> {
    /// The argument of SYS_GET_CMDLINE ("Semihosting for AArch32 and AArch64").
    #[repr(C)]
    struct Block {
        line: *mut u8,
        len: usize,
    }
    let mut line = vec![0; LONGEST];
    let mut block = Block { line: line.as_mut_ptr(), len: line.len() };
    // SAFETY: The host writes a line of at most `len` bytes with a zero behind it to `line`, and its length to `len`.
    // Both are alive and nobody else's.
    let failed = unsafe { syscall1(nr::GET_CMDLINE, &raw mut block as usize) } != 0;
    // The host has written behind the compiler's back.
    let Block { len, .. } = core::hint::black_box(block);
    line.truncate(len);
    String::from_utf8(line).ok().filter(|_| !failed)
}
