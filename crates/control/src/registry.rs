//! Every mechanism of this crate. A new one is a file of its own and a line here; those of other crates are [`Own`].

use core::fmt;

use crate::own::Own;
use crate::{
    Controller, Cue, Duration, Gauges, Limits, Notes, Outcome, Parameter, Parameters, Preset, SetError,
};

/// A mechanism as people choose it.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// Its name wherever a mechanism can be named.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// The paper, draft or RFC it comes from.
    pub source: &'static str,
    /// When to use it, when not, and what is unsafe about it.
    pub notes: Notes,
    /// The mechanism with the parameters this name stands for.
    pub mechanism: Mechanism,
}

/// Makes of a list of mechanisms what describes them, and with [`dispatch!`] what calls them and those of other crates.
macro_rules! registry {
    ($($variant:ident = $kind:path { $($entry:path),+ $(,)? })+) => {
        /// Every mechanism of this crate, in the order they are listed.
        pub const REGISTRY: &[Entry] = &[$($($entry,)+)+];

        impl Mechanism {
            /// Its parameters.
            pub const fn parameters(&self) -> &'static [Parameter] {
                match self {
                    $(Self::$variant(_) => <$kind>::PARAMETERS,)+
                    Self::Own(own) => own.parameters(),
                }
            }

            /// Its presets.
            pub const fn presets(&self) -> &'static [Preset] {
                match self {
                    $(Self::$variant(_) => <$kind>::PRESETS,)+
                    Self::Own(own) => own.presets(),
                }
            }

            /// Bytes of RAM that it needs for each destination.
            pub const fn state_bytes(&self) -> usize {
                match self {
                    $(Self::$variant(_) => size_of::<<$kind as Controller>::State>(),)+
                    Self::Own(own) => own.state_bytes(),
                }
            }

            /// Bytes of RAM that it needs for each exchange under way.
            pub const fn exchange_bytes(&self) -> usize {
                match self {
                    $(Self::$variant(_) => size_of::<<$kind as Controller>::Exchange>(),)+
                    Self::Own(own) => own.exchange_bytes(),
                }
            }

            /// The name of its variant, which mechanisms share that differ in their parameters alone. A mechanism of
            /// another crate has the name of its entry.
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

/// Makes the enumerations of mechanisms, states and exchanges, and passes calls on.
macro_rules! dispatch {
    ($($variant:ident = $kind:path,)+) => {
        /// A mechanism chosen at run time.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Mechanism { $(#[doc = concat!("See [`", stringify!($kind), "`].")] $variant($kind),)+ }

        /// What a [`Mechanism`] remembers of one destination.
        #[derive(Clone, Copy, Debug)]
        pub enum State { $(#[doc = concat!("See [`", stringify!($kind), "`].")] $variant(<$kind as Controller>::State),)+ }

        /// What a [`Mechanism`] remembers of one exchange.
        #[derive(Clone, Copy, Debug)]
        #[repr(align(4))] // not bytes, as the exchanges in it, for it is copied at every call
        pub enum Exchange { $(#[doc = concat!("See [`", stringify!($kind), "`].")] $variant(<$kind as Controller>::Exchange),)+ }

        impl Mechanism {
            /// Sets a parameter by name; `preset` sets several.
            ///
            /// # Errors
            /// [`SetError`] says whether the name or the value is wrong.
            pub fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
                match self { $(Self::$variant(mechanism) => mechanism.set(name, value),)+ }
            }

            /// Writes the value of a parameter, if there is one of this name.
            pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match self { $(Self::$variant(mechanism) => mechanism.show(name, f),)+ }
            }
        }

        /// A state or exchange made by another mechanism than the one asked is a caller's mistake that must not bring
        /// a device down: the state is made anew, the exchange counts as unknown, and RFC 7252's 3 s are armed.
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
                    _ => self.limits(&self.state()),
                }
            }

            fn gauges(&self, state: &State) -> Gauges {
                match (self, state) {
                    $((Self::$variant(mechanism), State::$variant(state)) => mechanism.gauges(state),)+
                    #[allow(unreachable_patterns)]
                    _ => self.gauges(&self.state()),
                }
            }
        }
    };
}

/// The longest first timeout of RFC 7252 §4.8.
const FOREIGN_TIMEOUT: Duration = Duration::from_secs(3);

registry! {
    Default = crate::default::DefaultTimer { crate::default::DEFAULT }
    FullBackoff = crate::fullbackoff::FullBackoff {
        crate::fullbackoff::FULLBACKOFF1, crate::fullbackoff::FULLBACKOFF2, crate::fullbackoff::GST_COAP
    }
    LinuxRto = crate::linux::LinuxRto { crate::linux::LINUX_RTO }
    BasicRto = crate::basic::BasicRto { crate::basic::BASIC_RTO }
    PeakHopper = crate::peak_hopper::PeakHopper { crate::peak_hopper::PEAK_HOPPER }
    CoapEifel = crate::eifel::CoapEifel { crate::eifel::COAP_EIFEL }
    Cocoa = crate::cocoa::Cocoa {
        crate::cocoa::COCOA, crate::cocoa::COCOA0, crate::cocoa::COCOA_PLUS, crate::cocoa::COCOA_STRONG,
        crate::cocoa::FULLBACKOFF1_COCOA, crate::cocoa::FULLBACKOFF2_COCOA, crate::cocoa::GSRTC, crate::cocoa::COCOA_I
    }
    CocoaPlusPlus = crate::cocoa_plus_plus::CocoaPlusPlus { crate::cocoa_plus_plus::COCOA_PLUS_PLUS }
    Fasor = crate::fasor::Fasor { crate::fasor::FASOR, crate::fasor::FASOR_TOKEN, crate::fasor::FASOR_OPTION }
    RttCoap = crate::rtt_coap::RttCoap { crate::rtt_coap::RTT_COAP }
}

// The state of a destination and of an exchange are kept in tables, one for each.
const _: () = assert!(size_of::<State>() <= 64);
const _: () = assert!(size_of::<Exchange>() <= 24);
