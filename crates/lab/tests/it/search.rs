//! A search finds the same with any workers, and its journal has the same lines.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};

use coapace_lab::search::evaluation::SearchPiece;
use coapace_lab::search::networks::Networks;
use coapace_lab::search::space::Varied;
use coapace_lab::search::terms::SearchTerms;
use coapace_lab::search::{Search, SearchError};

/// The nine networks of this seed are small: a search takes seconds.
const GENERATOR_SEED: u64 = 11;

fn terms(mechanisms: &[&str], vary: &[&str]) -> SearchTerms {
    SearchTerms {
        mechanisms: mechanisms.iter().map(|&it| it.to_owned()).collect(),
        vary: vary.iter().map(|text| Varied::parse(text).unwrap()).collect(),
        networks: Networks::Mixed,
        generator_seed: GENERATOR_SEED,
        scenarios: 9,
        brackets: 2,
        seed: 1,
    }
}

/// A file that is removed at the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("coapace-search-{}-{name}", std::process::id()));
        let _ = fs::remove_file(&path);
        Self(path)
    }

    fn text(&self) -> String {
        fs::read_to_string(&self.0).unwrap()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

fn open(terms: SearchTerms, journal: &Scratch) -> Search {
    Search::open(terms, "v", Some(&journal.0)).unwrap()
}

/// Measures on threads, and checks that progress never falls.
fn conduct(search: &mut Search, jobs: usize) {
    let mut last = 0;
    let ended = search.conduct(jobs, &AtomicBool::new(false), || Ok(()), &mut |search| {
        let (done, all) = search.progress();
        assert!((last..=all).contains(&done), "{done} of {all} after {last}");
        last = done;
        Ok(())
    });
    assert!(ended.unwrap());
    assert_eq!(search.progress(), (last, last), "all is done");
}

#[test]
fn a_search_does_not_depend_on_the_sequence_in_which_measurements_finish() {
    let terms = || terms(&["default"], &["ack_timeout=1s|2s|4s"]);
    let (threads, elsewhere) = (Scratch::new("threads"), Scratch::new("elsewhere"));
    let mut search = open(terms(), &threads);
    conduct(&mut search, 2);
    assert!(search.best().unwrap().mechanism.starts_with("default:ack_timeout="));
    // Another program measures the last piece first, and draws its scenario alone.
    let mut other = open(terms(), &elsewhere);
    loop {
        let pieces = other.ask().to_vec();
        assert_eq!(other.asked(), pieces);
        if pieces.is_empty() {
            break;
        }
        for (place, piece) in pieces.iter().enumerate().rev() {
            let measured =
                piece.measure(&Networks::Mixed.draw(GENERATOR_SEED, 9, piece.place as u32).unwrap()).unwrap();
            other.tell(place, measured).unwrap();
            other.tell(place, measured).unwrap();
        }
        assert_eq!(other.asked().len(), pieces.len());
    }
    assert_eq!(other.found(), search.found());
    assert!(other.evaluations().eq(search.evaluations()));
    assert_eq!(other.evaluations().count(), 9, "three places on one, three and nine scenarios, each once");
    assert_eq!(elsewhere.text(), threads.text());
    // A journal that has everything leaves nothing to measure.
    search.close();
    let mut again = open(terms(), &threads);
    assert!(again.ask().is_empty());
    assert_eq!(again.found(), search.found());
    assert!(again.evaluations().eq(search.evaluations()));
}

#[test]
fn mechanisms_named_twice_are_compared_once() {
    let journal = Scratch::new("compared");
    let mut search = open(terms(&["ebb", "default", "ebb"], &[]), &journal);
    conduct(&mut search, 2);
    let found: Vec<_> = search.found().iter().map(|it| it.mechanism.as_str()).collect();
    assert_eq!(found, ["ebb", "default", "ebb"]);
    assert_eq!(search.evaluations().count(), 2);
    assert_eq!(search.best().unwrap().mechanism, "ebb");
    assert_eq!(journal.text().matches("\"evaluation\"").count(), 2);
    let text = search.found()[0].text(search.set(), true);
    assert!(text.starts_with("ebb\n  geometric mean   mean FCT "), "{text}");
    assert_eq!(text.lines().count(), 1 + 1 + 5 + 1 + 1 + 9 + 4, "{text}");
    let one = search.set().evaluate("ebb", search.journal().yardsticks(), 1);
    assert_eq!(one.as_ref().ok(), search.found().first());
}

#[test]
fn searches_on_meshes_score_delivery_delay_and_transmissions_but_not_fairness() {
    let (meshes, mixed) = (Scratch::new("meshes"), Scratch::new("mixed"));
    let on = |networks| SearchTerms { networks, ..terms(&["ebb"], &[]) };
    let mut search = open(on(Networks::Meshes), &meshes);
    conduct(&mut search, 2);
    let text = search.found()[0].text(search.set(), true);
    assert!(text.starts_with("ebb\n  geometric mean   delivery "), "{text}");
    assert!(!text.contains("share beside"), "{text}");
    assert_eq!(text.lines().count(), 1 + 1 + 5 + 1 + 9, "{text}");
    // Nobody measures better than the best published mechanism by much.
    let means = [0, 1, 2].map(|cost| search.found()[0].geometric_mean(cost));
    assert!(means.iter().all(|mean| (0.8..3.0).contains(mean)), "{means:?}");
    drop(search);
    assert!(meshes.text().starts_with("{\"conditions\":{\"commit\":\"v\",\"networks\":\"meshes\","));
    let refused = Search::open(on(Networks::Mixed), "v", Some(&meshes.0)).unwrap_err().to_string();
    assert!(refused.contains("networks: meshes"), "{refused}");
    // A journal of mixed networks is as it was before there were others.
    drop(open(on(Networks::Mixed), &mixed));
    assert_eq!(mixed.text(), "{\"conditions\":{\"commit\":\"v\",\"generator_seed\":11,\"scenarios\":9}}\n");
}

#[test]
fn a_stopped_search_resumes_from_the_complete_lines_of_its_journal() {
    let terms = || terms(&["default"], &["ack_timeout=1s|2s|4s"]);
    let (whole, stopped) = (Scratch::new("whole"), Scratch::new("stopped"));
    conduct(&mut open(terms(), &whole), 2);
    let (mut stops, mut is_over) = (0, false);
    while !is_over {
        let stop = AtomicBool::new(false);
        let before = if stopped.0.exists() { stopped.text().lines().count() } else { 1 };
        let mut search = open(terms(), &stopped);
        let ended = search.conduct(2, &stop, || Ok(()), &mut |_| {
            stop.store(stopped.text().lines().count() >= before + 4, Ordering::Relaxed);
            Ok(())
        });
        is_over = ended.unwrap();
        stops += usize::from(!is_over);
        assert!(whole.text().starts_with(&stopped.text()));
    }
    assert!(stops >= 3, "{stops}");
    assert_eq!(stopped.text(), whole.text());
}

#[test]
fn a_search_ends_with_an_error_of_its_check_callback_or_mechanism() {
    let journal = Scratch::new("failing");
    let stop = AtomicBool::new(false);
    let fail = || Err(std::io::Error::other("no"));
    let mut search = open(terms(&["default"], &[]), &journal);
    let ended = search.conduct(2, &stop, fail, &mut |_| Ok(()));
    assert!(matches!(ended, Err(SearchError::Failed(_))), "{ended:?}");
    let ended = search.conduct(2, &stop, || Ok(()), &mut |_| fail());
    assert_eq!(ended.unwrap_err().to_string(), "no");
    assert_eq!(journal.text().lines().count(), 1, "nothing is kept");
    let unknown = SearchPiece { mechanism: "defaultt".into(), place: 0 };
    assert!(search.set().measure(&unknown).unwrap_err().contains("did you mean default"));
    let nowhere = SearchPiece { mechanism: "default".into(), place: 13 };
    assert!(search.set().measure(&nowhere).is_err());
    let refused = Search::open(terms(&["defaultt"], &[]), "v", None);
    assert!(matches!(refused, Err(SearchError::Usage(_))));
    let second = Search::open(terms(&["default"], &[]), "v", Some(&journal.0)).unwrap_err().to_string();
    assert!(second.contains("this journal is in use"), "{second}");
    search.close();
    let other = Search::open(terms(&["default"], &[]), "w", Some(&journal.0)).unwrap_err().to_string();
    assert!(other.starts_with(&journal.0.display().to_string()) && other.contains("version: v"), "{other}");
    let folder = Search::open(terms(&["default"], &[]), "v", Some(Path::new("/"))).unwrap_err();
    assert!(matches!(folder, SearchError::Journal(..)), "{folder}");
}
