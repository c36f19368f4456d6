//! Charts as SVG, drawn without a browser.

mod canvas;
mod frame;
mod legend;
mod lines;
mod points;
mod rows;
mod scene;
mod sizes;
mod squares;
mod strips;

use canvas::{Anchor, Canvas, INK, SOFT};
use frame::room_beside;
pub(super) use scene::Scene;
use sizes::{MARGIN, TEXT, TITLE};

use super::chart::{Body, Chart};
use super::font;
use super::panels::StyledMechanism;
use super::plates::Plates;
use super::style::Style;

/// A chart, and the canvas on which it is drawn.
struct DrawingSheet<'a> {
    chart: &'a Chart,
    /// The mechanisms of the page, sorted by their numbers.
    mechanisms: &'a [StyledMechanism<'a>],
    width: f64,
    /// The vertical position below the title at which the chart begins.
    top: f64,
}

impl<'a> DrawingSheet<'a> {
    fn name(&self, m: usize) -> &'a str {
        self.mechanisms[m].name
    }

    fn style(&self, m: usize) -> Style {
        self.mechanisms[m].style
    }

    /// Returns the width of the longest name among these mechanisms.
    fn longest_name(&self, all: impl IntoIterator<Item = usize>) -> f64 {
        all.into_iter().map(|m| font::width(self.name(m), TEXT)).fold(0.0, f64::max)
    }

    /// Returns the left end of the plot, right of its vertical axis and the title of the axis.
    fn left(&self) -> f64 {
        MARGIN + TEXT + 8.0 + room_beside(&self.chart.y)
    }
}

/// Returns a chart as SVG, with title, axes and legend. `mechanisms` has all mechanisms of the page, sorted by their numbers.
pub(super) fn svg(chart: &Chart, mechanisms: &[StyledMechanism], plates: &Plates) -> String {
    let width = plates.size.width();
    let mut sheet = DrawingSheet { chart, mechanisms, width, top: MARGIN };
    // Long names make a chart wider than it is asked for. The picture then has a smaller scale.
    sheet.width = width.max(sheet.longest_name(chart.mechanisms()) + 0.6 * width);
    let mut canvas = Canvas::default();
    // Papers have captions, so a figure may go without its title.
    if plates.titles {
        sheet.top = heading(&mut canvas, chart, sheet.width);
    }
    let size = match &chart.body {
        Body::Lines { lines } => lines::draw(&mut canvas, &sheet, lines),
        Body::Strips { lines } => strips::draw(&mut canvas, &sheet, lines),
        Body::Boxes { rows, bound } => {
            rows::draw(&mut canvas, &sheet, rows, *bound, |row| (row.m, row.published), rows::quartiles)
        }
        Body::Intervals { rows, bound } => {
            rows::draw(&mut canvas, &sheet, rows, *bound, |row| (row.m, row.published), rows::interval)
        }
        Body::Bars { rows, .. } => {
            rows::draw(&mut canvas, &sheet, rows, None, |row| (row.m, None), rows::bar)
        }
        Body::Points { points } => points::draw(&mut canvas, &sheet, points),
        Body::Squares(pairs) => squares::draw(&mut canvas, &sheet, pairs),
    };
    // Rounded up as in `finish_in`, so that the outer size has the ratio of the view box.
    canvas.finish_in(&chart.title, size, plates.size.outer(size.map(f64::ceil)))
}

/// Draws the title and the conditions; returns the vertical position at which the chart begins.
fn heading(canvas: &mut Canvas, chart: &Chart, width: f64) -> f64 {
    let mut y = MARGIN;
    for (text, size, colour) in [(&chart.title, TITLE, INK), (&chart.conditions, TEXT, SOFT)] {
        for line in font::lines(text, size, width - 2.0 * MARGIN) {
            if line.is_empty() {
                continue;
            }
            y += size * 1.15;
            canvas.text([MARGIN, y], &line, size, colour, Anchor::START);
        }
        y += 2.0;
    }
    y + 10.0
}

#[cfg(test)]
mod tests {
    use super::super::axis::Axis;
    use super::super::chart::Curve;
    use super::super::style::styles;
    use super::*;

    fn lines(names: &[&str]) -> String {
        let line = |m: usize| {
            let y = vec![1.0 + m as f64, 2.0, 3.0];
            let (low, high) = (vec![0.5; 3], vec![4.0; 3]);
            Curve { m, x: vec![1.0, 2.0, 3.0], y, low, high, marks: true, ..Curve::default() }
        };
        let lines: Vec<Curve> = (0..names.len()).map(line).collect();
        let chart = Chart {
            name: "delay-over-clients".into(),
            title: "Delay <over> clients".into(),
            caption: String::new(),
            conditions: "loss 20 %".into(),
            x: Axis::linear("clients", "", [1.0, 3.0]),
            y: Axis::from_zero("delay in seconds", "s", &[4.0]),
            body: Body::Lines { lines },
        };
        let mechanisms = names.iter().zip(styles(names)).map(|(name, style)| StyledMechanism { name, style });
        svg(&chart, &mechanisms.collect::<Vec<_>>(), &Plates::default())
    }

    #[test]
    fn a_drawn_chart_has_a_title_axes_and_a_legend() {
        let svg = lines(&["default", "cocoa:preset=libcoap-2019"]);
        for text in
            ["Delay &lt;over&gt; clients", "loss 20 %", ">clients<", ">delay in seconds<", ">default<"]
        {
            assert!(svg.contains(text), "{text}");
        }
        assert!(svg.contains(">cocoa:preset=libcoap-2019<"), "names are not cut");
        assert!(svg.contains("#0072b2"), "the colour of cocoa");
        roxmltree::Document::parse(&svg).unwrap();
    }

    #[test]
    fn a_chart_of_more_than_eight_lines_is_split_into_small_ones() {
        let names: Vec<String> = (0..9).map(|k| format!("fasor:k={k}")).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let frames = |svg: &str| svg.matches("class=\"frame\"").count();
        assert_eq!((frames(&lines(&names[..8])), frames(&lines(&names))), (1, 9));
        assert!(lines(&names).contains(">fasor:k=8<"));
    }

    #[test]
    fn a_long_mechanism_name_makes_the_chart_wider() {
        let long = format!("fullbackoff1:{}", "parameter=value,".repeat(12));
        let svg = lines(&["default", &long]);
        let document = roxmltree::Document::parse(&svg).unwrap();
        let width: f64 = document.root_element().attribute("width").unwrap().parse().unwrap();
        assert!(svg.contains(&long) && width > font::width(&long, TEXT), "{width}");
    }
}
