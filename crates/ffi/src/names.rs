//! The names of mechanisms, and the version of the library.

use core::ffi::{CStr, c_char, c_int};
use core::ptr;

#[rustfmt::skip]
macro_rules! texts {
    ([$(($place:literal $number:literal $kind:ident $tag:literal $name:literal $summary:literal $source:literal))+]) => {
        /// Returns the name of a mechanism, such as `cocoa-plus`, or null if the library has none of this number.
        #[unsafe(no_mangle)]
        pub extern "C" fn coapace_name(name: c_int) -> *const c_char {
            let text: &CStr = match name { $($place => $name,)+ _ => return ptr::null() };
            text.as_ptr()
        }

        /// Returns a description in one line, or null if the library has no mechanism of this number.
        #[unsafe(no_mangle)]
        pub extern "C" fn coapace_summary(name: c_int) -> *const c_char {
            let text: &CStr = match name { $($place => $summary,)+ _ => return ptr::null() };
            text.as_ptr()
        }

        /// Returns the paper, draft or RFC of a mechanism, or null if the library has none of this number.
        #[unsafe(no_mangle)]
        pub extern "C" fn coapace_source(name: c_int) -> *const c_char {
            let text: &CStr = match name { $($place => $source,)+ _ => return ptr::null() };
            text.as_ptr()
        }

        /// Returns the position of a mechanism in the registry by its name, if it was compiled.
        pub(crate) fn place_of(name: &[u8]) -> Option<usize> {
            [$(($place, $name)),+].into_iter().find(|(_, known)| known.to_bytes() == name).map(|(place, _)| place)
        }
    };
}

entries!(texts);

/// Returns the version of the library, to compare with `COAPACE_VERSION` of the header. Never null.
#[unsafe(no_mangle)]
pub extern "C" fn coapace_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}
