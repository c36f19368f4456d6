//! Requests, counted by what they asked and how they were answered.

use coapace_proto::Code;

/// Counts of the requests to a server, by method and code of the response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Requests {
    /// The counts by method and code. Empty until the first request.
    counts: Vec<u64>,
}

/// Methods that are counted by themselves: 0.01 to 0.07 (RFC 7252 §12.1.1, RFC 8132 §5).
const METHODS: usize = 7;

const CODES: usize = 256;

impl Requests {
    /// Counts a request and the code of its response, or nothing where it got none.
    pub(crate) fn count(&mut self, method: Code, response: Option<Code>) {
        if self.counts.is_empty() {
            self.counts.resize((METHODS + 1) * CODES, 0);
        }
        let row = if (1..=METHODS).contains(&usize::from(method.0)) { usize::from(method.0) } else { 0 };
        let column = response.map_or(0, |code| usize::from(code.0));
        self.counts[row * CODES + column] += 1;
    }

    /// Adds the counts of another server.
    pub(crate) fn merge(&mut self, other: &Self) {
        if self.counts.is_empty() {
            self.counts.clone_from(&other.counts);
        } else {
            self.counts.iter_mut().zip(&other.counts).for_each(|(count, more)| *count += more);
        }
    }

    /// Returns each method and code that was counted, with its count. The method is `None` where it is unknown, the code
    /// where no response was sent.
    pub fn iter(&self) -> impl Iterator<Item = (Option<Code>, Option<Code>, u64)> {
        let code = |number: usize| (number != 0).then_some(Code(number as u8));
        let counts = self.counts.iter().enumerate().filter(|&(_, &count)| count > 0);
        counts.map(move |(place, &count)| (code(place / CODES), code(place % CODES), count))
    }

    /// Returns the number of requests with this method and this code of the response.
    pub fn get(&self, method: Code, response: Code) -> u64 {
        self.iter().filter(|&(of, with, _)| (of, with) == (Some(method), Some(response))).map(|it| it.2).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_unknown_or_unanswered_is_counted_apart_and_two_counts_add_up() {
        let mut requests = Requests::default();
        requests.count(Code::IPATCH, Some(Code(0xff)));
        requests.count(Code::IPATCH, None);
        requests.count(Code(8), Some(Code::METHOD_NOT_ALLOWED));
        requests.count(Code(31), Some(Code::METHOD_NOT_ALLOWED));
        let mut both = Requests::default();
        both.merge(&requests);
        both.merge(&requests);
        let counted: Vec<_> = both.iter().collect();
        let (ipatch, last) = (Some(Code::IPATCH), Some(Code(0xff)));
        assert_eq!(
            counted,
            [(None, Some(Code::METHOD_NOT_ALLOWED), 4), (ipatch, None, 2), (ipatch, last, 2)]
        );
        assert_eq!((both.get(Code::IPATCH, Code(0xff)), both.get(Code::GET, Code::CONTENT)), (2, 0));
    }
}
