//! The keys of a flow.

use coapace_sim::{Layout, Position, Span};

use crate::patterns::{PATTERNS, Pattern};
use crate::schema::document::Item;
use crate::schema::kind::Or;
use crate::schema::scalar::{Choice, NAME, PERCENTAGE, RATE, SWITCH, TIME, Whole, one_of};
use crate::schema::table::{Misfit, keys};
use crate::schema::words::words;

keys! {
    /// Messages that clients send to one of the sinks, or servers. A message is a request, or a notification if the sink
    /// observes; its token has 4 bytes. It is acknowledged with a response, or by an empty message if it is a notification.
    pub struct Flow completed by one_size, checked by flow_fits {
        /// The name in dotted paths and in results; unique among the flows.
        name: String, NAME;
        /// The pattern of the moments at which a client offers a message.
        pattern: &'static Pattern, Choice(patterns);
        /// The clients that may take part: all, or those on one side of the border router of a mesh. Those with a smaller x are
        /// `left`, and those with a larger x `right`, by their places at the start.
        from: Side, one_of() => Side::All;
        /// The number of the sink that gets the messages, 0 being the primary one; or the sink of a mesh that is nearest to the
        /// client at the start.
        to: Option<u32>, Or("nearest", Whole(0, 9_999)) => Some(0);
        /// Whether a message is confirmable. A request that is not confirmable asks for no response (RFC 7967), and waits
        /// until 3 s or the RTO after the one before or until PROBING_RATE lets it go (`clients.probing_rate`, RFC 7252 §4.7,
        /// RFC 8085 §3.1.3).
        confirmable: bool, SWITCH => true;
        /// Whether the sink observes the clients and the messages are notifications (RFC 7641). The sink registers with one
        /// client after the other before `start`, and again 60 s and 5 to 15 s after it last heard of one.
        observe: bool, SWITCH => false;
        /// Whether the sink registers again with a client that it no longer hears of (RFC 7641 §3.3.1). If not, like Contiki
        /// (apps/er-coap/er-coap-observe-client.c), a client that gave a notification up sends none any more.
        renew: bool, SWITCH => true;
        /// Whether notifications that are not confirmable wait for a place of NSTART and for their rate (RFC 7252 §4.7, RFC
        /// 7641 §4.5.1). If not, they depart at once, like those of Contiki (apps/er-coap/er-coap-observe.c), and congestion
        /// control knows nothing of them.
        controlled: bool, SWITCH => true;
        /// The method of a request.
        method: Method, one_of() => Method::Post;
        /// Bytes of the payload of a message, without the payload marker.
        payload_bytes: Option<u32>, Or("none", Whole(0, 65_000)) => Some(60);
        /// In place of `payload_bytes`: bytes of a whole CoAP message, header, token and options included.
        message_bytes: Option<u32>, Or("none", Whole(8, 65_000)) => None;
        /// Bytes of the payload of a response.
        response_bytes: u32, Whole(0, 65_000) => 0;
        /// The load that all clients of the flow offer together, in bits of whole CoAP messages. It sets the interval.
        rate: Option<u64>, Or("none", RATE) => None;
        /// In place of `rate`: the time from a client's message to its next.
        interval: Option<Span>, Or("none", TIME) => None;
        /// The span over which messages are spread that all clients would otherwise offer at once.
        spread: Span, TIME => Span::ZERO;
        /// The mean length of a period with messages, for `on-off`.
        on: Span, TIME => Span::from_secs(10);
        /// The mean length of a pause, for `on-off`.
        off: Span, TIME => Span::from_secs(10);
        /// The time in the run at which the flow starts.
        start: Span, TIME => Span::ZERO;
        /// The time in the run from which on no message is offered.
        end: Option<Span>, Or("none", TIME) => None;
        /// The share of the clients in `from` that take part, spread evenly over them.
        share: f64, PERCENTAGE => 1.0;
        /// Exchanges of the flow that a client may have open. One more message finds the client busy.
        outstanding: u16, Whole(1, 1_000) => 1;
        /// The fate of a message that finds its client busy.
        when_busy: WhenBusy, one_of() => WhenBusy::Drop;
        /// Messages that may wait with `queue`. One more is dropped.
        queue_messages: u16, Whole(1, 10_000) => 8;
        /// For the patterns `event` and `bursts`: delays count only if their messages, of whichever flow, were offered in so
        /// long from a burst on. If several flows say it, a message of any of these spans counts.
        delays_within: Option<Span>, Or("none", TIME) => None;
        /// The moment of a message that `delays_within` is about.
        delays_by: Moment, one_of() => Moment::Offer;
    }
}

words! {
    /// The clients of a mesh that may take part in a flow.
    pub enum Side {
        /// All clients.
        All = "all",
        /// Those with a smaller x than the border router.
        Left = "left",
        /// Those with a larger x.
        Right = "right",
    }
}

words! {
    /// A moment of a message.
    pub enum Moment {
        /// Its offer by the application.
        Offer = "offer",
        /// Its first arrival at its sink.
        Arrival = "arrival",
    }
}

words! {
    /// The method of a request.
    pub enum Method {
        /// Answered with 2.04.
        Post = "post",
        /// Answered with 2.05.
        Get = "get",
    }
}

words! {
    /// The fate of a message that finds its client busy.
    pub enum WhenBusy {
        /// The application drops it.
        Drop = "drop",
        /// It waits until the client is no longer busy.
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
    /// Returns the bytes of the payload and of the whole message, if the Uri-Path options take `path_bytes`.
    pub fn sizes(&self, path_bytes: u32) -> (u32, u32) {
        let options = match (self.observe, self.confirmable) {
            (true, _) => OBSERVE_BYTES,
            (false, true) => path_bytes,
            (false, false) => path_bytes + NO_RESPONSE_BYTES,
        };
        let empty = HEAD_BYTES + options;
        let payload = self.payload_bytes.unwrap_or(0);
        match self.message_bytes {
            // A message without a payload has no payload marker.
            Some(bytes) => (bytes.saturating_sub(empty + 1), bytes),
            None => (payload, empty + payload + u32::from(payload > 0)),
        }
    }

    /// Returns the dotted path of a key.
    pub(crate) fn path(&self, key: &str) -> String {
        format!("workload.flows.{}.{key}", self.name)
    }

    /// Returns the least value of `message_bytes`: the bytes of a message with a payload of one byte.
    pub(crate) fn least_message_bytes(&self, path_bytes: u32) -> u32 {
        let one = Self { message_bytes: None, payload_bytes: Some(1), ..self.clone() };
        one.sizes(path_bytes).1
    }

    /// Returns the number of the sink of every client; `None` for a client that does not take part. Without a `layout` there are
    /// `clients` clients and no sides, and the nearest sink is 0.
    pub fn sinks(&self, clients: u32, layout: Option<&Layout>) -> Vec<Option<u32>> {
        let (places, root) = match layout {
            Some(layout) => {
                (layout.clients().map(|node| Some(layout.place(node))).collect(), layout.place(layout.root))
            }
            None => (vec![None; clients as usize], Position::default()),
        };
        let before = |candidates: u32| (f64::from(candidates) * self.share + 1e-9).floor();
        let mut candidates = 0;
        let sink = |place: &Option<Position>| {
            let east = place.map_or(0.0, |place| place.x - root.x);
            let is_candidate = match self.from {
                Side::All => true,
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

/// Returns the number of the sink nearest to `place`, the first of several.
fn nearest(place: Option<Position>, layout: Option<&Layout>) -> u32 {
    let (Some(place), Some(layout)) = (place, layout) else { return 0 };
    let distances = layout.sinks.iter().map(|&sink| layout.place(sink).distance(place));
    let nearest = (0..).zip(distances).min_by(|a, b| a.1.total_cmp(&b.1));
    nearest.map_or(0, |(number, _)| number)
}

/// Returns every pattern by its name.
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

    let problem = format!("or `interval` is missing: the pattern \"{}\" needs one", pattern.name);
    let is_said = rate.is_some() || interval.is_some();
    Misfit::unless(is_said || !pattern.has_interval(), "rate", problem)?;
    let problem = "does not go with `rate`: make one of them \"none\"";
    Misfit::unless(rate.is_none() || interval.is_none(), "interval", problem)?;
    let means_nothing = format!("means nothing in the pattern \"{}\"", pattern.name);
    Misfit::unless(pattern.has_interval() || rate.is_none(), "rate", &means_nothing)?;
    Misfit::unless(pattern.has_interval() || interval.is_none(), "interval", &means_nothing)?;
    let is_long = interval.is_none_or(|interval| interval >= Span::from_millis(1));
    Misfit::unless(is_long, "interval", "must be 1 ms or more")?;
    Misfit::unless(end.is_none_or(|end| end > *start), "end", "must be after `start`")?;

    let problem = "must be 1 with `observe`: an observer has one notification at a time";
    Misfit::unless(!flow.observe || flow.outstanding == 1, "outstanding", problem)?;
    let problem = "must be true without `observe`: there is no registration";
    Misfit::unless(flow.observe || flow.renew, "renew", problem)?;
    let problem = "must be true but for notifications (`observe`) that are not `confirmable`";
    Misfit::unless(flow.controlled || (flow.observe && !flow.confirmable), "controlled", problem)?;

    let counts_all = flow.delays_within.is_none();
    Misfit::unless(counts_all || pattern.is_common, "delays_within", means_nothing)?;
    let problem = "means nothing without `delays_within`";
    Misfit::unless(!counts_all || flow.delays_by == Moment::Offer, "delays_by", problem)?;
    let problem = "must be true in the pattern \"backlogged\": nothing ends the others";
    Misfit::unless(flow.confirmable || !pattern.is_backlogged(), "confirmable", problem)
}
