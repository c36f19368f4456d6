//! The registers of a LAN9118 that the driver uses, by the names of SMSC's data sheet.

/// Registers that the processor reaches directly, and their bits.
pub(super) mod csr {
    pub(crate) const RX_DATA_FIFO: usize = 0x00;
    pub(crate) const TX_DATA_FIFO: usize = 0x20;
    pub(crate) const RX_STATUS_FIFO: usize = 0x40;
    pub(crate) const INT_CFG: usize = 0x54;
    pub(crate) const INT_STS: usize = 0x58;
    pub(crate) const INT_EN: usize = 0x5c;
    pub(crate) const BYTE_TEST: usize = 0x64;
    pub(crate) const FIFO_INT: usize = 0x68;
    pub(crate) const TX_CFG: usize = 0x70;
    pub(crate) const HW_CFG: usize = 0x74;
    pub(crate) const RX_FIFO_INF: usize = 0x7c;
    pub(crate) const TX_FIFO_INF: usize = 0x80;
    pub(crate) const MAC_CMD: usize = 0xa4;
    pub(crate) const MAC_DATA: usize = 0xa8;
    pub(crate) const E2P_CMD: usize = 0xb0;

    pub(crate) const INT_CFG_ENABLE: u32 = 1 << 8;
    pub(crate) const INT_CFG_ACTIVE_HIGH: u32 = 1 << 4;
    pub(crate) const INT_CFG_PUSH_PULL: u32 = 1 << 0;
    /// More frames wait than `FIFO_INT` says.
    pub(crate) const INT_RSFL: u32 = 1 << 3;
    pub(crate) const BYTE_TEST_VALUE: u32 = 0x8765_4321;
    pub(crate) const TX_CFG_FORGET_STATUS: u32 = 1 << 2;
    pub(crate) const TX_CFG_ON: u32 = 1 << 1;
    pub(crate) const HW_CFG_MUST_BE_ONE: u32 = 1 << 20;
    pub(crate) const HW_CFG_TX_SIZE_SHIFT: u32 = 16;
    pub(crate) const HW_CFG_RESET: u32 = 1 << 0;
    /// The number of frames that wait, in its place.
    pub(crate) const RX_FIFO_INF_FRAMES: u32 = 0xff << 16;
    pub(crate) const RX_STATUS_LEN_SHIFT: u32 = 16;
    pub(crate) const RX_STATUS_LEN: u32 = 0x3fff;
    pub(crate) const RX_STATUS_ERROR: u32 = 1 << 15;
    /// The bytes that the transmit FIFO has room for.
    pub(crate) const TX_FIFO_INF_FREE: u32 = 0xffff;
    pub(crate) const TX_COMMAND_FIRST: u32 = 1 << 13;
    pub(crate) const TX_COMMAND_LAST: u32 = 1 << 12;
    pub(crate) const MAC_BUSY: u32 = 1 << 31;
    pub(crate) const MAC_READ: u32 = 1 << 30;
    pub(crate) const E2P_BUSY: u32 = 1 << 31;
}

/// Registers of the MAC, and their bits.
pub(super) mod mac {
    pub(crate) const CONTROL: u32 = 1;
    pub(crate) const ADDRESS_HIGH: u32 = 2;
    pub(crate) const ADDRESS_LOW: u32 = 3;
    pub(crate) const MII_ACCESS: u32 = 6;
    pub(crate) const MII_DATA: u32 = 7;

    pub(crate) const CONTROL_FULL_DUPLEX: u32 = 1 << 20;
    pub(crate) const CONTROL_TRANSMIT: u32 = 1 << 3;
    pub(crate) const CONTROL_RECEIVE: u32 = 1 << 2;
    pub(crate) const MII_INTERNAL_PHY: u32 = 1 << 11;
    pub(crate) const MII_INDEX_SHIFT: u32 = 6;
    pub(crate) const MII_WRITE: u32 = 1 << 1;
    pub(crate) const MII_BUSY: u32 = 1 << 0;
}

/// Registers of the transceiver (IEEE 802.3, 22.2.4), and their bits.
pub(super) mod phy {
    pub(crate) const CONTROL: u32 = 0;
    pub(crate) const STATUS: u32 = 1;
    pub(crate) const OWN_ABILITIES: u32 = 4;
    pub(crate) const PARTNER_ABILITIES: u32 = 5;

    /// Negotiation is on, and begins again.
    pub(crate) const CONTROL_NEGOTIATE: u32 = 1 << 12 | 1 << 9;
    pub(crate) const STATUS_LINK: u32 = 1 << 2;
    /// 100 Mbit/s and 10 Mbit/s, each first with full and then with half duplex.
    pub(crate) const BY_PRIORITY: [(u32, bool); 4] =
        [(1 << 8, true), (1 << 7, false), (1 << 6, true), (1 << 5, false)];
}
