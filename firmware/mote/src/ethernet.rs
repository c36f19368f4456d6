//! The driver of the Ethernet controller: SMSC's LAN9118 and those that are compatible with it, such as the LAN9220 of the MPS2 board.
//!
//! The processor moves every frame through FIFOs of the controller, word by word; there is no DMA. Registers have the names of
//! SMSC's data sheet of the LAN9118; its application note AN 12.12 is the guide for drivers. That asks for pauses of up to 135 ns between
//! some accesses. A processor of 25 MHz makes them anyway, a faster one would have to wait.

mod registers;

use alloc::vec;
use alloc::vec::Vec;
use core::fmt;

use smoltcp::phy::{self, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use smoltcp::wire::EthernetAddress;

use crate::board::Registers;
use registers::{csr, mac, phy as transceiver};

/// The longest frame without its checksum: 14 bytes of header, 1,500 of payload.
const FRAME: usize = 1514;

/// The bytes of the longest frame in whole words.
const BUFFER: usize = FRAME.next_multiple_of(4);

/// The length of the checksum behind a received frame.
const FCS: usize = 4;

/// How often a bit is looked at before the controller is given up: more than a second at 25 MHz, and for the link several.
const PATIENCE: u32 = 1_000_000;

/// An Ethernet controller that is running.
pub(crate) struct Ethernet {
    registers: Registers,
    address: EthernetAddress,
    received: Vec<u8>,
    sent: Vec<u8>,
    /// Frames that arrived damaged, or are longer than any should be.
    damaged: u32,
}

/// The reason why the controller does not start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EthernetError {
    /// The test register does not have the value that it should. Probably there is no such controller.
    Absent(u32),
    /// The controller did not finish this in time.
    TimedOut(&'static str),
    /// The controller has found no address of its own in its EEPROM.
    NoAddress,
}

impl Ethernet {
    /// Resets and starts the controller behind these registers, with the address that its EEPROM holds.
    pub(crate) fn start(registers: Registers) -> Result<Self, EthernetError> {
        let this = Self {
            registers,
            address: EthernetAddress::default(),
            received: vec![0; BUFFER],
            sent: vec![0; BUFFER],
            damaged: 0,
        };
        this.reset()?;
        let address = this.read_address()?;
        let full_duplex = this.negotiate()?;
        this.switch_on(full_duplex)?;
        Ok(Self { address, ..this })
    }

    /// Returns the address of this controller.
    pub(crate) fn address(&self) -> EthernetAddress {
        self.address
    }

    /// Returns how many frames arrived damaged, or longer than any should be.
    pub(crate) fn damaged(&self) -> u32 {
        self.damaged
    }

    /// Takes back the interrupt, so that the next frame interrupts again. Call this before looking for frames, or one that
    /// arrives in between stays unnoticed.
    pub(crate) fn acknowledge_interrupt(&self) {
        self.registers.write(csr::INT_STS, csr::INT_RSFL);
    }

    /// Brings the controller into a known state.
    fn reset(&self) -> Result<(), EthernetError> {
        let test = self.registers.read(csr::BYTE_TEST);
        if test != csr::BYTE_TEST_VALUE {
            return Err(EthernetError::Absent(test));
        }
        self.registers.write(csr::HW_CFG, csr::HW_CFG_RESET);
        wait("the reset", || self.registers.read(csr::HW_CFG) & csr::HW_CFG_RESET == 0)?;
        wait("the reading of the EEPROM", || self.registers.read(csr::E2P_CMD) & csr::E2P_BUSY == 0)
    }

    /// Reads the address that the controller has loaded.
    fn read_address(&self) -> Result<EthernetAddress, EthernetError> {
        let (low, high) = (self.read_mac(mac::ADDRESS_LOW)?, self.read_mac(mac::ADDRESS_HIGH)?);
        let mut bytes = [0; 6];
        bytes[..4].copy_from_slice(&low.to_le_bytes());
        bytes[4..].copy_from_slice(&high.to_le_bytes()[..2]);
        let address = EthernetAddress(bytes);
        if address.is_unicast() { Ok(address) } else { Err(EthernetError::NoAddress) }
    }

    /// Agrees with the other end of the cable on speed and duplex (IEEE 802.3, clause 28). Returns whether the duplex is full.
    fn negotiate(&self) -> Result<bool, EthernetError> {
        self.write_phy(transceiver::CONTROL, transceiver::CONTROL_NEGOTIATE)?;
        let mut link = Ok(0);
        wait("the link: is there a cable?", || {
            link = self.read_phy(transceiver::STATUS);
            link.is_ok_and(|status| status & transceiver::STATUS_LINK != 0) || link.is_err()
        })?;
        link?;
        let common =
            self.read_phy(transceiver::OWN_ABILITIES)? & self.read_phy(transceiver::PARTNER_ABILITIES)?;
        // IEEE 802.3, annex 28B.3: the best that both have.
        let best = transceiver::BY_PRIORITY.iter().find(|&&(ability, _)| common & ability != 0);
        Ok(best.is_some_and(|&(_, full_duplex)| full_duplex))
    }

    /// Switches the interrupt, the transmitter and the receiver on.
    fn switch_on(&self, full_duplex: bool) -> Result<(), EthernetError> {
        // 5 of the 16 KiB of FIFO are for frames to send. "Must be one" is a bit that the data sheet wants set.
        self.registers.write(csr::HW_CFG, 5 << csr::HW_CFG_TX_SIZE_SHIFT | csr::HW_CFG_MUST_BE_ONE);
        self.registers
            .write(csr::INT_CFG, csr::INT_CFG_ENABLE | csr::INT_CFG_ACTIVE_HIGH | csr::INT_CFG_PUSH_PULL);
        // An interrupt when more than zero frames wait.
        self.registers.write(csr::FIFO_INT, 0);
        self.registers.write(csr::INT_STS, u32::MAX);
        self.registers.write(csr::INT_EN, csr::INT_RSFL);
        let duplex = if full_duplex { mac::CONTROL_FULL_DUPLEX } else { 0 };
        self.write_mac(mac::CONTROL, duplex | mac::CONTROL_TRANSMIT | mac::CONTROL_RECEIVE)?;
        // Nobody reads how transmissions ended: CoAP finds out by itself.
        self.registers.write(csr::TX_CFG, csr::TX_CFG_ON | csr::TX_CFG_FORGET_STATUS);
        Ok(())
    }

    /// Takes the next good frame out of the controller. Returns its length.
    fn take_frame(&mut self) -> Option<usize> {
        while self.registers.read(csr::RX_FIFO_INF) & csr::RX_FIFO_INF_FRAMES != 0 {
            let status = self.registers.read(csr::RX_STATUS_FIFO);
            let len = (status >> csr::RX_STATUS_LEN_SHIFT & csr::RX_STATUS_LEN) as usize;
            let frame = len.saturating_sub(FCS);
            let words = len.div_ceil(4);
            if status & csr::RX_STATUS_ERROR != 0 || frame > FRAME {
                (0..words).for_each(|_| _ = self.registers.read(csr::RX_DATA_FIFO));
                self.damaged = self.damaged.saturating_add(1);
                continue;
            }
            let kept = frame.div_ceil(4);
            for bytes in self.received.chunks_exact_mut(4).take(kept) {
                bytes.copy_from_slice(&self.registers.read(csr::RX_DATA_FIFO).to_le_bytes());
            }
            (kept..words).for_each(|_| _ = self.registers.read(csr::RX_DATA_FIFO));
            return Some(frame);
        }
        None
    }

    /// Returns whether the controller takes another frame of any length, with its two words of commands.
    fn has_room(&self) -> bool {
        let free = self.registers.read(csr::TX_FIFO_INF) & csr::TX_FIFO_INF_FREE;
        free as usize >= BUFFER + 8
    }

    fn read_mac(&self, index: u32) -> Result<u32, EthernetError> {
        self.command_mac(csr::MAC_READ | index)?;
        Ok(self.registers.read(csr::MAC_DATA))
    }

    fn write_mac(&self, index: u32, value: u32) -> Result<(), EthernetError> {
        self.registers.write(csr::MAC_DATA, value);
        self.command_mac(index)
    }

    /// Reaches a register of the MAC, which lies behind two others.
    fn command_mac(&self, command: u32) -> Result<(), EthernetError> {
        self.registers.write(csr::MAC_CMD, csr::MAC_BUSY | command);
        wait("a register of the MAC", || self.registers.read(csr::MAC_CMD) & csr::MAC_BUSY == 0)
    }

    fn read_phy(&self, index: u32) -> Result<u32, EthernetError> {
        self.command_phy(index, 0)?;
        self.read_mac(mac::MII_DATA)
    }

    fn write_phy(&self, index: u32, value: u32) -> Result<(), EthernetError> {
        self.write_mac(mac::MII_DATA, value)?;
        self.command_phy(index, mac::MII_WRITE)
    }

    /// Reaches a register of the transceiver, which lies behind two of the MAC.
    fn command_phy(&self, index: u32, write: u32) -> Result<(), EthernetError> {
        let command = mac::MII_INTERNAL_PHY | index << mac::MII_INDEX_SHIFT | write | mac::MII_BUSY;
        self.write_mac(mac::MII_ACCESS, command)?;
        let mut access = Ok(0);
        wait("a register of the transceiver", || {
            access = self.read_mac(mac::MII_ACCESS);
            access.is_ok_and(|access| access & mac::MII_BUSY == 0) || access.is_err()
        })?;
        access.map(drop)
    }
}

impl phy::Device for Ethernet {
    type RxToken<'a> = Received<'a>;
    type TxToken<'a> = Room<'a>;

    fn receive(&mut self, _: Instant) -> Option<(Received<'_>, Room<'_>)> {
        // Without room for an answer the frame can wait until the next look, 0.67 s at most.
        if !self.has_room() {
            return None;
        }
        let len = self.take_frame()?;
        let room = Room { registers: self.registers, buffer: &mut self.sent };
        Some((Received(self.received.get(..len)?), room))
    }

    fn transmit(&mut self, _: Instant) -> Option<Room<'_>> {
        self.has_room().then_some(Room { registers: self.registers, buffer: &mut self.sent })
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = FRAME;
        capabilities.max_burst_size = Some(1);
        capabilities
    }
}

/// A frame that arrived.
pub(crate) struct Received<'a>(&'a [u8]);

impl phy::RxToken for Received<'_> {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, f: F) -> R {
        f(self.0)
    }
}

/// The room for one frame to send.
pub(crate) struct Room<'a> {
    registers: Registers,
    buffer: &'a mut [u8],
}

impl phy::TxToken for Room<'_> {
    /// Hands the controller the frame of `len` bytes that `f` writes.
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, f: F) -> R {
        let result = f(&mut self.buffer[..len]);
        let whole = csr::TX_COMMAND_FIRST | csr::TX_COMMAND_LAST;
        self.registers.write(csr::TX_DATA_FIFO, whole | len as u32);
        self.registers.write(csr::TX_DATA_FIFO, len as u32);
        for word in self.buffer.as_chunks().0.iter().take(len.div_ceil(4)) {
            self.registers.write(csr::TX_DATA_FIFO, u32::from_le_bytes(*word));
        }
        result
    }
}

/// Waits until `done`, for a bounded time.
fn wait(what: &'static str, mut done: impl FnMut() -> bool) -> Result<(), EthernetError> {
    let in_time = (0..PATIENCE).any(|_| done());
    if in_time { Ok(()) } else { Err(EthernetError::TimedOut(what)) }
}

impl fmt::Display for EthernetError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Absent(found) => write!(f, "no LAN9118 there: its test register holds {found:#010x}"),
            Self::TimedOut(what) => write!(f, "the Ethernet controller took too long: {what}"),
            Self::NoAddress => f.write_str("the Ethernet controller has no address: write one to its EEPROM"),
        }
    }
}

impl core::error::Error for EthernetError {}
