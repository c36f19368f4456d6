//! Options and payloads of the messages of a run.

use coapace_proto::Tail;
use coapace_scenario::Scenario;

/// Returns the options of a request: its path.
pub fn request(scenario: &Scenario) -> Vec<u8> {
    let path = scenario.clients.uri_path_segments();
    path.fold(Tail::default(), |tail, segment| {
        tail.option(coap_numbers::option::URI_PATH, segment.as_bytes())
    })
    .into_bytes()
}

/// Returns the payload of a response.
pub fn response(scenario: &Scenario) -> Vec<u8> {
    Tail::default().payload(&vec![b'.'; scenario.server.payload_bytes as usize]).into_bytes()
}
