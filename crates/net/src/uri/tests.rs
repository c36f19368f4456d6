use super::*;
use proptest::prelude::*;

fn uri(text: &str) -> Uri {
    text.parse().unwrap()
}

#[test]
fn the_three_uris_of_rfc_7252_6_3_name_one_resource() {
    let texts = [
        "coap://example.com:5683/~sensors/temp.xml",
        "coap://EXAMPLE.com/%7Esensors/temp.xml",
        "coap://EXAMPLE.com:/%7esensors/temp.xml",
    ];
    for text in texts {
        assert_eq!(uri(text), uri(texts[0]));
    }
    assert_eq!(uri(texts[0]).path, ["~sensors", "temp.xml"]);
}

#[test]
fn percent_encoded_segments_are_decoded_once_and_empty_segments_are_kept() {
    let uri = uri("coap://h/a%2Fb//%2525/?q=%26&&x/y?z");
    assert_eq!(uri.path, ["a/b", "", "%25", ""]);
    assert_eq!(uri.query, ["q=&", "", "x/y?z"]);
    assert_eq!(uri.to_string(), "coap://h/a%2Fb//%2525/?q=%26&&x/y?z");
}

#[test]
fn the_root_has_no_path_segments_and_dot_segments_are_resolved() {
    for (text, path) in [
        ("coap://h", ""),
        ("coap://h/", ""),
        ("coap://h/a/./b/../c", "a c"),
        ("coap://h/../..", ""),
        ("coap://h/a/.", "a "),
    ] {
        assert_eq!(uri(text).path.join(" "), path, "{text}");
    }
}

#[test]
fn the_port_of_a_uri_is_as_given_or_the_default_of_its_scheme() {
    let address = |text: &str| match uri(text) {
        Uri { host: Host::Address(address, zone), port, .. } => (address.to_string(), zone, port),
        other => panic!("{other:?}"),
    };
    assert_eq!(address("coap://192.0.2.1:61616/"), ("192.0.2.1".into(), None, 61616));
    assert_eq!(address("coaps://[2001:db8::1]/x"), ("2001:db8::1".into(), None, 5684));
    assert_eq!(address("coap+tcp://[fe80::1%25eth0]:9"), ("fe80::1".into(), Some("eth0".into()), 9));
    let default = |scheme: &str| uri(&format!("{scheme}://h")).port;
    assert_eq!(Scheme::ALL.map(|scheme| default(scheme.name())), [5683, 5684, 5683, 5684, 80, 443]);
}

#[test]
fn an_error_about_a_uri_gives_the_reason() {
    for (text, why) in [
        ("/temp", BadUri::NotAbsolute),
        ("http://h/", BadUri::UnknownScheme),
        ("coap://h/#x", BadUri::Fragment),
        ("coap:///x", BadUri::Host),
        ("coap://:5683/", BadUri::Host),
        ("coap://[::1/", BadUri::Address),
        ("coap://[h]/", BadUri::Address),
        ("coap://h:99999/", BadUri::Port),
        ("coap://h:+1/", BadUri::Port),
        ("coap://[::1]5/", BadUri::Port),
        ("coap://me@h/", BadUri::Character(9)),
        ("coap://h/a b", BadUri::Character(10)),
        ("coap://h/%4", BadUri::Encoding),
        ("coap://h/%ff", BadUri::Encoding),
        ("coap://h/a/%2e%2E/b", BadUri::Dots),
        ("coap://h/%2e", BadUri::Dots),
        ("coap://h/.%2E/b", BadUri::Dots),
    ] {
        assert_eq!(text.parse::<Uri>(), Err(why), "{text}");
    }
    assert_eq!(format!("coap://h/{}", "x".repeat(256)).parse::<Uri>(), Err(BadUri::TooLong));
}

#[test]
fn a_host_name_becomes_the_uri_host_option_and_an_address_does_not() {
    let options = uri("coap://h:1/a?b").options();
    let options: Vec<_> = options.iter().collect();
    assert_eq!(options, [(3, &b"h"[..]), (11, b"a"), (15, b"b")]);
    assert_eq!(uri("coap://[::1]:1/").options(), Options::new());
}

#[test]
fn a_coap_uri_is_sent_to_a_proxy_in_parts_and_any_other_uri_as_a_whole() {
    let parts = |text: &str| -> Vec<(u16, Vec<u8>)> {
        let options = uri(text).options_for_proxy().unwrap();
        options.iter().map(|(number, value)| (number, value.to_vec())).collect()
    };
    let part = |number, text: &str| (number, text.as_bytes().to_vec());
    assert_eq!(
        parts("coap+tcp://h/a?b"),
        [part(3, "h"), (7, vec![0x16, 0x33]), part(11, "a"), part(15, "b"), part(39, "coap+tcp")]
    );
    assert_eq!(parts("coap://[::1]:9/"), [part(3, "[::1]"), (7, vec![9]), part(39, "coap")]);
    assert_eq!(uri("coap://[fe80::1%25eth0]/").options_for_proxy(), Err(BadUri::ZoneForProxy));

    let whole = proxy_uri("http://example.org/a?b=[c]").unwrap();
    assert_eq!(whole.iter().collect::<Vec<_>>(), [(35, &b"http://example.org/a?b=[c]"[..])]);
    for (text, why) in [
        ("example.org", BadUri::NotAbsolute),
        ("1://h", BadUri::NotAbsolute),
        ("http://", BadUri::Host),
        ("http:///x", BadUri::Host),
        ("http://h/#x", BadUri::Fragment),
        ("http://h/a b", BadUri::Character(10)),
    ] {
        assert_eq!(proxy_uri(text), Err(why), "{text}");
    }
    assert_eq!(proxy_uri(&format!("http://h/{}", "x".repeat(1_026))), Err(BadUri::TooLong));
}

proptest! {
    #[test]
    fn a_displayed_uri_parses_back_to_the_same_uri(
        path in proptest::collection::vec("\\PC{0,8}", 0..5),
        query in proptest::collection::vec("\\PC{0,8}", 0..4),
        name in "\\PC{1,8}",
        port in any::<u16>(),
    ) {
        let host = Host::Name(name.to_lowercase());
        // `/` has no path segments; a lone `?` has no query arguments.
        prop_assume!(!path.iter().any(|segment| matches!(segment.as_str(), "." | "..")));
        prop_assume!(path != [""] && host.clone() != Host::Name(String::new()));
        prop_assume!(name.parse::<Ipv4Addr>().is_err() && name.to_lowercase().to_lowercase() == name.to_lowercase());
        let uri = Uri { scheme: Scheme::Coap, host, port, path, query };
        prop_assert_eq!(uri.to_string().parse::<Uri>(), Ok(uri));
    }

    #[test]
    fn parsing_any_text_as_a_uri_does_not_panic(text in "(coap://)?\\PC{0,40}") {
        let _ = text.parse::<Uri>();
    }
}
