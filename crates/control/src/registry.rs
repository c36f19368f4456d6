//! The list of mechanisms of this crate, and the enumerations for choosing one at run time. A new mechanism is a file in
//! `registry/` and a line in the list below. A mechanism of another crate is the variant [`Own`].

use core::fmt;

use crate::own::Own;
use crate::{Controller, Cue, Duration, Gauges, Limits, Outcome, Parameter, Parameters, Preset, SetError};

/// A named mechanism and its description. Several entries may have the same kind of mechanism with different
/// parameters.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The name in configurations, on the command line and in results.
    pub name: &'static str,
    /// A description in one line.
    pub summary: &'static str,
    /// The paper, draft or RFC that describes the mechanism.
    pub source: &'static str,
    /// The publisher of the mechanism.
    pub origin: Origin,
    /// Advice: when to use it, when not, and its hazards.
    pub notes: Notes,
    /// The mechanism with the parameters of this entry.
    pub mechanism: Mechanism,
}

/// The publisher of a mechanism. Comparisons always have a published mechanism as their baseline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Origin {
    /// A paper, a draft, an RFC or the code of another project.
    Published,
    /// This project: nobody else published the mechanism.
    Coapace,
    /// Another crate, which adds the mechanism with [`Entry::own`].
    Own,
}

/// Notes on an entry of the registry, in sentences, for `docs/mechanisms.md` and the command line. Mechanisms
/// themselves do not use them.
#[derive(Clone, Copy, Debug)]
pub struct Notes {
    /// The kind of document that the source is, and whether it is still valid.
    pub status: &'static str,
    /// Conditions for which the mechanism is suitable.
    pub use_when: &'static str,
    /// Conditions for which another mechanism is more suitable.
    pub avoid_when: &'static str,
    /// Known harm to a network or an application.
    pub hazards: &'static str,
}

/// Declares the modules of mechanisms from two lists of files, and exports their public items. Generates [`REGISTRY`],
/// [`BULK`] and the descriptions of mechanisms. Generates the calls of mechanisms with [`dispatch!`].
macro_rules! registry {
    (
        single { $($file:ident: $variant:ident = $kind:ident { $($entry:ident),+ $(,)? })+ }
        bulk { $($bulk_file:ident: $bulk_variant:ident = $bulk_kind:ident { $($bulk_entry:ident),+ $(,)? })+ }
    ) => {
        $(
            mod $file;
            pub use $file::*;
        )+
        $(
            mod $bulk_file;
            pub use $bulk_file::*;
        )+

        /// Every mechanism of this crate for single exchanges, in the order of the `registry!` call in this
        /// file.
        pub const REGISTRY: &[Entry] = &[$($($file::$entry,)+)+];

        /// Every bulk mechanism of this crate, in the order of the list: mechanisms for many exchanges at once that
        /// carry one body (RFC 7959).
        pub const BULK: &[Entry] = &[$($($bulk_file::$bulk_entry,)+)+];

        registry! { @kinds $($variant = $kind,)+ $($bulk_variant = $bulk_kind,)+ }
    };
    (@kinds $($variant:ident = $kind:ident,)+) => {

        impl Mechanism {
            /// Returns the descriptions of the mechanism's parameters.
            pub const fn parameters(&self) -> &'static [Parameter] {
                match self {
                    $(Self::$variant(_) => <$kind>::PARAMETERS,)+
                    Self::Own(own) => own.parameters(),
                }
            }

            /// Returns the descriptions of the mechanism's presets.
            pub const fn presets(&self) -> &'static [Preset] {
                match self {
                    $(Self::$variant(_) => <$kind>::PRESETS,)+
                    Self::Own(own) => own.presets(),
                }
            }

            /// Returns the size of the mechanism's state for one destination, in bytes.
            pub const fn state_bytes(&self) -> usize {
                match self {
                    $(Self::$variant(_) => size_of::<<$kind as Controller>::State>(),)+
                    Self::Own(own) => own.state_bytes(),
                }
            }

            /// Returns the size of the mechanism's state for one exchange, in bytes.
            pub const fn exchange_bytes(&self) -> usize {
                match self {
                    $(Self::$variant(_) => size_of::<<$kind as Controller>::Exchange>(),)+
                    Self::Own(own) => own.exchange_bytes(),
                }
            }

            /// Returns the name of the mechanism's enum variant. Mechanisms that differ only in their parameters share
            /// a variant. For a mechanism of another crate, returns the name of its entry.
            pub const fn kind(&self) -> &'static str {
                match self {
                    $(Self::$variant(_) => stringify!($variant),)+
                    Self::Own(own) => own.name(),
                }
            }
        }

        dispatch! { $($variant = $kind,)+ Own = Own, }
    };
}

/// Generates the enumerations [`Mechanism`], [`State`] and [`Exchange`], and forwards the calls of [`Controller`] to
/// their variants.
macro_rules! dispatch {
    ($($variant:ident = $kind:path,)+) => {
        /// A mechanism chosen at run time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mechanism { $(#[doc = concat!("See [`", stringify!($kind), "`].")] $variant($kind),)+ }

        /// The state of a [`Mechanism`] for one destination.
        #[derive(Clone, Copy, Debug)]
        pub enum State { $(#[doc = concat!("See [`", stringify!($kind), "`].")] $variant(<$kind as Controller>::State),)+ }

        /// The state of a [`Mechanism`] for one exchange.
        #[derive(Clone, Copy, Debug)]
        #[repr(align(4))] // words are copied faster than bytes, and every call copies it
        pub enum Exchange { $(#[doc = concat!("See [`", stringify!($kind), "`].")] $variant(<$kind as Controller>::Exchange),)+ }

        impl Mechanism {
            /// Sets a parameter by name. The name `preset` sets all parameters as a preset does.
            ///
            /// # Errors
            /// [`SetError`] says whether the name or the value is wrong.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
                match self { $(Self::$variant(mechanism) => mechanism.set(name, value),)+ }
            }

            /// Writes the value of the parameter `name` to `f`. Writes nothing if no parameter has this name.
            pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$variant(mechanism) => mechanism.show(name, f),)+ }
            }
        }

        /// Forwards every call to the mechanism. A state or an exchange of another mechanism is a mistake of the caller
        /// that must not crash a device. In this case the state is initialised again, the exchange is ignored, and the
        /// timeout is 3 s, the longest first timeout of RFC 7252 §4.8.
        impl Controller for Mechanism {
            type State = State;
            type Exchange = Exchange;

            fn state(&self) -> State {
                match self { $(Self::$variant(mechanism) => State::$variant(mechanism.state()),)+ }
            }

            fn on_start(&self, state: &mut State, cue: Cue) -> (Exchange, Duration) {
                match self {
                    $(Self::$variant(mechanism) => {
                        if !matches!(state, State::$variant(_)) {
                            *state = self.state();
                        }
                        // The state is of this variant by now. The compiler does not know that, so it gets another one.
                        let mut fresh = mechanism.state();
                        let own = if let State::$variant(own) = state { own } else { &mut fresh };
                        let (exchange, timeout) = mechanism.on_start(own, cue);
                        (Exchange::$variant(exchange), timeout)
                    })+
                }
            }

            fn on_retransmit(&self, state: &mut State, exchange: &mut Exchange, cue: Cue) -> Duration {
                match (self, state, exchange) {
                    $((Self::$variant(mechanism), State::$variant(state), Exchange::$variant(exchange)) =>
                        mechanism.on_retransmit(state, exchange, cue),)+
                    #[allow(unreachable_patterns)]
                    _ => FOREIGN_TIMEOUT,
                }
            }

            fn on_end(&self, state: &mut State, exchange: Exchange, outcome: Outcome, cue: Cue) {
                match (self, state, exchange) {
                    $((Self::$variant(mechanism), State::$variant(state), Exchange::$variant(exchange)) =>
                        mechanism.on_end(state, exchange, outcome, cue),)+
                    #[allow(unreachable_patterns)]
                    (_, state, _) => *state = self.state(),
                }
            }

            fn max_span(&self, retransmits: u8) -> Duration {
                match self { $(Self::$variant(mechanism) => mechanism.max_span(retransmits),)+ }
            }

            fn limits(&self, state: &State) -> Limits {
                match (self, state) {
                    $((Self::$variant(mechanism), State::$variant(state)) => mechanism.limits(state),)+
                    #[allow(unreachable_patterns)]
                    // The state of this mechanism matches above, so this calls itself once.
                    _ => self.limits(&self.state()),
                }
            }

            fn gauges(&self, state: &State) -> Gauges {
                match (self, state) {
                    $((Self::$variant(mechanism), State::$variant(state)) => mechanism.gauges(state),)+
                    #[allow(unreachable_patterns)]
                    // As for the limits, this calls itself once.
                    _ => self.gauges(&self.state()),
                }
            }
        }
    };
}

/// The timeout for a state or an exchange of another mechanism: the longest first timeout of RFC 7252 §4.8.
const FOREIGN_TIMEOUT: Duration = Duration::from_secs(3);

// Each line has a file, a name for the kind of mechanism, its type, and its entries.
registry! {
    single {
        default: Default = DefaultTimer { DEFAULT }
        fullbackoff: FullBackoff = FullBackoff { FULLBACKOFF1, FULLBACKOFF2, GST_COAP }
        linux: LinuxRto = LinuxRto { LINUX_RTO }
        basic: BasicRto = BasicRto { BASIC_RTO }
        peak_hopper: PeakHopper = PeakHopper { PEAK_HOPPER }
        eifel: CoapEifel = CoapEifel { COAP_EIFEL }
        cocoa: Cocoa = Cocoa {
            COCOA, COCOA0, COCOA_PLUS, COCOA_STRONG, FULLBACKOFF1_COCOA, FULLBACKOFF2_COCOA, GSRTC, COCOA_I
        }
        cocoa_plus_plus: CocoaPlusPlus = CocoaPlusPlus { COCOA_PLUS_PLUS }
        fasor: Fasor = Fasor { FASOR, FASOR_TOKEN, FASOR_OPTION }
        rtt_coap: RttCoap = RttCoap { RTT_COAP }
        ebb: Ebb = Ebb { EBB, EBB_PLAIN }
    }
    bulk {
        tide: Tide = Tide { TIDE }
        newreno: NewReno = NewReno { NEWRENO }
        rfc9177: Rfc9177 = Rfc9177 { RFC9177 }
    }
}

// Tables of destinations and of exchanges have this size for each row.
const _: () = assert!(size_of::<State>() <= 64);
const _: () = assert!(size_of::<Exchange>() <= 24);
