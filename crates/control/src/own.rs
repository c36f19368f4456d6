//! Mechanisms of other crates: one variant of [`Mechanism`] for all of them.
//!
//! The enum has to have a size before such a mechanism is written. So what it remembers is kept as bytes, and a table of
//! functions unpacks them, asks the mechanism, and packs them again.

use core::fmt;

use crate::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Mechanism, Notes, Outcome, Packed, Parameter,
    Parameters, Preset, SetError,
};

/// Bytes for the parameters of an own mechanism.
const PARAMETERS_BYTES: usize = 80;

/// Bytes for its state: as many as fit into [`State`](crate::State) without making it larger.
const STATE_BYTES: usize = 56;

/// Bytes for its exchange, likewise.
const EXCHANGE_BYTES: usize = 20;

/// A mechanism that another crate brings along: a [`Controller`] with [`parameters!`](crate::parameters!), whose state and
/// exchange are [`Packed`], and what people should know of it.
///
/// [`Entry::own`] makes it one of those that can be named. State, exchange and parameters may take 56, 20 and 80 bytes;
/// more is an error of the compiler.
pub trait OwnMechanism: Controller<State: Packed, Exchange: Packed> + Parameters {
    /// Its name: lower-case letters, digits and hyphens.
    const NAME: &'static str;
    /// What it does, in one line.
    const SUMMARY: &'static str;
    /// The paper, draft or RFC it comes from.
    const SOURCE: &'static str;
    /// When to use it, when not, and what is unsafe about it.
    const NOTES: Notes;
}

impl Entry {
    /// Returns the entry of a mechanism of another crate.
    pub const fn own<M: OwnMechanism>() -> Self {
        let mechanism = Mechanism::own::<M>();
        Self { name: M::NAME, summary: M::SUMMARY, source: M::SOURCE, notes: M::NOTES, mechanism }
    }
}

impl Mechanism {
    /// Returns a mechanism of another crate, with its default parameters.
    pub const fn own<M: OwnMechanism>() -> Self {
        Self::Own(Own { kind: const { &Kind::of::<M>() }, parameters: None })
    }
}

/// A mechanism of another crate, with its parameters.
#[derive(Clone, Copy)]
pub struct Own {
    kind: &'static Kind,
    /// Its parameters packed; `None` stands for the defaults, so that a constant needs no packing.
    parameters: Option<[u8; PARAMETERS_BYTES]>,
}

/// The state of an [`Own`] mechanism for one destination, packed.
#[derive(Clone, Copy, Debug)]
pub struct OwnState([u8; STATE_BYTES]);

/// The exchange of an [`Own`] mechanism, packed.
#[derive(Clone, Copy, Debug)]
pub struct OwnExchange([u8; EXCHANGE_BYTES]);

/// Describes a type of mechanism, and calls it.
struct Kind {
    name: &'static str,
    entry: fn() -> Entry,
    parameters: &'static [Parameter],
    presets: &'static [Preset],
    state_bytes: usize,
    exchange_bytes: usize,
    equal: fn(&Own, &Own) -> bool,
    debug: fn(&Own, &mut fmt::Formatter<'_>) -> fmt::Result,
    set: fn(&mut Own, &str, &str) -> Result<(), SetError>,
    show: fn(&Own, &str, &mut fmt::Formatter<'_>) -> fmt::Result,
    state: fn(&Own) -> OwnState,
    on_start: fn(&Own, &mut OwnState, Cue) -> (OwnExchange, Duration),
    on_retransmit: fn(&Own, &mut OwnState, &mut OwnExchange, Cue) -> Duration,
    on_end: fn(&Own, &mut OwnState, OwnExchange, Outcome, Cue),
    max_span: fn(&Own, u8) -> Duration,
    limits: fn(&Own, &OwnState) -> Limits,
    gauges: fn(&Own, &OwnState) -> Gauges,
}

impl Kind {
    const fn of<M: OwnMechanism>() -> Self {
        const {
            assert!(M::BYTES <= PARAMETERS_BYTES, "the parameters of an own mechanism may take 80 bytes");
            assert!(M::State::BYTES <= STATE_BYTES, "the state of an own mechanism may take 56 bytes");
            assert!(
                M::Exchange::BYTES <= EXCHANGE_BYTES,
                "the exchange of an own mechanism may take 20 bytes"
            );
        }
        Self {
            name: M::NAME,
            entry: Entry::own::<M>,
            parameters: M::PARAMETERS,
            presets: M::PRESETS,
            state_bytes: M::State::BYTES,
            exchange_bytes: M::Exchange::BYTES,
            equal: |one, other| one.is::<M>() && other.is::<M>() && one.unpack::<M>() == other.unpack::<M>(),
            debug: |own, f| own.unpack::<M>().fmt(f),
            set: |own, name, value| {
                let mut mechanism = own.unpack::<M>();
                mechanism.set(name, value)?;
                own.parameters = Some(packed(mechanism));
                Ok(())
            },
            show: |own, name, f| own.unpack::<M>().show(name, f),
            state: |own| OwnState(packed(own.unpack::<M>().state())),
            on_start: |own, state, cue| {
                state.change(|state| {
                    let (exchange, timeout) = own.unpack::<M>().on_start(state, cue);
                    (OwnExchange(packed(exchange)), timeout)
                })
            },
            on_retransmit: |own, state, exchange, cue| {
                state.change(|state| {
                    let (mut unpacked, _) = M::Exchange::unpack(&exchange.0);
                    let timeout = own.unpack::<M>().on_retransmit(state, &mut unpacked, cue);
                    exchange.0 = packed(unpacked);
                    timeout
                })
            },
            on_end: |own, state, exchange, outcome, cue| {
                let (exchange, _) = M::Exchange::unpack(&exchange.0);
                state.change(|state| own.unpack::<M>().on_end(state, exchange, outcome, cue));
            },
            max_span: |own, retransmits| own.unpack::<M>().max_span(retransmits),
            limits: |own, state| own.unpack::<M>().limits(&M::State::unpack(&state.0).0),
            gauges: |own, state| own.unpack::<M>().gauges(&M::State::unpack(&state.0).0),
        }
    }
}

impl Own {
    /// Returns whether it is of this type.
    fn is<M: OwnMechanism>(&self) -> bool {
        self.kind.name == M::NAME
    }

    /// Returns the mechanism as its author wrote it.
    fn unpack<M: OwnMechanism>(&self) -> M {
        self.parameters.map_or(M::DEFAULT, |bytes| M::unpack(&bytes).0)
    }

    /// Returns the name of its [`Entry`].
    pub const fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Returns its entry, which has the default parameters.
    pub(crate) fn entry(&self) -> Entry {
        (self.kind.entry)()
    }

    /// Returns its parameters.
    pub const fn parameters(&self) -> &'static [Parameter] {
        self.kind.parameters
    }

    /// Returns its presets.
    pub const fn presets(&self) -> &'static [Preset] {
        self.kind.presets
    }

    /// Returns how many bytes its state takes, packed.
    pub const fn state_bytes(&self) -> usize {
        self.kind.state_bytes
    }

    /// Returns how many bytes its exchange takes, packed.
    pub const fn exchange_bytes(&self) -> usize {
        self.kind.exchange_bytes
    }

    /// Sets a parameter by name; `preset` sets several.
    ///
    /// # Errors
    /// [`SetError`] says whether the name or the value is wrong.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        (self.kind.set)(self, name, value)
    }

    /// Writes the value of a parameter.
    pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.kind.show)(self, name, f)
    }
}

/// Packs `value` into an array that is large enough; [`Kind::of`] has checked that.
fn packed<const N: usize>(value: impl Packed) -> [u8; N] {
    let mut bytes = [0; N];
    value.pack(&mut bytes);
    bytes
}

impl OwnState {
    /// Unpacks the state, lets `change` have it, and packs it again.
    fn change<S: Packed, T>(&mut self, change: impl FnOnce(&mut S) -> T) -> T {
        let (mut state, _) = S::unpack(&self.0);
        let result = change(&mut state);
        state.pack(&mut self.0);
        result
    }
}

impl PartialEq for Own {
    fn eq(&self, other: &Self) -> bool {
        (self.kind.equal)(self, other)
    }
}

impl Eq for Own {}

impl fmt::Debug for Own {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.kind.debug)(self, f)
    }
}

/// The calls of the mechanism. A state or an exchange of another own mechanism is read as one of this: any bytes are one.
impl Controller for Own {
    type State = OwnState;
    type Exchange = OwnExchange;

    fn state(&self) -> OwnState {
        (self.kind.state)(self)
    }

    fn on_start(&self, state: &mut OwnState, cue: Cue) -> (OwnExchange, Duration) {
        (self.kind.on_start)(self, state, cue)
    }

    fn on_retransmit(&self, state: &mut OwnState, exchange: &mut OwnExchange, cue: Cue) -> Duration {
        (self.kind.on_retransmit)(self, state, exchange, cue)
    }

    fn on_end(&self, state: &mut OwnState, exchange: OwnExchange, outcome: Outcome, cue: Cue) {
        (self.kind.on_end)(self, state, exchange, outcome, cue);
    }

    fn max_span(&self, retransmits: u8) -> Duration {
        (self.kind.max_span)(self, retransmits)
    }

    fn limits(&self, state: &OwnState) -> Limits {
        (self.kind.limits)(self, state)
    }

    fn gauges(&self, state: &OwnState) -> Gauges {
        (self.kind.gauges)(self, state)
    }
}
