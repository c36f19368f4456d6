//! Simulation files of Cooja (`.csc`): motes with their places, and the unit disk graph medium.
//!
//! The reader follows Cooja (contiki-ng/cooja at b980125c, `Simulation.java`, `interfaces/Position.java`,
//! `interfaces/MoteID.java`, `radiomediums/UDGM.java`): a class is the text of an element before its children. Older versions
//! write motes beside their types, with `<x>`, `<y>`, `<z>`, and call their classes `se.sics…`; newer ones write motes within
//! their types, with `<pos x="…" y="…"/>`. Both are read, whatever version the file states.

use std::collections::{HashMap, HashSet};
use std::fmt::Display;

use coapace_sim::Position;
use coapace_sim::mesh::UnitDisk;
use coapace_sim::topology::MAX_NODES;
use roxmltree::{Document, Node, ParsingOptions};

use super::{bounded, coordinate, in_line, number, shown};
use crate::schema::error;

/// The maximum number of attributes of an element.
const MAX_ATTRIBUTES: usize = 100;

/// A mesh in a simulation file. The motes are nodes, numbered from 0 in the sequence of the file, like in position files.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Simulation {
    /// The positions of the motes.
    pub(crate) places: Vec<Position>,
    /// The number of the root: the first mote whose type is described as a root, a border router or a sink (Contiki's
    /// examples say `RPL root`, `Border router`, `UDP sink`). `None` if none is described so.
    pub(crate) root: Option<u32>,
    /// The radio medium, Cooja's unit disk graph.
    pub(crate) medium: UnitDisk,
}

impl Simulation {
    /// Reads the text of a simulation file.
    ///
    /// # Errors
    /// Returns one line of text, with the number of the line in the file, for text that is not XML or not a simulation, for
    /// another radio medium, a mote without a number or a position, two motes with one number, a position outside of the plane,
    /// and more than [`MAX_NODES`] motes.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        bounded(text)?;
        few_attributes(text)?;
        // A document type declaration stays forbidden, so no entity can expand.
        // A mote has about 20 nodes of XML. Its type has more, but is there once for all its motes.
        let options = ParsingOptions { nodes_limit: MAX_NODES * 50, ..ParsingOptions::default() };
        let document = Document::parse_with_options(text, options)
            .map_err(|wrong| in_line(wrong.pos().row, not_xml(text, &wrong)))?;
        let root = document.root_element();
        let simulation =
            child(root, "simulation").filter(|_| root.has_tag_name("simconf")).ok_or_else(|| {
                fault(root, "this is not a simulation of Cooja: it lacks <simconf> with <simulation>")
            })?;
        let (places, descriptions): (Vec<_>, Vec<_>) = motes(simulation)?.into_iter().unzip();
        let root = descriptions.into_iter().position(is_root).map(|place| place as u32);
        Ok(Self { places, root, medium: medium(simulation)? })
    }
}

/// Returns the reason why a text cannot be read. The parser's own message quotes the text, so the message is shown only
/// if the text has `<simconf`: a scenario from somebody else may name any file.
fn not_xml(text: &str, wrong: &roxmltree::Error) -> String {
    // Only text that claims to be a simulation is quoted.
    if text.contains("<simconf") {
        error::shown(&wrong.to_string())
    } else {
        "this is not a simulation of Cooja: it is not XML with <simconf>".to_owned()
    }
}

/// Returns whether motes of a type with this description are roots.
fn is_root(description: &str) -> bool {
    let description = description.to_lowercase().replace(['-', '_'], " ");
    // Whole words, so that `UDP sink` is a root and `rooted` is not.
    let mut words = description.split_whitespace();
    description.contains("border router") || words.any(|word| matches!(word, "root" | "sink"))
}

/// Returns an error if an element has more than [`MAX_ATTRIBUTES`], far more than Cooja writes. The parser would be
/// slow, because it compares each attribute with all others.
fn few_attributes(text: &str) -> Result<(), String> {
    let mut rest = text;
    while let Some(at) = rest.find('<') {
        rest = &rest[at..];
        // A `=` within one of these does not belong to an attribute.
        let between = [("<!--", "-->"), ("<![CDATA[", "]]>"), ("<?", "?>")];
        if let Some((_, end)) = between.iter().find(|(begin, _)| rest.starts_with(begin)) {
            let Some(at) = rest.find(end) else { return Ok(()) };
            rest = &rest[at + end.len()..];
            continue;
        }
        // A `=` or `>` within quotes is part of a value. XML has no escaped quotes, so the same quote ends it.
        let mut quote = None;
        let mut attributes = 0;
        let end = rest.bytes().position(|byte| {
            match (quote, byte) {
                (None, b'"' | b'\'') => quote = Some(byte),
                (None, b'=') => attributes += 1,
                (None, b'>') => return true,
                (Some(open), byte) if open == byte => quote = None,
                _ => {}
            }
            false
        });
        if attributes > MAX_ATTRIBUTES {
            let line = text[..text.len() - rest.len()].matches('\n').count() + 1;
            let problem = format!("an element has more than {MAX_ATTRIBUTES} attributes");
            return Err(in_line(line, problem));
        }
        // Text that ends within an element is not XML. The parser reports it, with its line.
        let Some(end) = end else { return Ok(()) };
        rest = &rest[end..];
    }
    Ok(())
}

/// Returns the position of every mote and the description of its type, which is empty if there is none.
fn motes<'a>(simulation: Node<'a, '_>) -> Result<Vec<(Position, &'a str)>, String> {
    let types: HashMap<_, _> = children(simulation, "motetype")
        .filter_map(|kind| Some((content(child(kind, "identifier")?), kind)))
        .collect();
    // A mote of an older version names its type. A mote of a newer version lies within its type.
    let type_of = |mote| types.get(content(child(mote, "motetype_identifier")?)).copied();
    let mut motes = Vec::new();
    let mut ids = HashSet::new();
    for element in simulation.children().filter(Node::is_element) {
        let (kind, listed) = match element.tag_name().name() {
            "mote" => (type_of(element), vec![element]),
            "motetype" => (Some(element), children(element, "mote").collect()),
            _ => continue,
        };
        let description = kind.and_then(|kind| child(kind, "description")).map_or("", content);
        for mote in listed {
            // Refused before the mote is read, so that a long file costs no more than a valid one.
            if motes.len() == MAX_NODES as usize {
                return Err(fault(mote, format!("there are more than {MAX_NODES} motes")));
            }
            let (id, position) = (id(mote)?, position(mote)?);
            // Cooja gives every mote a number of its own.
            if !ids.insert(id) {
                return Err(fault(mote, format!("two motes have the number {id}")));
            }
            motes.push((position, description));
        }
    }
    if motes.is_empty() {
        return Err(fault(simulation, "there are no motes"));
    }
    Ok(motes)
}

fn id(mote: Node) -> Result<u32, String> {
    let id = interface(mote, "MoteID")
        .and_then(|config| child(config, "id"))
        .ok_or_else(|| fault(mote, "a mote has no number: it lacks MoteID with <id>"))?;
    content(id)
        .parse()
        .map_err(|_| fault(id, format!("a mote's number must be whole, not {}", shown(content(id)))))
}

fn position(mote: Node) -> Result<Position, String> {
    let config = interface(mote, "Position")
        .ok_or_else(|| fault(mote, "a mote has no position: it lacks the interface Position"))?;
    let place = child(config, "pos");
    // A missing coordinate is 0, in newer and in older files.
    let along = |axis| {
        let text = match place {
            Some(place) => place.attribute(axis),
            None => child(config, axis).map(content),
        };
        text.map_or(Ok(0.0), coordinate).map_err(|problem| fault(config, problem))
    };
    if along("z")?.abs() > 0.0 {
        return Err(fault(config, "a mote has a height; all must be in the plane z = 0"));
    }
    Ok(Position { x: along("x")?, y: along("y")? })
}

fn medium(simulation: Node) -> Result<UnitDisk, String> {
    let medium =
        child(simulation, "radiomedium").ok_or_else(|| fault(simulation, "the <radiomedium> is missing"))?;
    // The package changed between versions of Cooja, and the name of the class did not.
    let class = content(medium);
    if class.rsplit('.').next() != Some("UDGM") {
        return Err(fault(medium, format!("the radio medium must be UDGM, not {}", shown(class))));
    }
    // Cooja's defaults for keys that a file does not have. The range in which a transmission is noticed follows below.
    let mut disk = UnitDisk { range_m: 50.0, interference_m: 100.0, ..UnitDisk::NARROW };
    for element in medium.children().filter(Node::is_element) {
        let (value, most) = match element.tag_name().name() {
            "transmitting_range" => (&mut disk.range_m, super::FARTHEST_M),
            "interference_range" => (&mut disk.interference_m, super::FARTHEST_M),
            // The oldest files have one ratio for both directions.
            "success_ratio_tx" | "success_ratio" => (&mut disk.success_ratio_tx, 1.0),
            "success_ratio_rx" => (&mut disk.success_ratio_rx, 1.0),
            _ => continue,
        };
        *value = number(content(element), 0.0, most).ok_or_else(|| {
            let name = element.tag_name().name();
            fault(element, format!("<{name}> must be from 0 to {most}, not {}", shown(content(element))))
        })?;
    }
    // Cooja's own rule.
    disk.interference_m = disk.interference_m.max(disk.range_m);
    // A signal is noticed above the level that it has at the very edge of the range.
    disk.sense_m = disk.range_m;
    Ok(disk)
}

/// Returns the configuration of the mote's interface whose class name ends with `class`; `None` if the mote has none.
fn interface<'a, 'input>(mote: Node<'a, 'input>, class: &str) -> Option<Node<'a, 'input>> {
    children(mote, "interface_config").find(|config| content(*config).ends_with(class))
}

fn child<'a, 'input>(of: Node<'a, 'input>, name: &str) -> Option<Node<'a, 'input>> {
    of.children().find(|child| child.has_tag_name(name))
}

fn children<'a, 'input>(of: Node<'a, 'input>, name: &'static str) -> impl Iterator<Item = Node<'a, 'input>> {
    of.children().filter(move |child| child.has_tag_name(name))
}

/// Returns the trimmed text of an element before its children; empty if it has none.
fn content<'a>(of: Node<'a, '_>) -> &'a str {
    of.text().unwrap_or("").trim()
}

fn fault(at: Node, problem: impl Display) -> String {
    in_line(at.document().text_pos_at(at.range().start).row, problem)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns a simulation with this medium and these motes. The motes begin in line 14.
    fn simulation(motes: &str) -> String {
        format!(
            r#"<?xml version="1.0" encoding="UTF-8"?>
<simconf>
  <project EXPORT="discard">[APPS_DIR]/mrm</project>
  <simulation>
    <title>Three motes</title>
    <radiomedium>
      se.sics.cooja.radiomediums.UDGM
      <transmitting_range>10.0</transmitting_range>
      <interference_range>20.0</interference_range>
      <success_ratio_tx>1.0</success_ratio_tx>
      <success_ratio_rx>0.75</success_ratio_rx>
    </radiomedium>
    <motetype>se.sics.cooja.mspmote.Z1MoteType<identifier>z1</identifier><description>Client</description></motetype>
{motes}
  </simulation>
</simconf>
"#
        )
    }

    fn mote(id: &str, x: &str) -> String {
        format!(
            "<mote><interface_config>se.sics.cooja.interfaces.Position<x>{x}</x><y>-2.5</y><z>0.0</z>\
             </interface_config><interface_config>se.sics.cooja.mspmote.interfaces.MspMoteID<id>{id}</id>\
             </interface_config><motetype_identifier>z1</motetype_identifier></mote>\n"
        )
    }

    fn refused(text: &str) -> String {
        Simulation::parse(text).unwrap_err()
    }

    #[test]
    fn cooja_files_of_older_versions_with_motes_beside_their_types_are_read() {
        let read = Simulation::parse(&simulation(&(mote("7", " 0.0 ") + &mote("3", "1e1")))).unwrap();
        assert_eq!(read.places, [0.0, 10.0].map(|x| Position { x, y: -2.5 }));
        assert_eq!(read.medium, UnitDisk { success_ratio_rx: 0.75, ..UnitDisk::NARROW });
    }

    #[test]
    fn cooja_files_of_newer_versions_with_motes_within_their_types_are_read() {
        let text = r#"<simconf version="2023090101"><simulation>
            <radiomedium>
              org.contikios.cooja.radiomediums.UDGM
              <transmitting_range>50.0</transmitting_range>
            </radiomedium>
            <motetype>
              org.contikios.cooja.contikimote.ContikiMoteType
              <description>RPL Border Router</description>
              <moteinterface>org.contikios.cooja.interfaces.Position</moteinterface>
              <mote>
                <interface_config>
                  org.contikios.cooja.interfaces.Position
                  <pos x="4.25" y="26.5" />
                </interface_config>
                <interface_config>
                  org.contikios.cooja.contikimote.interfaces.ContikiMoteID
                  <id>1</id>
                </interface_config>
              </mote>
            </motetype>
          </simulation></simconf>"#;
        let read = Simulation::parse(text).unwrap();
        assert_eq!((&read.places[..], read.root), (&[Position { x: 4.25, y: 26.5 }][..], Some(0)));
        let medium = UnitDisk { range_m: 50.0, interference_m: 100.0, sense_m: 50.0, ..UnitDisk::NARROW };
        assert_eq!(read.medium, medium, "missing keys have the defaults of Cooja");
    }

    #[test]
    fn an_interference_range_shorter_than_the_transmission_range_is_raised_to_it() {
        let text = simulation(&mote("1", "0")).replace("20.0</interference", "5.0</interference");
        assert!((Simulation::parse(&text).unwrap().medium.interference_m - 10.0).abs() < 1e-12);
    }

    #[test]
    fn an_xml_element_with_too_many_attributes_is_refused_at_once() {
        let attributes = |count: usize| {
            (0..count)
                .flat_map(|at| [" a".to_owned(), at.to_string(), "='<=>'".to_owned()])
                .collect::<String>()
        };
        let with = |count| {
            simulation(&mote("1", "0")).replace("<simulation>", &format!("<simulation{}>", attributes(count)))
        };
        // A comparison of all attributes with each other would take half a minute.
        assert_eq!(refused(&with(300_000)), "line 4: an element has more than 100 attributes");
        assert!(
            refused(&with(100)).contains("'<'"),
            "100 attributes are allowed, so the parser finds another error"
        );
        let script = format!(
            "<script><![CDATA[if (1 < 2) {{ {} }}]]><!-- < {0} --></script><mote>",
            "a = 1;".repeat(200)
        );
        assert!(Simulation::parse(&simulation(&mote("1", "0").replacen("<mote>", &script, 1))).is_ok());
    }

    #[test]
    fn the_mote_described_as_root_becomes_the_root_of_the_mesh() {
        let text = simulation(&(mote("1", "0") + &mote("2", "10") + &mote("3", "20")));
        assert_eq!(Simulation::parse(&text).unwrap().root, None);
        for description in ["RPL Border Router", "border-router", "UDP sink", "RPL root (sky)"] {
            let kind = format!(
                "<motetype>X<identifier>r</identifier><description>{description}</description></motetype><radiomedium>"
            );
            let marked = text.replacen("<radiomedium>", &kind, 1);
            let (before, after) = marked.rsplit_once("<motetype_identifier>z1").unwrap();
            let marked = format!("{before}<motetype_identifier>r{after}");
            assert_eq!(Simulation::parse(&marked).unwrap().root, Some(2), "{description}");
        }
    }

    #[test]
    fn an_error_in_a_cooja_file_names_its_line() {
        assert_eq!(refused(&simulation("")), "line 4: there are no motes");
        assert_eq!(
            refused(&simulation(&(mote("1", "0") + &mote("1", "5")))),
            "line 15: two motes have the number 1"
        );
        assert_eq!(
            refused(&simulation(&mote("one", "0"))),
            r#"line 14: a mote's number must be whole, not "one""#
        );
        assert_eq!(
            refused(&simulation(&mote("1", "NaN"))),
            r#"line 14: a coordinate must be a number from -1000000 to 1000000, not "NaN""#
        );
        assert_eq!(
            refused(&simulation(&mote("1", "0").replace("<z>0.0", "<z>1.5"))),
            "line 14: a mote has a height; all must be in the plane z = 0"
        );
        assert_eq!(
            refused(&simulation("\n<mote></mote>")),
            "line 15: a mote has no number: it lacks MoteID with <id>"
        );
        assert_eq!(
            refused(&simulation(&mote("1", "0").replace("Position", "Battery"))),
            "line 14: a mote has no position: it lacks the interface Position"
        );
        assert_eq!(
            refused(&simulation(&mote("1", "0")).replace("UDGM", "DirectedGraphMedium")),
            r#"line 6: the radio medium must be UDGM, not "se.sics.cooja.radiomediums.DirectedGraph" …"#
        );
        assert_eq!(
            refused(&simulation(&mote("1", "0")).replace("0.75", "1.75")),
            r#"line 11: <success_ratio_rx> must be from 0 to 1, not "1.75""#
        );
        assert_eq!(
            refused("<html/>"),
            "line 1: this is not a simulation of Cooja: it lacks <simconf> with <simulation>"
        );
        assert!(refused("<simconf>\n<simulation>\n</simconf>").starts_with("line 3: "));
        assert!(!refused("<simconf \u{7f}\u{1}>").contains(char::is_control));
        assert!(refused("").starts_with("line 1: "));
    }

    #[test]
    fn xml_entities_deep_nesting_and_too_many_motes_are_refused() {
        let bomb = r#"<!DOCTYPE s [<!ENTITY a "aaaaaaaa"><!ENTITY b "&a;&a;&a;">]><simconf>&b;</simconf>"#;
        assert!(refused(bomb).starts_with("line 1: "));
        let deep = "<a>".repeat(200_000) + &"</a>".repeat(200_000);
        assert!(refused(&deep).starts_with("line 1: "));
        let many: String = (0..=MAX_NODES).map(|id| mote(&id.to_string(), "0")).collect();
        assert_eq!(refused(&simulation(&many)), "line 100014: there are more than 100000 motes");
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn any_text_as_a_cooja_file_is_read_or_refused_in_one_line(text in any::<String>(), at in 0..2_000usize, cut in 0..200usize) {
            // Texts are tried alone, and in place of a piece of a simulation that is right.
            let good = simulation(&(mote("1", "0") + &mote("2", "10")));
            let at = at.min(good.len());
            let end = (at + cut).min(good.len());
            let torn = format!("{}{text}{}", &good[..at], &good[end..]);
            for text in [&text, &torn] {
                if let Err(error) = Simulation::parse(text) {
                    prop_assert!(!error.is_empty() && !error.chars().any(char::is_control), "{error:?}");
                }
            }
        }
    }
}
