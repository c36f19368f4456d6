//! A square for every pair of mechanisms: orange where the row takes more than its share, blue where it gets less.

use super::super::font;
use super::super::pairs::Pairs;
use super::DrawingSheet;
use super::canvas::{Anchor, Canvas, INK, SOFT, mixed};
use super::sizes::{MARGIN, SMALL, TEXT};

const SIDE: f64 = 34.0;
/// The colours of less than 100 %, of 100 % and of more.
const SCALE: [[f64; 3]; 3] = [[90.0, 169.0, 221.0], [244.0, 241.0, 234.0], [240.0, 138.0, 69.0]];

/// Draws the chart below `top`; returns the width and the height of the picture.
pub(super) fn draw(canvas: &mut Canvas, sheet: &DrawingSheet, pairs: &Pairs) -> [f64; 2] {
    // The words beside the names of rows and of columns.
    let of = format!("{} of", pairs.rate());
    let words = [of.as_str(), "beside"];
    let names: Vec<&str> = pairs.mechanisms.iter().map(|&m| sheet.name(m)).collect();
    let longest = sheet.longest_name(pairs.mechanisms.iter().copied());
    let left = MARGIN + longest.max(font::width(words[0], SMALL)) + 10.0;
    // The names of columns are turned by 45 degrees.
    let head = (longest * std::f64::consts::FRAC_1_SQRT_2 + TEXT).max(40.0);
    let grid = sheet.top + head + 6.0;
    canvas.text([left - 8.0, grid - 6.0], words[0], SMALL, SOFT, Anchor::END);
    canvas.text([left - 8.0, grid - 8.0 - SMALL * 1.3], words[1], SMALL, SOFT, Anchor::END);
    let percents = || pairs.cells.iter().flatten().filter_map(|cell| cell.value(pairs.measure));
    // The scale reaches as far above 100 % as below, so that 100 % has the colour in the middle.
    let reach = percents().map(|value| (value - 1.0).abs()).fold(0.25, f64::max);
    for (place, name) in names.iter().enumerate() {
        let middle = SIDE * (place as f64 + 0.5);
        canvas.text([left - 8.0, grid + middle + TEXT * 0.36], name, TEXT, INK, Anchor::END);
        canvas.turned([left + middle, grid - 6.0], name, TEXT, INK, Anchor::START, -45);
    }
    for (row, cells) in pairs.cells.iter().enumerate() {
        for (column, cell) in cells.iter().enumerate() {
            let (x, y) = (left + SIDE * column as f64, grid + SIDE * row as f64);
            let value = cell.value(pairs.measure);
            let fill = value.map_or_else(|| "#ffffff".to_owned(), |value| colour((value - 1.0) / reach));
            canvas.rect([x, y, SIDE - 2.0, SIDE - 2.0], &fill, 1.0, None);
            let text = cell.text(pairs.measure, row == column);
            let middle = [x + SIDE / 2.0 - 1.0, y + SIDE / 2.0 - 1.0 + SMALL * 0.36];
            canvas.text(middle, &text, SMALL, INK, Anchor::MIDDLE);
        }
    }
    let side = SIDE * names.len() as f64;
    let scale = [left + side + 24.0, grid];
    // Two or three mechanisms make a map that is too low for the labels of the scale.
    let end = bar(canvas, scale, side.max(120.0), reach);
    let note = &format!("* starved: below 50 % of its {} among its own kind", pairs.rate());
    let bottom = grid + side.max(120.0) + 8.0 + SMALL;
    let starved = pairs.cells.iter().flatten().any(|cell| cell.starved);
    if starved {
        canvas.text([left, bottom], note, SMALL, SOFT, Anchor::START);
    }
    let right = (left + side + longest * std::f64::consts::FRAC_1_SQRT_2)
        .max(end)
        .max(left + font::width(note, SMALL));
    [sheet.width.max(right + MARGIN), bottom + MARGIN]
}

/// Draws the scale of colours; returns its right end.
fn bar(canvas: &mut Canvas, [x, top]: [f64; 2], height: f64, reach: f64) -> f64 {
    const STEPS: usize = 40;
    let step = height / STEPS as f64;
    for place in 0..STEPS {
        // From the top down: the first step is the highest value.
        let value = 1.0 - 2.0 * (place as f64 + 0.5) / STEPS as f64;
        // The overlap of 0.3 pixels hides hairlines between the steps.
        canvas.rect([x, top + step * place as f64, 12.0, step + 0.3], &colour(value), 1.0, None);
    }
    let mut end = x;
    for (place, value) in [(0.0, 1.0 + reach), (0.5, 1.0), (1.0, 1.0 - reach)] {
        let text = format!("{:.0}\u{a0}%", value * 100.0).replace('-', "−");
        let y = top + height * place + SMALL * 0.36;
        canvas.text([x + 18.0, y], &text, SMALL, INK, Anchor::START);
        end = end.max(x + 18.0 + font::width(&text, SMALL));
    }
    end
}

/// Returns the colour of a value from -1 to 1.
fn colour(value: f64) -> String {
    let value = value.clamp(-1.0, 1.0);
    let [low, middle, high] = SCALE;
    mixed([middle, if value < 0.0 { low } else { high }], value.abs())
}
