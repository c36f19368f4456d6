//! SVG elements, written one after the other.

use std::fmt::Write;

use super::super::font::FAMILY;
use super::super::html::escape;
pub(super) use super::super::style::{INK, PAPER, SOFT};

/// The colour of grids.
pub(super) const GRID: &str = "#e4e1da";

/// The part of a text that lies at its position: the start, the middle or the end.
#[derive(Clone, Copy)]
pub(super) struct Anchor(&'static str);

impl Anchor {
    pub(super) const START: Self = Self("start");
    pub(super) const MIDDLE: Self = Self("middle");
    pub(super) const END: Self = Self("end");
}

/// The look of a line.
#[derive(Clone, Copy)]
pub(super) struct Stroke<'a> {
    pub(super) colour: &'a str,
    pub(super) width: f64,
    /// The value of `stroke-dasharray`; empty for a solid line.
    pub(super) dash: &'a str,
}

/// Returns the look of a solid line.
pub(super) fn solid(colour: &str, width: f64) -> Stroke<'_> {
    Stroke { colour, width, dash: "" }
}

/// An SVG picture under construction.
#[derive(Default)]
pub(super) struct Canvas {
    elements: String,
}

impl Canvas {
    pub(super) fn line(&mut self, [x1, y1]: [f64; 2], [x2, y2]: [f64; 2], stroke: Stroke) {
        self.path(&[[x1, y1], [x2, y2]], stroke);
    }

    /// Draws a line through these points.
    pub(super) fn path(&mut self, points: &[[f64; 2]], Stroke { colour, width, dash }: Stroke) {
        let points = coordinates(points);
        let dash = if dash.is_empty() { String::new() } else { format!(" stroke-dasharray=\"{dash}\"") };
        let _ = writeln!(
            self.elements,
            "<polyline points=\"{points}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width}\"{dash} \
             stroke-linejoin=\"round\"/>"
        );
    }

    /// Draws a filled shape with these corners.
    pub(super) fn area(&mut self, points: &[[f64; 2]], colour: &str, opacity: f64) {
        let points = coordinates(points);
        let _ = writeln!(
            self.elements,
            "<polygon points=\"{points}\" fill=\"{colour}\" fill-opacity=\"{opacity}\"/>"
        );
    }

    /// Draws a rectangle: left, top, width, height.
    pub(super) fn rect(&mut self, [x, y, w, h]: [f64; 4], fill: &str, opacity: f64, stroke: Option<Stroke>) {
        let stroke = stroke.map_or_else(String::new, |Stroke { colour, width, .. }| {
            format!(" stroke=\"{colour}\" stroke-width=\"{width}\"")
        });
        let _ = writeln!(
            self.elements,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{:.1}\" height=\"{:.1}\" fill=\"{fill}\" fill-opacity=\"{opacity}\"{stroke}/>",
            // SVG does not allow negative lengths.
            w.max(0.0),
            h.max(0.0)
        );
    }

    /// Draws the frame of a chart: left, top, width, height.
    pub(super) fn frame(&mut self, [x, y, w, h]: [f64; 4]) {
        let _ = writeln!(
            self.elements,
            "<rect class=\"frame\" x=\"{x:.1}\" y=\"{y:.1}\" width=\"{w:.1}\" height=\"{h:.1}\" fill=\"none\" \
             stroke=\"{SOFT}\" stroke-width=\"0.8\"/>"
        );
    }

    /// Draws a mark around a point. `shape` selects, from 0: a disc, a square, a triangle, a diamond, a ring, a cross; then it
    /// starts again.
    pub(super) fn mark(&mut self, [x, y]: [f64; 2], shape: usize, r: f64, colour: &str) {
        match shape % 6 {
            1 => self.rect([x - r * 0.9, y - r * 0.9, r * 1.8, r * 1.8], colour, 1.0, None),
            2 => self.area(
                &[[x, y - r * 1.2], [x + r * 1.1, y + r * 0.8], [x - r * 1.1, y + r * 0.8]],
                colour,
                1.0,
            ),
            3 => self.area(
                &[[x, y - r * 1.3], [x + r * 1.3, y], [x, y + r * 1.3], [x - r * 1.3, y]],
                colour,
                1.0,
            ),
            5 => {
                self.line([x - r, y - r], [x + r, y + r], solid(colour, r * 0.6));
                self.line([x - r, y + r], [x + r, y - r], solid(colour, r * 0.6));
            }
            4 => {
                self.disc([x, y], r, PAPER);
                self.ring([x, y], r, colour, r * 0.55);
            }
            _ => self.disc([x, y], r, colour),
        }
    }

    /// Draws a filled circle.
    pub(super) fn disc(&mut self, [x, y]: [f64; 2], r: f64, fill: &str) {
        let _ = writeln!(self.elements, "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\" fill=\"{fill}\"/>");
    }

    /// Draws the outline of a circle.
    pub(super) fn ring(&mut self, [x, y]: [f64; 2], r: f64, colour: &str, width: f64) {
        let _ = writeln!(
            self.elements,
            "<circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"{r:.1}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"{width:.2}\"/>"
        );
    }

    /// Draws a text whose baseline is at this position.
    pub(super) fn text(&mut self, at: [f64; 2], text: &str, size: f64, colour: &str, anchor: Anchor) {
        self.turned(at, text, size, colour, anchor, 0);
    }

    /// Draws a text that is turned around its position by `degrees`, clockwise.
    pub(super) fn turned(
        &mut self,
        [x, y]: [f64; 2],
        text: &str,
        size: f64,
        colour: &str,
        anchor: Anchor,
        degrees: i32,
    ) {
        let turn = if degrees == 0 {
            String::new()
        } else {
            format!(" transform=\"rotate({degrees} {x:.1} {y:.1})\"")
        };
        let _ = writeln!(
            self.elements,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" fill=\"{colour}\" text-anchor=\"{}\"{turn}>{}</text>",
            anchor.0,
            escape(text)
        );
    }

    /// Returns the SVG document, on white paper.
    pub(super) fn finish(self, title: &str, size: [f64; 2]) -> String {
        self.finish_in(title, size, size.map(f64::ceil))
    }

    /// Returns the SVG document, enlarged as far as it fits, in the middle of a picture of the size `outer`.
    pub(super) fn finish_in(self, title: &str, size: [f64; 2], outer: [f64; 2]) -> String {
        let [width, height] = size.map(f64::ceil);
        let scale = (outer[0] / width).min(outer[1] / height);
        let short = |number: f64| (number * 100.0).round() / 100.0;
        let [inner_width, inner_height] = outer.map(|side| short(side / scale));
        let [x, y] = [short((width - inner_width) / 2.0), short((height - inner_height) / 2.0)];
        // The paper begins where the view box does; at 0, 0 it would leave a bare edge.
        let origin = if x < 0.0 || y < 0.0 { format!("x=\"{x}\" y=\"{y}\" ") } else { String::new() };
        // Adding 0 turns −0 into 0, which is printed without a sign.
        let (x, y) = (x + 0.0, y + 0.0);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{}\" height=\"{}\" \
             viewBox=\"{x} {y} {inner_width} {inner_height}\" font-family=\"{FAMILY}\">\n<title>{}</title>\n\
             <rect {origin}width=\"{inner_width}\" height=\"{inner_height}\" fill=\"{PAPER}\"/>\n{}</svg>\n",
            short(outer[0]),
            short(outer[1]),
            escape(title),
            self.elements
        )
    }
}

/// Returns a mixture of two colours as CSS. Each colour has red, green and blue from 0 to 255. `share` is the part of
/// the second colour, from 0 to 1.
pub(super) fn mixed([from, to]: [[f64; 3]; 2], share: f64) -> String {
    let [r, g, b] = std::array::from_fn(|i| (from[i] + (to[i] - from[i]) * share).round() as u8);
    format!("#{r:02x}{g:02x}{b:02x}")
}

fn coordinates(points: &[[f64; 2]]) -> String {
    points.iter().map(|[x, y]| format!("{x:.1},{y:.1}")).collect::<Vec<_>>().join(" ")
}
