use proptest::prelude::*;
use std::borrow::ToOwned;
use std::string::ToString;
use std::vec::Vec;

use super::*;

/// The example of RFC 6690 §5, shortened.
const SENSORS: &str = "</sensors>;ct=40;title=\"Sensor Index\",\
    </sensors/temp>;rt=\"temperature-c\";if=\"sensor\";obs,\
    </sensors/light>;rt=\"light-lux core.sen-light\";if=\"sensor\";ct=\"0 41\",\
    <http://www.example.com/sensors/t123>;anchor=\"/sensors/temp\";rel=\"describedby\"";

fn targets(arguments: &[&str]) -> Vec<String> {
    let text = filter(SENSORS, arguments);
    parse(&text).map(|link| link.unwrap().target.to_string()).collect()
}

#[test]
fn links_and_their_attributes_are_parsed() {
    let links: Vec<_> = parse(SENSORS).map(Result::unwrap).collect();
    assert_eq!(links.len(), 4);
    assert_eq!((links[0].target, links[0].text), ("/sensors", "</sensors>;ct=40;title=\"Sensor Index\""));
    assert_eq!(links[0].attribute("title").as_deref(), Some("Sensor Index"));
    let attributes: Vec<_> = links[1].attributes().collect();
    assert_eq!(attributes[2], ("obs", None));
    assert_eq!(attributes.len(), 3);
}

#[test]
fn a_link_filter_compares_the_target_whole_values_and_single_values_of_a_list() {
    assert_eq!(targets(&["rt=temperature-c"]), ["/sensors/temp"]);
    assert_eq!(targets(&["rt=core.sen-light"]), ["/sensors/light"]);
    assert_eq!(targets(&["rt=light-lux core.sen-light"]), ["/sensors/light"]);
    assert_eq!(targets(&["title=Sensor"]), Vec::<&str>::new(), "a title is not a list");
    assert_eq!(targets(&["ct=41"]), ["/sensors/light"]);
    assert_eq!(targets(&["href=/sensors"]), ["/sensors"]);
    assert_eq!(targets(&["obs"]), ["/sensors/temp"]);
    assert_eq!(targets(&[]).len(), 4);
}

#[test]
fn an_asterisk_at_the_end_of_a_filter_matches_any_text() {
    assert_eq!(targets(&["href=/sensors/*"]), ["/sensors/temp", "/sensors/light"]);
    assert_eq!(targets(&["rt=core.*"]), ["/sensors/light"]);
    assert_eq!(targets(&["if=*", "rt=temp*"]), ["/sensors/temp"], "both have to fit");
    assert_eq!(targets(&["rt=*-lux"]), Vec::<&str>::new(), "elsewhere it means itself");
}

#[test]
fn commas_and_brackets_within_quotation_marks_do_not_end_a_link() {
    let title = "a \"b\", <c>; \\d";
    let links = Writer::default().link("/x").unwrap().text("title", title).unwrap().link("/y").unwrap();
    let read: Vec<_> = parse(links.as_str()).map(Result::unwrap).collect();
    assert_eq!((read.len(), read[0].attribute("title").as_deref()), (2, Some(title)));
}

#[test]
fn an_invalid_link_is_an_error_with_its_position_and_other_links_are_read() {
    use Problem::*;
    for (text, targets, misread) in [
        ("</a;rt=x,</b>", &["/b"][..], &[(9, OpenTarget)][..]),
        ("</a>;ct=40,", &["/a"], &[(11, NoTarget)]),
        (" </a> , \n", &["/a"], &[(7, NoTarget)]),
        ("</x>title=", &[], &[(4, NoSeparator)]),
        ("</x>title=\"a,b\",</y>", &["/y"], &[(4, NoSeparator)]),
        ("x", &[], &[(0, NoTarget)]),
        ("</a", &[], &[(3, OpenTarget)]),
        ("</a b>,</c>", &["/c"], &[(3, OpenTarget)]),
        ("</a>,,</b>", &["/a", "/b"], &[(5, NoTarget)]),
        ("</a>;,</b>", &["/b"], &[(5, NoName)]),
        ("</a>;rt=", &[], &[(8, NoValue)]),
        ("</a>;rt=\"x", &[], &[(8, OpenQuote)]),
        ("</a>;rt=\"x\\", &[], &[(8, OpenQuote)]),
        ("</a>;rt=x\"y\"", &[], &[(9, NoSeparator)]),
        ("</a></b>,</c>,<,</d>", &["/c", "/d"], &[(4, NoSeparator), (16, OpenTarget)]),
    ] {
        let read: Vec<_> = parse(text).collect();
        let good: Vec<_> = read.iter().flatten().map(|link| link.target).collect();
        let bad: Vec<_> = read.iter().filter_map(|link| link.err()).map(|it| (it.at, it.problem)).collect();
        assert_eq!((good, bad), (targets.to_vec(), misread.to_vec()), "{text}");
    }
    assert_eq!(filter("</a;rt=x,</b>", &[]), "</b>");
    let text = parse("</x>title=").next().unwrap().unwrap_err().to_string();
    assert_eq!(text, "byte 4: a ; or , is missing");
    assert_eq!(parse(" ").count(), 0);
    let line = parse("</a>;rt=x\n").next().unwrap().unwrap();
    assert_eq!(line.attribute("rt").as_deref(), Some("x"), "the end of a line is none of the value");
    assert_eq!(parse(" </a> ; rt = x , </b> ").flatten().count(), 2, "spaces are borne");
}

#[test]
fn characters_that_a_link_cannot_have_are_not_written() {
    let link = || Writer::default().link("/a").unwrap();
    assert_eq!(Writer::default().link("/a>;evil"), Err(BadLink));
    assert_eq!(Writer::default().flag("obs"), Err(BadLink), "of what link?");
    assert_eq!(link().flag(""), Err(BadLink));
    assert_eq!(link().flag("a=b"), Err(BadLink));
    assert_eq!(link().text("rt", "a\nb"), Err(BadLink));
}

proptest! {
    #[test]
    fn written_links_parse_back(
        links in proptest::collection::vec(
            ("/[a-z0-9/%]{0,8}", proptest::collection::vec(("[a-z-]{1,6}", proptest::option::of("[ -~äß€]{0,12}")), 0..4)),
            0..5,
        ),
    ) {
        let mut writer = Writer::default();
        for (target, attributes) in &links {
            writer = writer.link(target).unwrap();
            for (name, value) in attributes {
                writer = match value {
                    Some(value) => writer.text(name, value).unwrap(),
                    None => writer.flag(name).unwrap(),
                };
            }
        }
        let read: Vec<_> = parse(writer.as_str())
            .map(|link| {
                let link = link.unwrap();
                let attributes: Vec<_> = link
                    .attributes()
                    .map(|(name, value)| (name.to_owned(), value.map(Cow::into_owned)))
                    .collect();
                (link.target.to_owned(), attributes)
            })
            .collect();
        prop_assert_eq!(read, links);
        prop_assert_eq!(filter(writer.as_str(), &[]), writer.into_string());
    }

    #[test]
    fn parsing_any_text_as_links_does_not_panic(text: String, argument: String) {
        for link in parse(&text).filter_map(Result::ok) {
            let _ = (link.attributes().count(), link.matches(&argument));
        }
    }

    #[test]
    fn parsing_nearly_valid_links_does_not_panic(text in "[<>a/;,=\"\\\\ *ä\n]{0,30}") {
        let read: Vec<_> = parse(&text).collect();
        for link in read.iter().flatten() {
            prop_assert_eq!(parse(link.text).collect::<Vec<_>>(), [Ok(*link)]);
        }
        let places: Vec<_> = read.iter().filter_map(|link| link.err()).map(|it| it.at).collect();
        prop_assert!(places.is_sorted() && places.iter().all(|&at| text.is_char_boundary(at)), "{places:?}");
    }
}
