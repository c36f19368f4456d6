//! The keys of a flow.

use coapace_sim::{Layout, Position, Span};

use crate::patterns::{PATTERNS, Pattern};
use crate::schema::document::Item;
use crate::schema::kind::Or;
use crate::schema::scalar::{Choice, NAME, PERCENTAGE, RATE, SWITCH, TIME, Whole, one_of};
use crate::schema::table::{Misfit, keys};
use crate::schema::words::words;

keys! {
    /// A series of messages from each of its clients to a server, which is a sink in a mesh. A message is a request, or
    /// a notification if `observe` is true. Its token has 4 bytes. The server acknowledges a confirmable request with a
    /// response, and a confirmable notification with an empty message.
    pub struct Flow completed by one_size, checked by flow_fits {
        /// The name in dotted paths and in results; unique among the flows.
        name: String, NAME;
        /// The pattern of the times at which a client offers messages.
        pattern: &'static Pattern, Choice(patterns);
        /// The clients that may take part: all of them, or, in a mesh, only those on one side of the border router.
        /// `left` are clients with a smaller x coordinate at the start, `right` are clients with a larger one.
        from: Side, one_of() => Side::All;
        /// The number of the server that gets the messages, counted from 0; in a mesh the primary sink is 0. With
        /// "nearest", each client of a mesh sends to the sink that is nearest to it at the start.
        to: Option<u32>, Or("nearest", Whole(0, 9_999)) => Some(0);
        /// Whether messages are confirmable. Non-confirmable requests ask for no response (RFC 7967). They are at least
        /// one RTO apart, and at least 3 s until a round trip is measured, unless PROBING_RATE allows more
        /// (`clients.probing_rate`, RFC 7252 §4.7, RFC 8085 §3.1.3).
        confirmable: bool, SWITCH => true;
        /// Whether the messages are notifications, and the sink observes the clients (RFC 7641). The sink registers
        /// with one client after the other before `start`. If it hears nothing from a client for 60 s, it registers
        /// there again after a random 5 to 15 s more.
        observe: bool, SWITCH => false;
        /// Whether the sink registers again with a client from which it hears no more (RFC 7641 §3.3.1). If not, as
        /// with Contiki (apps/er-coap/er-coap-observe-client.c), a client that has given up one notification sends no
        /// further ones.
        renew: bool, SWITCH => true;
        /// Whether congestion control applies to non-confirmable notifications: they then wait until NSTART and their
        /// rate limit allow them (RFC 7252 §4.7, RFC 7641 §4.5.1). If not, they are sent at once, as in Contiki
        /// (apps/er-coap/er-coap-observe.c), and congestion control does not count them.
        controlled: bool, SWITCH => true;
        /// The method of the requests.
        method: Method, one_of() => Method::Post;
        /// Bytes of the payload of a message, without the payload marker.
        payload_bytes: Option<u32>, Or("none", Whole(0, 65_000)) => Some(60);
        /// In place of `payload_bytes`: bytes of a whole CoAP message, header, token and options included.
        message_bytes: Option<u32>, Or("none", Whole(8, 65_000)) => None;
        /// Bytes of the payload of a response.
        response_bytes: u32, Whole(0, 65_000) => 0;
        /// The load that all clients of the flow offer together, counted in bits of whole CoAP messages. The interval
        /// follows from it.
        rate: Option<u64>, Or("none", RATE) => None;
        /// In place of `rate`: the time from one message of a client to its next.
        interval: Option<Span>, Or("none", TIME) => None;
        /// For the patterns `event` and `bursts`: the time within which all clients offer their messages of one event
        /// or burst. 0 s lets them offer these at once.
        spread: Span, TIME => Span::ZERO;
        /// The mean length of a period with messages, for `on-off`.
        on: Span, TIME => Span::from_secs(10);
        /// The mean length of a pause, for `on-off`.
        off: Span, TIME => Span::from_secs(10);
        /// The time in the run at which the flow starts.
        start: Span, TIME => Span::ZERO;
        /// The time in the run at which the flow ends, so that no more messages are offered. With "none" it lasts until
        /// the run ends.
        end: Option<Span>, Or("none", TIME) => None;
        /// The share of the clients selected by `from` that take part. They are picked evenly, not at random.
        share: f64, PERCENTAGE => 1.0;
        /// The maximum number of exchanges of the flow that a client may have open. A client with this many is busy.
        outstanding: u16, Whole(1, 1_000) => 1;
        /// What happens to a message that is offered while its client is busy: it is dropped, or it waits in a queue.
        when_busy: WhenBusy, one_of() => WhenBusy::Drop;
        /// The maximum number of messages that may wait in a client's queue, if `when_busy` is "queue". Further ones
        /// are dropped.
        queue_messages: u16, Whole(1, 10_000) => 8;
        /// For the patterns `event` and `bursts`: a delay counts in the results only if its message was offered within
        /// this time after an event or burst of this flow. That applies to the messages of all flows. If several flows
        /// set this key, a message counts if it does for one of them.
        delays_within: Option<Span>, Or("none", TIME) => None;
        /// The event of a message that must fall into the time set by `delays_within`: the client offers it, or it
        /// arrives at the sink for the first time.
        delays_by: Moment, one_of() => Moment::Offer;
    }
}

words! {
    /// The clients of a mesh that may take part in a flow.
    pub enum Side {
        /// All clients.
        All = "all",
        /// Clients with a smaller x than the border router.
        Left = "left",
        /// Clients with a larger x than the border router.
        Right = "right",
    }
}

words! {
    /// The event of a message whose time decides whether its delay counts (`delays_within`).
    pub enum Moment {
        /// The message is offered by the application.
        Offer = "offer",
        /// The message arrives at its sink for the first time.
        Arrival = "arrival",
    }
}

words! {
    /// The method of a request.
    pub enum Method {
        /// POST, answered with 2.04 (Changed).
        Post = "post",
        /// GET, answered with 2.05 (Content).
        Get = "get",
    }
}

words! {
    /// What happens to a message that is offered while its client is busy: it has `outstanding` exchanges of the flow
    /// open.
    pub enum WhenBusy {
        /// The application drops the message.
        Drop = "drop",
        /// The message waits until one of these exchanges ends.
        Queue = "queue",
    }
}

/// Bytes of the header and the token of every message of a flow.
const HEAD_BYTES: u32 = 4 + 4;

/// Bytes of the Observe option of a notification, with a sequence number of 3 bytes.
const OBSERVE_BYTES: u32 = 1 + 3;

/// Bytes of the No-Response option, whose delta takes an extended byte.
const NO_RESPONSE_BYTES: u32 = 2 + 1;

impl Flow {
    /// Returns the lengths of the payload and of the whole message in bytes, if the Uri-Path options take `path_bytes`.
    pub fn sizes(&self, path_bytes: u32) -> (u32, u32) {
        let options = match (self.observe, self.confirmable) {
            // A notification is a response, which has no Uri-Path (RFC 7252 §5.10.1).
            (true, _) => OBSERVE_BYTES,
            (false, true) => path_bytes,
            (false, false) => path_bytes + NO_RESPONSE_BYTES,
        };
        let empty = HEAD_BYTES + options;
        let payload = self.payload_bytes.unwrap_or(0);
        match self.message_bytes {
            // In a checked flow this does not saturate: `flows_fit` demands a payload of one byte.
            // A message without a payload has no payload marker.
            Some(bytes) => (bytes.saturating_sub(empty + 1), bytes),
            None => (payload, empty + payload + u32::from(payload > 0)),
        }
    }

    /// Returns the dotted path of the key `key` of this flow.
    pub(crate) fn path(&self, key: &str) -> String {
        format!("workload.flows.{}.{key}", self.name)
    }

    /// Returns the least value of `message_bytes`: the bytes of a message with a payload of one byte.
    pub(crate) fn least_message_bytes(&self, path_bytes: u32) -> u32 {
        let one = Self { message_bytes: None, payload_bytes: Some(1), ..self.clone() };
        one.sizes(path_bytes).1
    }

    /// Returns, for every client, the number of the sink that gets its messages; `None` for a client that does not take
    /// part. Only a mesh has a `layout`. Without a `layout` there are `clients` clients, no client is left or right of
    /// a border router, and the nearest sink is 0.
    pub fn sinks(&self, clients: u32, layout: Option<&Layout>) -> Vec<Option<u32>> {
        let (places, root) = match layout {
            Some(layout) => {
                (layout.clients().map(|node| Some(layout.place(node))).collect(), layout.place(layout.root))
            }
            None => (vec![None; clients as usize], Position::default()),
        };
        // A candidate takes part where the rounded share of all so far grows, so they are spread evenly. 1e-9 absorbs rounding.
        let before = |candidates: u32| (f64::from(candidates) * self.share + 1e-9).floor();
        let mut candidates = 0;
        let sink = |place: &Option<Position>| {
            let east = place.map_or(0.0, |place| place.x - root.x);
            let is_candidate = match self.from {
                Side::All => true,
                // A node with the x of the border router is on neither side.
                Side::Left => east < 0.0,
                Side::Right => east > 0.0,
            };
            candidates += u32::from(is_candidate);
            let takes_part = is_candidate && before(candidates) > before(candidates - 1);
            takes_part.then(|| self.to.unwrap_or_else(|| nearest(*place, layout)))
        };
        places.iter().map(sink).collect()
    }
}

/// Returns the number of the sink nearest to `place`; the first, if several are equally near.
fn nearest(place: Option<Position>, layout: Option<&Layout>) -> u32 {
    let (Some(place), Some(layout)) = (place, layout) else { return 0 };
    let distances = layout.sinks.iter().map(|&sink| layout.place(sink).distance(place));
    // `min_by` keeps the first of equal distances.
    let nearest = (0..).zip(distances).min_by(|a, b| a.1.total_cmp(&b.1));
    nearest.map_or(0, |(number, _)| number)
}

/// Returns the name of every pattern, with the pattern.
fn patterns() -> Vec<(&'static str, &'static Pattern)> {
    PATTERNS.iter().map(|pattern| (pattern.name, pattern)).collect()
}

fn one_size(flow: &Item) -> Item {
    flow.with_either("message_bytes", "payload_bytes")
}

fn flow_fits(flow: &Flow) -> Result<(), Misfit> {
    let Flow { payload_bytes, message_bytes, rate, interval, start, end, pattern, .. } = flow;
    let problem = "or `payload_bytes` must be a number, and the other \"none\"";
    Misfit::unless(payload_bytes.is_some() != message_bytes.is_some(), "message_bytes", problem)?;

    // An interval or a rate, and not both: each decides the time between messages.
    let problem = format!("or `interval` is missing: the pattern \"{}\" needs one", pattern.name);
    let is_said = rate.is_some() || interval.is_some();
    Misfit::unless(is_said || !pattern.has_interval(), "rate", problem)?;
    let problem = "cannot be combined with `rate`: make one of them \"none\"";
    Misfit::unless(rate.is_none() || interval.is_none(), "interval", problem)?;
    let means_nothing = format!("has no effect in the pattern \"{}\"", pattern.name);
    Misfit::unless(pattern.has_interval() || rate.is_none(), "rate", &means_nothing)?;
    Misfit::unless(pattern.has_interval() || interval.is_none(), "interval", &means_nothing)?;
    // A lower bound on the interval bounds the number of messages of a run. A rate is bounded when clients are counted.
    let is_long = interval.is_none_or(|interval| interval >= Span::from_millis(1));
    Misfit::unless(is_long, "interval", "must be 1 ms or more")?;
    Misfit::unless(end.is_none_or(|end| end > *start), "end", "must be after `start`")?;

    let problem = "must be 1 with `observe`: an observer has one notification at a time";
    Misfit::unless(!flow.observe || flow.outstanding == 1, "outstanding", problem)?;
    let problem = "must be true without `observe`: only observers register";
    Misfit::unless(flow.observe || flow.renew, "renew", problem)?;
    // Only a non-confirmable notification has a sender that may leave congestion control out, as Contiki's does.
    let problem = "must be true but for notifications (`observe`) that are not `confirmable`";
    Misfit::unless(flow.controlled || (flow.observe && !flow.confirmable), "controlled", problem)?;

    // Delays can be restricted to spans after a burst only if all clients have their bursts at the same time.
    let counts_all = flow.delays_within.is_none();
    Misfit::unless(counts_all || pattern.is_common, "delays_within", means_nothing)?;
    let problem = "means nothing without `delays_within`";
    Misfit::unless(!counts_all || flow.delays_by == Moment::Offer, "delays_by", problem)?;
    let problem =
        "must be true in the pattern \"backlogged\": the next message waits for the end of an exchange";
    Misfit::unless(flow.confirmable || !pattern.is_backlogged(), "confirmable", problem)
}
