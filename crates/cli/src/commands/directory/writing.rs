//! The rules for writes to files (permissions, rates, quota), and the counters of writes.

use std::fmt::Write as _;
use std::sync::{Mutex, PoisonError};

use cap_std::fs::Dir;
use coapace_net::{Code, Rejection, Request};

use super::audit::Audit;
use super::pace::WritePace;
use super::quota::{Files as _, Quota};
use crate::arguments::Serve;
use crate::process::sample;
use crate::rights::SharedRights;

/// The rules for writes of clients to files.
pub(crate) struct WriteRules {
    rights: SharedRights,
    pub(super) pace: WritePace,
    pub(super) quota: Quota,
    pub(super) audit: Audit,
    /// Locked from the check of a file to its replacement or removal, so that no other client intervenes. One lock serves all
    /// files, because symbolic links can give a file several paths. The slow part, writing the new content, happens before the
    /// lock is taken.
    pub(super) replacing: Mutex<()>,
}

impl WriteRules {
    /// Returns the rules that the arguments give for a directory.
    pub(crate) fn new(serve: &Serve, rights: SharedRights, top: &Dir) -> Self {
        Self {
            rights,
            pace: WritePace::new(serve.max_writes),
            quota: Quota::new(serve.max_files, serve.max_stored, top.count()),
            audit: Audit::default(),
            replacing: Mutex::new(()),
        }
    }

    /// Checks that the client of a request has permission to write its path.
    ///
    /// # Errors
    /// 4.01 for a client without an identity, and 4.03 for others.
    pub(super) fn permit(&self, request: &Request) -> Result<(), Rejection> {
        // A reload replaces the rights, so they are looked up for each request.
        let rights = self.rights.read().unwrap_or_else(PoisonError::into_inner);
        match (rights.as_ref(), request.peer_identity()) {
            (None, _) => Ok(()),
            (Some(rights), _) if rights.allow(request) => Ok(()),
            (Some(_), None) => {
                Err(Rejection::new(Code::UNAUTHORIZED)
                    .because("only clients with an identity may write here"))
            }
            (Some(_), Some(identity)) => {
                Err(Rejection::new(Code::FORBIDDEN).because(format!("{identity} may not write here")))
            }
        }
    }

    /// Returns the metrics in the text format of Prometheus.
    pub(super) fn exposition(&self) -> String {
        let (there, most) = self.quota.usage();
        let mut text = String::new();
        for (name, help, value) in [
            ("coap_stored_files", "Files below the directory.", there.files),
            ("coap_stored_files_max", "Files that may be there (--max-files).", most.files),
            ("coap_stored_bytes", "Bytes of these files.", there.bytes),
            ("coap_stored_bytes_max", "Bytes that they may have (--max-stored).", most.bytes),
        ] {
            sample(&mut text, name, "", "gauge", help, Some(value as f64));
        }
        let name = "coap_file_writes_total";
        // Writing to a string does not fail.
        let _ = writeln!(text, "# HELP {name} PUT and DELETE of files, by result.\n# TYPE {name} counter");
        for (result, count) in self.audit.counts() {
            let _ = writeln!(text, "{name}{{result=\"{result}\"}} {count}");
        }
        text
    }
}
