//! Mechanisms of other crates ("own" mechanisms). One variant of [`Mechanism`] serves all of them.
//!
//! [`Mechanism`] has a fixed size that cannot depend on types of other crates. The parameters, state and exchange of such
//! a mechanism are therefore kept as bytes. A table of functions unpacks them, calls the mechanism, and packs them again.

use core::fmt;

use crate::{
    Controller, Cue, Duration, Entry, Gauges, Limits, Mechanism, Notes, Origin, Outcome, Packed, Parameter,
    Parameters, Preset, SetError,
};

/// The number of bytes that are reserved for the parameters of an own mechanism.
const PARAMETERS_BYTES: usize = 80;

/// The number of bytes that are reserved for the state of an own mechanism.
const STATE_BYTES: usize = 56;

/// The number of bytes that are reserved for the exchange of an own mechanism. More would make
/// [`Exchange`](crate::Exchange) larger.
const EXCHANGE_BYTES: usize = 20;

/// A mechanism of another crate: a [`Controller`] declared with [`parameters!`](crate::parameters!), with a [`Packed`]
/// state and exchange, a name and notes.
///
/// [`Entry::own`] makes an entry for it, which [`Mechanisms`](crate::Mechanisms) can find by name. A state of more than 56
/// bytes, an exchange of more than 20 or parameters of more than 80 do not compile.
pub trait OwnMechanism: Controller<State: Packed, Exchange: Packed> + Parameters {
    /// The name in `NAME:parameter=value,…`: lower-case letters, digits and hyphens.
    const NAME: &'static str;
    /// A description in one line.
    const SUMMARY: &'static str;
    /// The paper, draft or RFC that describes the mechanism.
    const SOURCE: &'static str;
    /// Advice: when to use it, when not, and its hazards.
    const NOTES: Notes;
}

impl Entry {
    /// Returns the registry entry of the mechanism of type `M`, which another crate defines.
    pub const fn own<M: OwnMechanism>() -> Self {
        let mechanism = Mechanism::own::<M>();
        Self {
            name: M::NAME,
            summary: M::SUMMARY,
            source: M::SOURCE,
            origin: Origin::Own,
            notes: M::NOTES,
            mechanism,
        }
    }
}

impl Mechanism {
    /// Returns the mechanism of type `M`, which another crate defines, with its default parameters.
    pub const fn own<M: OwnMechanism>() -> Self {
        Self::Own(Own { kind: const { &FunctionTable::of::<M>() }, parameters: None })
    }
}

/// A mechanism of another crate, with its parameters.
#[derive(Clone, Copy)]
pub struct Own {
    kind: &'static FunctionTable,
    /// The packed parameters. `None` means the default parameters: a constant cannot hold packed ones, because packing
    /// is not a `const fn`.
    parameters: Option<[u8; PARAMETERS_BYTES]>,
}

/// The state of an [`Own`] mechanism for one destination, packed.
#[derive(Clone, Copy, Debug)]
pub struct OwnState([u8; STATE_BYTES]);

/// The exchange of an [`Own`] mechanism, packed.
#[derive(Clone, Copy, Debug)]
pub struct OwnExchange([u8; EXCHANGE_BYTES]);

/// The constants and functions of one type of own mechanism. The functions unpack values of that type, call it, and
/// pack the results.
struct FunctionTable {
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

impl FunctionTable {
    const fn of<M: OwnMechanism>() -> Self {
        // Checked when the crate of the mechanism is compiled, so that nothing is cut off at run time.
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
            // Compared unpacked, because the mechanism itself says when two of it are equal.
            equal: |one, other| one.is::<M>() && other.is::<M>() && one.unpack::<M>() == other.unpack::<M>(),
            debug: |own, f| own.unpack::<M>().fmt(f),
            set: |own, name, value| {
                let mut mechanism = own.unpack::<M>();
                // After an error the packed parameters are as before.
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
    /// Returns whether this is the table of mechanism type `M`.
    fn is<M: OwnMechanism>(&self) -> bool {
        // A name identifies the type, because `Mechanisms::with` refuses two mechanisms of one name.
        self.kind.name == M::NAME
    }

    /// Returns the mechanism, unpacked from its bytes.
    fn unpack<M: OwnMechanism>(&self) -> M {
        self.parameters.map_or(M::DEFAULT, |bytes| M::unpack(&bytes).0)
    }

    /// Returns the name of the mechanism.
    pub const fn name(&self) -> &'static str {
        self.kind.name
    }

    /// Returns the registry entry of the mechanism, with its default parameters.
    pub(crate) fn entry(&self) -> Entry {
        (self.kind.entry)()
    }

    /// Returns the descriptions of the mechanism's parameters.
    pub const fn parameters(&self) -> &'static [Parameter] {
        self.kind.parameters
    }

    /// Returns the descriptions of the mechanism's presets.
    pub const fn presets(&self) -> &'static [Preset] {
        self.kind.presets
    }

    /// Returns the length in bytes of the mechanism's state for one destination, packed.
    pub const fn state_bytes(&self) -> usize {
        self.kind.state_bytes
    }

    /// Returns the length in bytes of the mechanism's state for one exchange, packed.
    pub const fn exchange_bytes(&self) -> usize {
        self.kind.exchange_bytes
    }

    /// Sets a parameter by name. The name `preset` sets all parameters as a preset does.
    ///
    /// # Errors
    /// [`SetError`] says whether the name or the value is wrong.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), SetError> {
        (self.kind.set)(self, name, value)
    }

    /// Writes the value of the parameter `name` to `f`. Writes nothing if no parameter has this name.
    pub(crate) fn show(&self, name: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.kind.show)(self, name, f)
    }
}

/// Packs `value` into an array of `N` bytes. [`FunctionTable::of`] has checked that the value fits.
fn packed<const N: usize>(value: impl Packed) -> [u8; N] {
    let mut bytes = [0; N];
    value.pack(&mut bytes);
    bytes
}

impl OwnState {
    /// Unpacks the value, calls `change` with it, and packs the changed value again. Returns the result of `change`.
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

/// Calls the mechanism through its table. A state or an exchange of another own mechanism does no harm: any bytes
/// unpack to a value of this mechanism.
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
