//! Parameters of mechanisms: each is declared once, and can be read and set by its name.

use core::fmt;
use core::num::NonZeroU16;

use crate::{Duration, Packed, division};

/// The description of a parameter.
#[derive(Clone, Copy, Debug)]
pub struct Parameter {
    /// The name, as written in `NAME:parameter=value`.
    pub name: &'static str,
    /// The meaning of the parameter, with its source.
    pub doc: &'static str,
    /// The accepted values, in words.
    pub kind: &'static str,
}

/// The description of a preset: a named set of parameter values. A preset sets all parameters, so settings that differ
/// from it must come after it.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name, as written in `NAME:preset=…`.
    pub name: &'static str,
    /// The implementation or the rules that the preset reproduces, with their source.
    pub doc: &'static str,
}

/// The reason why a parameter could not be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetError {
    /// No parameter has this name.
    UnknownParameter,
    /// No preset has this name.
    UnknownPreset,
    /// The parameter does not accept the value. Holds a description of the accepted values.
    BadValue(&'static str),
}

/// A fraction of two integers of 16 bits, for factors and weights that must be exact, such as 3/2, 13/10 or 1/4.
// Packed, so that it can lie at any address: states and exchanges have an alignment of 1.
#[derive(Clone, Copy)]
#[repr(Rust, packed)]
pub struct Ratio {
    numerator: u16,
    denominator: NonZeroU16,
}

/// Compares the values of fractions: 3/2 is equal to 15/10.
impl PartialEq for Ratio {
    fn eq(&self, other: &Self) -> bool {
        // Products of two 16-bit numbers fit 32 bits.
        self.numerator as u32 * other.denominator.get() as u32
            == other.numerator as u32 * self.denominator.get() as u32
    }
}

impl Eq for Ratio {}

impl Ratio {
    /// Returns `numerator` / `denominator`. A denominator of 0 counts as 1.
    pub const fn new(numerator: u16, denominator: u16) -> Self {
        let denominator = match NonZeroU16::new(denominator) {
            Some(denominator) => denominator,
            None => NonZeroU16::MIN,
        };
        Self { numerator, denominator }
    }

    /// Returns the numerator and the denominator.
    pub(crate) const fn terms(self) -> [u16; 2] {
        [self.numerator, self.denominator.get()]
    }

    /// Returns this fraction minus one, or zero if it is below one.
    pub(crate) const fn above_one(self) -> Self {
        Self {
            numerator: self.numerator.saturating_sub(self.denominator.get()),
            denominator: self.denominator,
        }
    }

    /// Returns this fraction times `span`, to the nearest microsecond.
    pub const fn of(self, span: Duration) -> Duration {
        Duration::from_micros(self.of_u64(span.as_micros()))
    }

    /// Returns this fraction times `value`, to the nearest integer, halves up. A product above `u64::MAX` becomes
    /// `u64::MAX`.
    pub const fn of_u64(self, value: u64) -> u64 {
        let half = (self.denominator.get() / 2) as u64;
        division::by_u16(value.saturating_mul(self.numerator as u64).saturating_add(half), self.denominator)
    }

    /// Returns whether `fraction`/2¹⁶ is at least as large as this fraction, which is rounded to the nearest multiple
    /// of 2⁻¹⁶ first.
    pub(crate) const fn is_reached_by(self, fraction: u16) -> bool {
        let (numerator, denominator) = (self.numerator as u32, self.denominator.get() as u32);
        // Instead of a division: fraction ≥ ⌊x/d⌋ is the same as fraction + 1 > x/d. Both sides fit 32 bits.
        (fraction as u32 + 1) * denominator > (numerator << 16) + denominator / 2
    }

    /// Returns this fraction times `value`, which is below 2⁴⁸, rounded like in [`of_u64`](Self::of_u64). The product
    /// cannot overflow.
    pub(crate) const fn of_u48(self, value: u64) -> u64 {
        self.divide(value * self.numerator as u64)
    }

    /// Returns f·`new` + (1 − f)·`old` for this fraction f, to the nearest integer, halves up. Both numbers are below
    /// 2⁴⁷. A fraction above 1 ignores `old`.
    pub(crate) const fn blend_u47(self, new: u64, old: u64) -> u64 {
        let rest = self.denominator.get().saturating_sub(self.numerator);
        // Each product has 63 bits, so their sum fits.
        self.divide(new * self.numerator as u64 + old * rest as u64)
    }

    /// Blends like [`blend_u47`](Self::blend_u47), for `new` and `old` of at most 2¹⁶.
    pub(crate) const fn blend_u17(self, new: u32, old: u32) -> u32 {
        let denominator = self.denominator.get() as u32;
        let rest = denominator.saturating_sub(self.numerator as u32);
        // The sum of the products is at most 2³² − 2¹⁶, so half of a denominator still fits.
        (new * self.numerator as u32 + old * rest + denominator / 2) / denominator
    }

    /// Divides the product of a number of 48 bits and one of 16 bits by the denominator, to the nearest integer, halves
    /// up.
    const fn divide(self, product: u64) -> u64 {
        division::by_u16(product + (self.denominator.get() / 2) as u64, self.denominator)
    }
}

/// Writes the fraction as a decimal number if at most four digits make it exact, and as `numerator/denominator`
/// otherwise.
impl fmt::Display for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (n, d) = (self.numerator as u32, self.denominator.get() as u32);
        // The product of 16 and 14 bits fits.
        if (n * 10_000) % d != 0 {
            return write!(f, "{n}/{d}");
        }
        write!(f, "{}", n / d)?;
        let mut rest = n % d * 10_000 / d;
        let mut place = 1_000;
        let mut point = ".";
        while rest > 0 {
            write!(f, "{point}{}", rest / place)?;
            rest %= place;
            place /= 10;
            point = "";
        }
        Ok(())
    }
}

impl fmt::Debug for Ratio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A type of parameter values. [`choice!`](crate::choice) declares such a type as an enumeration.
pub trait Value: Packed + PartialEq + fmt::Display {
    /// The accepted values, in words.
    const KIND: &'static str;

    /// Reads a value. Returns `None` if `text` is not an accepted value.
    fn parse(text: &str) -> Option<Self>;
}

/// A mechanism whose parameters have names. [`parameters!`](crate::parameters!) implements it.
pub trait Parameters: Packed + PartialEq {
    /// The mechanism with its default parameters.
    const DEFAULT: Self;

    /// Descriptions of the parameters, in the order of their declaration.
    const PARAMETERS: &'static [Parameter];

    /// Descriptions of the presets.
    const PRESETS: &'static [Preset];

    /// Sets a parameter by name. The name `preset` sets all parameters as a preset does.
    ///
    /// # Errors
    /// [`SetError`] says whether the name or the value is wrong.
    fn set(&mut self, name: &str, value: &str) -> Result<(), SetError>;

    /// Writes the value of the parameter `name` to `f`. Writes nothing if no parameter has this name.
    ///
    /// # Errors
    /// Fails if `f` does.
    fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result;
}

impl Value for u8 {
    const KIND: &'static str = "a whole number up to 255";
    fn parse(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

impl Value for Duration {
    const KIND: &'static str = "a time above zero with its unit, such as 2s, 1.5s, 500ms or 800us";
    fn parse(text: &str) -> Option<Self> {
        const UNITS: [(&str, u64); 5] =
            [("us", 1), ("ms", 1_000), ("s", 1_000_000), ("min", 60_000_000), ("h", 3_600_000_000)];
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let (number, unit) = text.split_at(end);
        // A bare number may be meant in seconds or in milliseconds.
        let unit = unit.strip_prefix(' ').unwrap_or(unit);
        let unit = UNITS.iter().find(|(name, _)| *name == unit)?.1;
        let (mantissa, scale) = decimal(number)?;
        // To the nearest microsecond. A time that rounds to zero is refused.
        let us = mantissa.checked_mul(unit)?.checked_add(scale / 2)? / scale;
        (us > 0).then_some(Self::from_micros(us))
    }
}

impl Value for Ratio {
    const KIND: &'static str = "a number such as 1.5, or a fraction such as 3/2";
    fn parse(text: &str) -> Option<Self> {
        if let Some((n, d)) = text.split_once('/') {
            let (n, d) = (n.parse().ok()?, d.parse().ok()?);
            // `new` would read a denominator of 0 as 1.
            return (d > 0).then_some(Self::new(n, d));
        }
        let (mantissa, scale) = decimal(text)?;
        // The denominator has 16 bits, which allows four decimal places.
        Some(Self::new(u16::try_from(mantissa).ok()?, u16::try_from(scale).ok()?))
    }
}

/// Returns the digits of a decimal number without its point, and the power of ten to divide them by; `None` if `text`
/// is not a decimal number with at most nine places.
fn decimal(text: &str) -> Option<(u64, u64)> {
    let (whole, places) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(places) || places.len() > 9 {
        return None;
    }
    let scale = 10u64.pow(places.len() as u32);
    let fraction: u64 = if places.is_empty() { 0 } else { places.parse().ok()? };
    Some((whole.parse::<u64>().ok()?.checked_mul(scale)?.checked_add(fraction)?, scale))
}

/// Declares an enumeration as a type of parameter values. Each variant is written as its first text, and parsed from
/// any of its texts.
///
/// ```
/// coapace_control::choice! {
///     /// The effect of an exchange that is given up.
///     pub enum AfterGiveUp {
///         /// The RTO stays as it is.
///         Keep = "keep",
///         /// The RTO is forgotten.
///         Forget = "forget" | "reset",
///     }
/// }
/// assert_eq!(AfterGiveUp::Forget.to_string(), "forget");
/// ```
#[macro_export]
macro_rules! choice {
    (
        $(#[$meta:meta])+
        $visibility:vis enum $name:ident { $($(#[$variant_meta:meta])+ $variant:ident = $text:literal $(| $alias:literal)*,)+ }
    ) => {
        $(#[$meta])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility enum $name { $($(#[$variant_meta])+ $variant,)+ }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.write_str(match self { $(Self::$variant => $text,)+ })
            }
        }

        impl $crate::Value for $name {
            const KIND: &'static str = $crate::choice!(@kind $($text)+);

            fn parse(text: &str) -> Option<Self> {
                match text { $($text $(| $alias)* => Some(Self::$variant),)+ _ => None }
            }
        }

        /// Packs the index of the variant. An index without a variant unpacks to the first variant.
        impl $crate::Packed for $name {
            const BYTES: usize = 1;

            fn pack(self, bytes: &mut [u8]) -> &mut [u8] {
                (self as u8).pack(bytes)
            }

            fn unpack(bytes: &[u8]) -> (Self, &[u8]) {
                let variants = [$(Self::$variant),+];
                let (place, rest) = <u8 as $crate::Packed>::unpack(bytes);
                (*variants.get(usize::from(place)).unwrap_or(&variants[0]), rest)
            }
        }
    };
    (@kind $first:literal $($rest:literal)*) => { concat!($first $(, " or ", $rest)*) };
}
pub(crate) use choice;

choice! {
    /// Whether a rule of a mechanism applies.
    pub enum Switch {
        /// The rule applies.
        On = "on",
        /// The rule does not apply.
        Off = "off",
    }
}

impl Switch {
    /// Returns true for `On`.
    pub const fn is_on(self) -> bool {
        matches!(self, Self::On)
    }
}

/// Declares the struct of a mechanism, whose fields are its parameters. Also declares the constant `DEFAULT`, and
/// implements [`Parameters`]. A preset is a function from the old parameters to the new ones.
///
/// ```
/// use coapace_control::{Duration, Parameters};
///
/// coapace_control::parameters! {
///     /// A timer that never changes.
///     pub struct Constant {
///         /// The timeout of every transmission.
///         timeout: Duration = Duration::from_secs(2),
///     }
///     presets {
///         /// Twice the time, for links over a satellite.
///         "patient" => |before| Self { timeout: before.timeout.doubled() },
///     }
/// }
/// let mut constant = Constant::DEFAULT;
/// constant.set("timeout", "1.5s").unwrap();
/// constant.set("preset", "patient").unwrap();
/// assert_eq!(constant.timeout, Duration::from_secs(3));
/// ```
#[macro_export]
macro_rules! parameters {
    (
        $(#[doc = $doc:literal])+
        $visibility:vis struct $name:ident {
            $($(#[doc = $field_doc:literal])+ $field:ident: $kind:ty = $default:expr,)*
        }
        presets {
            $($(#[doc = $preset_doc:literal])+ $preset:literal => $adjust:expr,)*
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        $visibility struct $name { $($(#[doc = $field_doc])+ pub $field: $kind,)* }

        impl $name {
            /// The mechanism with its default parameters.
            pub const DEFAULT: Self = Self { $($field: $default,)* };

            /// Descriptions of the parameters, in the order of their declaration.
            pub const PARAMETERS: &'static [$crate::Parameter] = &[$($crate::Parameter {
                name: stringify!($field),
                doc: concat!($($field_doc,)+).trim_ascii(),
                kind: <$kind as $crate::Value>::KIND,
            },)*];

            /// Descriptions of the presets.
            pub const PRESETS: &'static [$crate::Preset] =
                &[$($crate::Preset { name: $preset, doc: concat!($($preset_doc,)+).trim_ascii() },)*];

            /// Sets a parameter by name. The name `preset` sets all parameters as a preset does.
            ///
            /// # Errors
            /// [`SetError`](crate::SetError) says whether the name or the value is wrong.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), $crate::SetError> {
                match name {
                    "preset" => match value {
                        $($preset => {
                            #[allow(clippy::redundant_closure_call, reason = "a preset reads as a function")]
                            {
                                let adjust: fn(Self) -> Self = $adjust;
                                *self = adjust(*self);
                            }
                            Ok(())
                        })*
                        _ => Err($crate::SetError::UnknownPreset),
                    },
                    $(stringify!($field) => {
                        self.$field = $crate::Value::parse(value)
                            .ok_or($crate::SetError::BadValue(<$kind as $crate::Value>::KIND))?;
                        Ok(())
                    })*
                    _ => Err($crate::SetError::UnknownParameter),
                }
            }
        }

        impl $crate::Parameters for $name {
            const DEFAULT: Self = Self::DEFAULT;
            const PARAMETERS: &'static [$crate::Parameter] = Self::PARAMETERS;
            const PRESETS: &'static [$crate::Preset] = Self::PRESETS;

            fn set(&mut self, name: &str, value: &str) -> Result<(), $crate::SetError> {
                Self::set(self, name, value)
            }

            fn show(&self, name: &str, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                match name {
                    $(stringify!($field) => core::fmt::Display::fmt(&self.$field, f),)*
                    _ => Ok(()),
                }
            }
        }

        $crate::packed_fields! { $name { $($field: $kind,)* } }
    };
}
pub(crate) use parameters;
