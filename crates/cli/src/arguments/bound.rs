//! Arguments that limit something for all clients together and for each client: TOTAL or TOTAL/CLIENT.

/// A limit for all clients together, and one for each client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SharedBound {
    pub(crate) total: u64,
    pub(crate) client: u64,
}

impl SharedBound {
    /// Parses a limit; `read` parses each of its numbers. If the text has only a total, the limit of a client is a
    /// quarter of the total.
    fn read(text: &str, read: impl Fn(&str) -> Result<u64, String>) -> Result<Self, String> {
        let (total, client) = match text.split_once('/') {
            Some((total, client)) => (read(total)?, read(client)?),
            // Rounded up, so that a total below 4 still leaves each client 1.
            None => read(text).map(|total| (total, total.div_ceil(4)))?,
        };
        if total == 0 || client == 0 {
            return Err("expected at least 1".to_owned());
        }
        if client > total {
            return Err("the limit of a client must not exceed the total".to_owned());
        }
        Ok(Self { total, client })
    }
}

/// Reads limits in bytes: `1G`, `1G/256M`.
pub(super) fn of_bytes(text: &str) -> Result<SharedBound, String> {
    SharedBound::read(text, size)
}

/// Reads limits that are plain numbers: `10000`, `10000/2500`.
pub(super) fn of_numbers(text: &str) -> Result<SharedBound, String> {
    let wrong = |_| "expected TOTAL or TOTAL/CLIENT, such as 10000/2500".to_owned();
    SharedBound::read(text, |number| number.parse().map_err(wrong))
}

/// Reads a number of bytes: 500000, 512K, 64M, 1G, 1 GiB.
pub(super) fn size(text: &str) -> Result<u64, String> {
    let wrong = || "expected a number of bytes, such as 512M or 2G".to_owned();
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    // A blank before the unit is allowed, as in scenario files.
    let power = match unit.trim().to_ascii_lowercase().as_str() {
        "" | "b" => 0,
        "k" | "kib" => 10,
        "m" | "mib" => 20,
        "g" | "gib" => 30,
        _ => return Err(wrong()),
    };
    let number: u64 = number.parse().map_err(|_| wrong())?;
    // `1 << power` is a u64 with at most 31 bits, so only the product can overflow.
    number.checked_mul(1 << power).ok_or_else(|| "expected less than 2^64 bytes".to_owned())
}

/// Reads a number of bytes that is at least 1 MiB.
pub(super) fn memory(text: &str) -> Result<usize, String> {
    let bytes = usize::try_from(size(text)?).ok().filter(|&bytes| bytes >= 1 << 20);
    bytes.ok_or_else(|| "expected at least 1M, and no more than this machine can address".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_client_may_use_a_quarter_of_a_bound_unless_an_option_sets_its_share() {
        assert_eq!(of_bytes("1G"), Ok(SharedBound { total: 1 << 30, client: 256 << 20 }));
        assert_eq!(of_bytes("64K/1k"), Ok(SharedBound { total: 65_536, client: 1_024 }));
        assert_eq!(of_numbers("10/3"), Ok(SharedBound { total: 10, client: 3 }));
        assert_eq!(of_numbers("1"), Ok(SharedBound { total: 1, client: 1 }));
        for text in ["", "0", "1/0", "1/2", "1/1/1", "x", "-1", "1.5"] {
            assert!(of_numbers(text).is_err(), "{text}");
        }
        assert!(of_bytes("99999999999G").is_err());
    }
}
