//! Charts as files for papers: SVG, PDF and PNG, without a browser.

use std::fs;
use std::io;
use std::path::Path;

use resvg::tiny_skia::{Pixmap, Transform};
use svg2pdf::usvg::{Options, Tree};
use svg2pdf::{ConversionOptions, PageOptions};

use super::drawing;
use super::font::DATABASE;
use super::panels::Charts;
use super::parallel::each;

/// The pixels of a PNG for each pixel of 1/96 inch: 288 an inch.
const SCALE: f32 = 3.0;
/// The pixels of an SVG in an inch.
const DPI: f32 = 96.0;

/// Writes every chart into `dir`, which is made if it is missing; returns the number of charts.
///
/// # Errors
/// Returns the first error in making the directory or in writing a file.
pub(super) fn write(dir: &Path, charts: &Charts) -> io::Result<usize> {
    fs::create_dir_all(dir)?;
    each(charts.all(), |chart| {
        let svg = drawing::svg(chart, charts.mechanisms());
        let tree = parse(&svg)?;
        let pdf = svg2pdf::to_pdf(&tree, ConversionOptions::default(), PageOptions { dpi: DPI })
            .map_err(|error| io::Error::other(error.to_string()))?;
        let png = pixels(&tree, SCALE)?.encode_png().map_err(io::Error::other)?;
        for (ending, bytes) in [("pdf", pdf), ("png", png), ("svg", svg.into_bytes())] {
            replace(dir, &format!("{}.{ending}", chart.name), &bytes)?;
        }
        Ok(())
    })?;
    Ok(charts.all().len())
}

/// Writes a file beside its place and moves it there, so that an earlier file is only replaced by a complete one.
fn replace(dir: &Path, name: &str, bytes: &[u8]) -> io::Result<()> {
    let beside = dir.join(format!(".{name}.new"));
    fs::write(&beside, bytes)?;
    fs::rename(beside, dir.join(name))
}

/// Returns the parsed picture of an SVG, with the font of the charts.
pub(super) fn parse(svg: &str) -> io::Result<Tree> {
    let options = Options {
        fontdb: DATABASE.clone(),
        font_family: "Liberation Sans".to_owned(),
        dpi: DPI,
        ..Options::default()
    };
    Tree::from_str(svg, &options).map_err(io::Error::other)
}

/// Returns the picture in pixels, `scale` times as wide and as high.
pub(super) fn pixels(tree: &Tree, scale: f32) -> io::Result<Pixmap> {
    let whole = tree.size();
    let side = |length: f32| (length * scale).ceil() as u32;
    let mut pixels = Pixmap::new(side(whole.width()), side(whole.height()))
        .ok_or_else(|| io::Error::other("a picture without pixels, or with too many"))?;
    resvg::render(tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    Ok(pixels)
}

#[cfg(test)]
mod tests {
    use super::super::{Group, Report};
    use super::*;
    use coapace_lab::results::{Cell, CellResult, RunResult};

    #[test]
    fn every_chart_is_three_files_named_after_it() {
        let result = |mechanism: &str, clients, fct_s| {
            let run = |seed, fct_s| RunResult { seed, fct_s: vec![Some(fct_s)], ..RunResult::default() };
            let cell = Cell { mechanism: mechanism.into(), clients, ..Cell::default() };
            CellResult {
                cell,
                runs: vec![run(1, fct_s), run(2, fct_s * 1.1)],
                published: None,
                bounds: Vec::new(),
            }
        };
        let cells = [1, 10, 100].map(|clients| ["default", "fasor"].map(|name| result(name, clients, 30.0)));
        let groups = Group::by_conditions(cells.into_iter().flatten().collect());
        let dir = std::env::temp_dir().join(format!("coapace-figures-{}", std::process::id()));
        let charts = Report { groups, ..Report::default() }.write_figures(&dir).unwrap();
        let mut files: Vec<_> = fs::read_dir(&dir)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort_unstable();
        assert_eq!(files.len(), 3 * charts);
        let begins = |name: &str, bytes: &[u8]| fs::read(dir.join(name)).unwrap().starts_with(bytes);
        assert!(begins("fct-median-over-clients.svg", b"<svg "));
        assert!(begins("fct-median-over-clients.pdf", b"%PDF-"));
        assert!(begins("fct-median-over-clients.png", b"\x89PNG"));
        assert!(files.contains(&"fct-quantiles--100-clients.svg".to_owned()), "{files:?}");
        fs::remove_dir_all(&dir).unwrap();
    }
}
