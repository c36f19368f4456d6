//! Kinds of events that have names.

/// Declares kinds of events with their names in traces. The doc comment of each kind is also its description in
/// `docs/results.md`.
macro_rules! named {
    ($(#[$meta:meta])+ pub enum $name:ident { $($(#[doc = $about:literal])+ $event:ident = $text:literal,)+ }) => {
        $(#[$meta])+
        pub enum $name { $($(#[doc = $about])+ $event,)+ }

        impl $name {
            /// All kinds.
            pub const ALL: &[Self] = &[$(Self::$event,)+];

            /// Returns the kind's name in traces.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$event => $text,)+ }
            }

            /// Returns the kind's description, in a sentence.
            pub const fn about(self) -> &'static str {
                match self { $(Self::$event => concat!($($about),+).trim_ascii(),)+ }
            }
        }
    };
}
pub(crate) use named;
