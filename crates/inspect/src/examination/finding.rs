//! The findings of a case.

use std::fmt;

use serde::Serialize;

/// The severity of a finding. Later variants are more severe.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// The case could not be tested; the text says why.
    NotTested,
    /// The stack behaves as specified.
    Ok,
    /// The stack differs from the defaults, as the specification allows.
    Note,
    /// The stack breaks a SHOULD.
    Warning,
    /// The stack breaks a MUST.
    Fault,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::NotTested => "not tested",
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Fault => "fault",
        })
    }
}

/// One result of a case.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The severity.
    pub severity: Severity,
    /// The result of the measurement, in words.
    pub measured: String,
    /// The clause that the finding refers to; empty for the clause of the case.
    pub clause: &'static str,
    /// The numbers of the packets that show the result.
    pub packets: Vec<u32>,
}

impl Finding {
    pub(crate) fn new(severity: Severity, measured: impl Into<String>) -> Self {
        Self { severity, measured: measured.into(), clause: "", packets: Vec::new() }
    }

    pub(crate) fn ok(measured: impl Into<String>) -> Self {
        Self::new(Severity::Ok, measured)
    }

    pub(crate) fn note(measured: impl Into<String>) -> Self {
        Self::new(Severity::Note, measured)
    }

    pub(crate) fn warning(measured: impl Into<String>) -> Self {
        Self::new(Severity::Warning, measured)
    }

    pub(crate) fn fault(measured: impl Into<String>) -> Self {
        Self::new(Severity::Fault, measured)
    }

    pub(crate) fn not_tested(reason: impl Into<String>) -> Self {
        Self::new(Severity::NotTested, reason)
    }

    /// Returns the finding with this clause in place of the case's.
    #[must_use]
    pub(crate) fn by(mut self, clause: &'static str) -> Self {
        self.clause = clause;
        self
    }

    /// Returns the finding with the numbers of the packets that show it.
    #[must_use]
    pub(crate) fn seen_in(mut self, packets: impl IntoIterator<Item = u32>) -> Self {
        self.packets = packets.into_iter().collect();
        self.packets.sort_unstable();
        self.packets.dedup();
        self
    }
}
