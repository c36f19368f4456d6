//! `FILE.part`: the first blocks of an output file whose transfer broke.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use coapace_net::Partial;

use crate::message::{bytes_of_hex, hex};

/// The first words of the first line of the file. The ETag in hexadecimal digits and the URI follow, then the bytes.
const MARK: &str = "coapace-part";

/// The file `FILE.part`, with the first blocks of the response that was to go into `FILE`.
pub(crate) struct PartialFile<'a> {
    path: PathBuf,
    /// The URI of the transfer. It is kept beside the ETag, because two resources may have equal ETags.
    uri: &'a str,
}

impl<'a> PartialFile<'a> {
    /// Returns the partial file beside the file at `path`.
    pub(crate) fn of(path: &Path, uri: &'a str) -> Self {
        let mut name = path.as_os_str().to_owned();
        // `with_extension` would replace an extension, so that `a.bin` and `a.txt` would share one partial file.
        name.push(".part");
        Self { path: name.into(), uri }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the partial file. Returns `None` if the file is missing or does not belong to this resource.
    ///
    /// # Errors
    /// Errors of the system.
    pub(crate) fn read(&self) -> io::Result<Option<Partial>> {
        let bytes = match fs::read(&self.path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            bytes => bytes?,
        };
        Ok(self.parse(bytes))
    }

    fn parse(&self, mut bytes: Vec<u8>) -> Option<Partial> {
        let end = bytes.iter().position(|&byte| byte == b'\n')?;
        // Only the first line has to be text. The blocks after it may be any bytes.
        let line = std::str::from_utf8(&bytes[..end]).ok()?;
        let (etag, uri) = line.strip_prefix(MARK)?.strip_prefix(' ')?.split_once(' ')?;
        // Another resource may have an equal ETag, so the URI has to fit, too.
        let etag = bytes_of_hex(etag.as_bytes()).filter(|_| uri == self.uri)?;
        bytes.drain(..=end);
        Some(Partial { etag, body: bytes })
    }

    /// Writes the partial file. A longer part of the same body stays. Returns the number of bytes of the body in the file.
    ///
    /// # Errors
    /// Errors of the system, and `AlreadyExists` if another kind of file is there.
    pub(crate) fn write(&self, partial: &Partial) -> io::Result<usize> {
        if let Ok(there) = fs::read(&self.path) {
            // A file of the user that has this name by chance is not overwritten.
            if !there.starts_with(MARK.as_bytes()) {
                return Err(io::ErrorKind::AlreadyExists.into());
            }
            // A transfer without --continue begins at the first block, and may break sooner than an earlier one.
            let longer =
                |there: &Partial| there.etag == partial.etag && there.body.len() > partial.body.len();
            if let Some(there) = self.parse(there).filter(longer) {
                return Ok(there.body.len());
            }
        }
        let mut file = File::create(&self.path)?;
        writeln!(file, "{MARK} {} {}", hex(&partial.etag), self.uri)?;
        file.write_all(&partial.body)?;
        // Without this, a power cut could leave zeros at the end, and --continue would take them for blocks.
        file.sync_all()?;
        Ok(partial.body.len())
    }

    /// Removes the partial file of this resource, if it exists, because the download is complete.
    pub(crate) fn remove(&self) {
        if self.read().is_ok_and(|part| part.is_some()) {
            // One that stays is of no use, and does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partial_download_is_read_back_and_is_used_for_its_own_resource_only() {
        let folder = std::env::temp_dir().join(format!("coapace-part-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder");
        let file = folder.join("image.bin");
        let part = PartialFile::of(&file, "coap://host/image");
        assert_eq!(part.path(), folder.join("image.bin.part"));
        assert_eq!(part.read().expect("it can be read"), None);
        let partial = Partial { etag: vec![0, 0xa1, b'\n'], body: b"one\ntwo\x00".to_vec() };
        assert_eq!(part.write(&partial).expect("it can be written"), 8);
        assert_eq!(part.read().expect("it can be read").as_ref(), Some(&partial));
        let shorter = Partial { etag: partial.etag.clone(), body: b"one".to_vec() };
        assert_eq!(part.write(&shorter).expect("the longer part stays"), 8);
        assert_eq!(part.read().expect("it can be read"), Some(partial));
        let of_another_version = Partial { etag: vec![7], body: b"one".to_vec() };
        assert_eq!(part.write(&of_another_version).expect("it can be written"), 3);
        let other = PartialFile::of(&file, "coap://host/other");
        assert_eq!(other.read().expect("it can be read"), None);
        other.remove();
        assert!(part.path().exists());
        part.remove();
        assert!(!part.path().exists());
        for bytes in
            ["", "no line", "coapace-part 0 \n", "coapace-part a1 coap://host/imag\nx", "other a1 x\n"]
        {
            fs::write(part.path(), bytes).expect("it can be written");
            assert_eq!(part.read().expect("it can be read"), None, "{bytes:?}");
            part.remove();
            assert!(part.path().exists(), "it is somebody's file");
        }
        let written = part.write(&Partial { etag: vec![1], body: vec![2] });
        assert_eq!(written.map_err(|error| error.kind()), Err(io::ErrorKind::AlreadyExists));
        fs::remove_dir_all(&folder).expect("it is removed");
    }
}
