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
use super::plates::Plates;

/// The scale of a PNG: its pixels in each direction for 1/96 inch. An inch has 288 pixels.
const SCALE: f32 = 3.0;
/// The pixels of an SVG in an inch.
const DPI: f32 = 96.0;

/// Writes charts into `dir`, which is made if it is missing; returns the number of charts.
///
/// # Errors
/// Returns the first error in making the directory or in writing a file.
pub(super) fn write(dir: &Path, charts: &Charts, plates: &Plates) -> io::Result<usize> {
    let chosen = plates.choose(charts.all()).map_err(io::Error::other)?;
    fs::create_dir_all(dir)?;
    each(&chosen, |chart| {
        let svg = drawing::svg(chart, charts.mechanisms(), plates);
        // PDF and PNG are made from the SVG, so that the three files show the same.
        let tree = parse(&svg)?;
        let pdf = svg2pdf::to_pdf(&tree, ConversionOptions::default(), PageOptions { dpi: DPI })
            .map_err(|error| io::Error::other(error.to_string()))?;
        let png = pixels(&tree, SCALE)?.encode_png().map_err(io::Error::other)?;
        for (ending, bytes) in [("pdf", pdf), ("png", png), ("svg", svg.into_bytes())] {
            replace(dir, &format!("{}.{ending}", chart.name), &bytes)?;
        }
        Ok(())
    })?;
    Ok(chosen.len())
}

/// Writes a file under a temporary name in the same folder and renames it, so that only a complete file replaces an earlier
/// one.
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
        .ok_or_else(|| io::Error::other("cannot draw the picture: it has no pixels, or too many"))?;
    resvg::render(tree, Transform::from_scale(scale, scale), &mut pixels.as_mut());
    Ok(pixels)
}

#[cfg(test)]
mod tests {
    use super::super::{CellGroup, PlateSize, Report};
    use super::*;
    use coapace_lab::results::{Cell, CellResult};
    use coapace_run::measured::RunResult;

    #[test]
    fn every_chart_is_exported_as_three_files_named_after_it() {
        let result = |mechanism: &str, clients, fct_s| {
            let run = |seed, fct_s| RunResult { seed, fct_s: vec![Some(fct_s)], ..RunResult::default() };
            let cell = Cell { mechanism: mechanism.into(), clients, ..Cell::default() };
            CellResult { cell, runs: vec![run(1, fct_s), run(2, fct_s * 1.1)] }
        };
        let cells = [1, 10, 100].map(|clients| ["default", "fasor"].map(|name| result(name, clients, 30.0)));
        let groups = CellGroup::by_conditions(cells.into_iter().flatten().collect());
        let dir = std::env::temp_dir().join(format!("coapace-figures-{}", std::process::id()));
        let report = Report { groups, ..Report::default() };
        let files = || -> Vec<String> {
            fs::read_dir(&dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect()
        };
        // Charts of single conditions are written if they are asked for.
        let some = report.write_figures(&dir, &Plates::default()).unwrap();
        assert_eq!(files().len(), 3 * some);
        assert!(files().iter().all(|name| !name.contains("--")), "{:?}", files());
        let all = Plates { charts: vec!["all".into()], ..Plates::default() };
        let charts = report.write_figures(&dir, &all).unwrap();
        assert!(charts > some);
        let files = files();
        assert_eq!(files.len(), 3 * charts);
        let begins = |name: &str, bytes: &[u8]| fs::read(dir.join(name)).unwrap().starts_with(bytes);
        assert!(begins("fct-median-over-clients.svg", b"<svg "));
        assert!(begins("fct-median-over-clients.pdf", b"%PDF-"));
        assert!(begins("fct-median-over-clients.png", b"\x89PNG"));
        assert!(files.contains(&"fct-quantiles--100-clients.svg".to_owned()), "{files:?}");
        fs::remove_dir_all(&dir).unwrap();
        let sized = |size, titles| {
            let plates = Plates { charts: vec!["median_fct_s".into()], size, titles };
            let written = report.write_figures(&dir, &plates).unwrap();
            (written, fs::read_to_string(dir.join("fct-median-over-clients.svg")).unwrap())
        };
        for (size, width) in
            [(PlateSize::Column, "336"), (PlateSize::Double, "687.36"), (PlateSize::Slide, "1280")]
        {
            let (written, svg) = sized(size, true);
            assert_eq!(written, 1);
            assert!(svg.contains(&format!(" width=\"{width}\" height=\"")), "{size:?}: {}", &svg[..300]);
            let untitled = sized(size, false).1;
            assert!(untitled.len() < svg.len());
        }
        let wrong = Plates { charts: vec!["zzz".into()], ..Plates::default() };
        let error = report.write_figures(&dir, &wrong).unwrap_err().to_string();
        assert!(
            error.starts_with("`zzz` is not the name of a chart; the charts are ")
                && error.contains("fct-median-over-clients"),
            "{error}"
        );
        fs::remove_dir_all(&dir).unwrap();
    }
}
