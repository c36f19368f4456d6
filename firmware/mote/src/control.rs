//! The congestion control: any mechanism by its name, or `cocoa` alone, as a product would have it.

use alloc::boxed::Box;
use core::error::Error;

#[cfg(feature = "cocoa-alone")]
pub(crate) use coapace_control::Cocoa as Control;
#[cfg(not(feature = "cocoa-alone"))]
pub(crate) use coapace_control::Mechanism as Control;

/// Returns the mechanism of this name, or `NAME:parameter=value,…`.
///
/// # Errors
/// [`ParseMechanismError`](coapace_control::ParseMechanismError) names what is wrong.
#[cfg(not(feature = "cocoa-alone"))]
pub(crate) fn named(text: &str) -> Result<Control, Box<dyn Error>> {
    Ok(text.parse()?)
}

/// Returns the only mechanism of this image.
///
/// # Errors
/// A text for any other name.
#[cfg(feature = "cocoa-alone")]
pub(crate) fn named(text: &str) -> Result<Control, Box<dyn Error>> {
    if text == "cocoa" {
        Ok(Control::DEFAULT)
    } else {
        Err("this image has the mechanism cocoa alone".into())
    }
}
