//! The declaration of counters. One line declares a field, its sum, a line of Prometheus, a row of `docs/metrics.md` and a line
//! of the log.

/// A section of `docs/metrics.md`, and of the metrics for Prometheus.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum MetricsSection {
    CongestionControl,
    Requests,
    Datagrams,
    Observe,
    Transports,
}

/// A counter, with its names and texts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Counter {
    pub(crate) section: MetricsSection,
    /// The name of the metric. Counters with the same name are one metric. Counters with the same name and label are added.
    pub(crate) metric: &'static str,
    /// The name and value of its label, if it has one.
    pub(crate) label: Option<(&'static str, &'static str)>,
    /// The documentation of the field.
    pub(crate) text: &'static str,
    /// The text for the log, if the counter counts how often a limit was reached.
    pub(crate) warning: Option<&'static str>,
}

/// A struct whose fields are counters.
pub(crate) trait CounterSet {
    /// The counters, in the sequence of the fields.
    const COUNTERS: &'static [Counter];

    /// Returns the values of the fields, in sequence.
    fn values(&self) -> Vec<u64>;

    /// Adds the counts of another client or server.
    fn add(&mut self, other: &Self);

    /// Returns each counter with its value.
    fn counters(&self) -> impl Iterator<Item = (&'static Counter, u64)> {
        Self::COUNTERS.iter().zip(self.values())
    }
}

/// Declares counters. A field is
///
/// ```text
/// /// The documentation of the field and of the metric.
/// Section: name => "coap_metric_total" { label = "value" }, warn "words for the log";
/// ```
///
/// where the label and the text for the log are optional. `pub struct` also declares the struct. `extern` adds a struct of
/// another crate, and must name each of its fields.
macro_rules! counters {
    ($(#[doc = $about:literal])+ pub struct $name:ident {
        $($(#[doc = $text:literal])+ $section:ident: $field:ident => $metric:literal
            $({ $label:ident = $value:literal })? $(, warn $warning:literal)?;)+
    }) => {
        $(#[doc = $about])+
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $name {
            $($(#[doc = $text])+ pub $field: u64,)+
        }

        $crate::counter::counters! { extern $name {
            $($(#[doc = $text])+ $section: $field => $metric $({ $label = $value })? $(, warn $warning)?;)+
        } }
    };
    (extern $name:ident {
        $($(#[doc = $text:literal])+ $section:ident: $field:ident => $metric:literal
            $({ $label:ident = $value:literal })? $(, warn $warning:literal)?;)+
    }) => {
        impl $crate::counter::CounterSet for $name {
            const COUNTERS: &'static [$crate::counter::Counter] = &[$($crate::counter::Counter {
                section: $crate::counter::MetricsSection::$section,
                metric: $metric,
                label: $crate::counter::counters!(@optional $((stringify!($label), $value))?),
                text: concat!($($text),+),
                warning: $crate::counter::counters!(@optional $($warning)?),
            },)+];

            fn values(&self) -> Vec<u64> {
                // Without `..`, a struct with a field that is not declared here does not compile.
                let Self { $($field),+ } = self;
                vec![$(*$field),+]
            }

            fn add(&mut self, other: &Self) {
                let Self { $($field),+ } = other;
                $(self.$field += $field;)+
            }
        }
    };
    (@optional) => { None };
    (@optional $what:expr) => { Some($what) };
}

pub(crate) use counters;
