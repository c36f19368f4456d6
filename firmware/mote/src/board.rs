//! The board: its registers, its interrupts, and sleep. It is the AN385 image of Arm's MPS2 (Application Note AN385), a Cortex-M3 of
//! 25 MHz.
#![allow(unsafe_code)]

use cortex_m::interrupt::InterruptNumber;
use cortex_m::peripheral::{NVIC, SCB};
use cortex_m_rt::{ExceptionFrame, exception};

/// The frequency of the processor and of its timers.
pub(crate) const CLOCK_MHZ: u32 = 25;

/// The registers of one device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Registers {
    base: usize,
    /// The bytes from the first register to the end of the last.
    len: usize,
}

impl Registers {
    /// CMSDK APB timer 0.
    pub(crate) const TIMER: Self = Self { base: 0x4000_0000, len: 0x10 };
    /// The Ethernet controller, a LAN9118 or one that is compatible.
    pub(crate) const ETHERNET: Self = Self { base: 0x4020_0000, len: 0xb8 };

    /// Reads the register `offset` bytes behind the first.
    pub(crate) fn read(self, offset: usize) -> u32 {
        // SAFETY: `address` returns the address of a register of this board, aligned to its four bytes. Reading a register
        // reads no memory of the program, because no device here has access to that.
        unsafe { self.address(offset).read_volatile() }
    }

    /// Writes the register `offset` bytes behind the first.
    pub(crate) fn write(self, offset: usize, value: u32) {
        // SAFETY: like `read`. Writing a register changes no memory of the program either.
        unsafe { self.address(offset).write_volatile(value) }
    }

    fn address(self, offset: usize) -> *mut u32 {
        assert!(offset < self.len && offset.is_multiple_of(4), "no register");
        core::ptr::with_exposed_provenance_mut(self.base + offset)
    }
}

/// The interrupt of the Ethernet controller.
#[derive(Clone, Copy)]
struct EthernetInterrupt;

// SAFETY: The number is that of the board (AN385, interrupts) and never changes.
unsafe impl InterruptNumber for EthernetInterrupt {
    fn number(self) -> u16 {
        13
    }
}

/// Lets interrupts end a [`sleep`], and nothing else: there are no handlers, so no code of this program is ever interrupted.
pub(crate) fn enable_wakeups() {
    cortex_m::interrupt::disable();
    // SAFETY: A handler could break a critical section. With PRIMASK set, as above and for good, none runs.
    unsafe { NVIC::unmask(EthernetInterrupt) };
}

/// Sleeps until the timer or the Ethernet controller interrupts. Returns at once if one has since the last call.
pub(crate) fn sleep() {
    cortex_m::asm::dsb();
    // A pending interrupt ends this instruction even if PRIMASK keeps its handler from running (ARMv7-M, B1.5.19).
    cortex_m::asm::wfi();
    SCB::clear_pendst();
    NVIC::unpend(EthernetInterrupt);
}

/// Ends the program with the place of a fault, such as an access to memory that is not there.
// SAFETY: The handler does not return, so nothing that it may have interrupted goes on.
#[exception]
unsafe fn HardFault(frame: &ExceptionFrame) -> ! {
    panic!("hard fault at {:#010x}", frame.pc());
}
