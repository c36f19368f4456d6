//! The picture of a mesh at one frame of a film.

use coapace_run::measured::{Film, FilmMoment, FilmRole};

use super::super::font;
use super::canvas::{Anchor, Canvas, GRID, INK, SOFT, mixed, solid};
use super::sizes::{MARGIN, SMALL, TITLE};

const WIDTH: f64 = 640.0;
const HIGHEST: f64 = 560.0;
/// The space around the nodes, in pixels.
const PAD: f64 = 34.0;
const COLLISION: &str = "#d55e00";
const SENDS: &str = "#0072b2";
/// The colours of nodes with an empty and with a full queue: nearly white, and blue.
const QUEUE: [[f64; 3]; 2] = [[253.0, 252.0, 250.0], [75.0, 159.0, 219.0]];

/// A film, and the position of its mesh in the picture.
pub(crate) struct Scene<'a> {
    film: &'a Film,
    title: &'a str,
    /// The scale in pixels per metre. The next field is the position of the mesh's origin in the picture.
    scale: f64,
    origin: [f64; 2],
    /// The width and height of the picture without its lines of text.
    stage: [f64; 2],
    radius: f64,
    /// The number of frames in a full queue.
    room: f64,
    /// The largest number of frames that a node sent between two moments of the film.
    busiest: f64,
}

impl<'a> Scene<'a> {
    /// Prepares the pictures of a film; `None` if it has no nodes or no frames.
    pub(crate) fn new(film: &'a Film, title: &'a str) -> Option<Self> {
        if film.nodes.is_empty() || film.frames.is_empty() {
            return None;
        }
        let moments = || film.frames.iter().flatten();
        let ends = |of: fn(&FilmMoment) -> f64| {
            let fold = |[low, high]: [f64; 2], x: f64| [low.min(x), high.max(x)];
            moments().map(of).fold([f64::INFINITY, f64::NEG_INFINITY], fold)
        };
        // The extent of all moments, so that moving nodes stay within the picture.
        let ([left, right], [top, bottom]) = (ends(|it| it.position.x), ends(|it| it.position.y));
        let places: Vec<_> = film.frames[0].iter().map(|moment| moment.position).collect();
        let nearest = |(own, place): (usize, &coapace_sim::Position)| {
            let others = places.iter().enumerate().filter(|(other, _)| *other != own);
            others.map(|(_, it)| (it.x - place.x).hypot(it.y - place.y)).fold(f64::INFINITY, f64::min)
        };
        // The distance from each node to its nearest neighbour.
        let mut apart: Vec<f64> =
            places.iter().enumerate().map(nearest).filter(|it| it.is_finite()).collect();
        apart.sort_by(f64::total_cmp);
        // At least a metre, because a mesh may have all nodes at one place.
        let extent = (right - left).max(bottom - top).max(1.0);
        // The median, because one far node must not make all others small dots, nor two close ones.
        let spacing = apart.get(apart.len() / 2).copied().filter(|it| *it > 0.0).unwrap_or(extent / 10.0);
        let fits = |room: f64, span: f64| (room - 2.0 * PAD) / span.max(1e-9);
        // Few nodes would otherwise be far apart with nothing between them.
        let scale = fits(WIDTH, right - left).min(fits(HIGHEST, bottom - top)).min(96.0 / spacing);
        let height = ((bottom - top) * scale + 2.0 * PAD).max(160.0);
        let origin = [
            WIDTH / 2.0 - f64::midpoint(left, right) * scale,
            height / 2.0 - f64::midpoint(top, bottom) * scale,
        ];
        let most = moments().map(|moment| moment.queued).max().unwrap_or(0);
        // Without a bound on queues, the fullest queue of the film is full.
        let room = f64::from(if film.queue_frames > 0 { film.queue_frames } else { most.max(1) });
        let radius = (spacing * scale * 0.29).clamp(3.5, 14.0);
        let mut scene =
            Self { film, title, scale, origin, stage: [WIDTH, height], radius, room, busiest: 1.0 };
        let sent = |at: usize| (0..film.nodes.len()).map(move |node| (at, node));
        // Computed last, because it needs the scene, and before any picture, because rings of all pictures share one scale.
        scene.busiest = (0..film.frames.len())
            .flat_map(sent)
            .map(|(at, node)| scene.since(at, node, |moment| moment.sent) as f64)
            .fold(1.0, f64::max);
        Some(scene)
    }

    /// Returns how much a node's count has grown between the previous moment of the film and the moment `at`.
    fn since(&self, at: usize, node: usize, of: fn(&FilmMoment) -> u64) -> u64 {
        let count = |at: usize| self.film.frames[at].get(node).map_or(0, of);
        if at == 0 { count(0) } else { count(at).saturating_sub(count(at - 1)) }
    }

    fn place(&self, top: f64, moment: &FilmMoment) -> [f64; 2] {
        let [x, y] = self.origin;
        [x + moment.position.x * self.scale, top + y + moment.position.y * self.scale]
    }

    /// Returns the picture of a moment as SVG.
    pub(crate) fn svg(&self, at: usize) -> String {
        let mut canvas = Canvas::default();
        let mut top = MARGIN;
        for line in font::lines(self.title, TITLE, WIDTH - 2.0 * MARGIN) {
            top += TITLE * 1.15;
            canvas.text([MARGIN, top], &line, TITLE, INK, Anchor::START);
        }
        top += 8.0;
        // The lines come first, so that the nodes cover their ends.
        let moments = &self.film.frames[at];
        for (node, moment) in moments.iter().enumerate() {
            let Some(parent) = moment.parent.and_then(|parent| moments.get(parent as usize)) else {
                continue;
            };
            let sent = self.since(at, node, |moment| moment.sent) as f64;
            // The square root keeps rarely used ways visible beside the busiest.
            let width = 1.2 + 6.0 * (sent / self.busiest).sqrt();
            canvas.line(self.place(top, moment), self.place(top, parent), solid(GRID, width));
        }
        for node in 0..moments.len() {
            self.node(&mut canvas, at, node, top);
        }
        let bottom = self.words(&mut canvas, at, top + self.stage[1]);
        canvas.finish(self.title, [WIDTH, bottom])
    }

    /// Draws a node: the bluer, the fuller its queue is, with a ring if it sends, a red ring if a frame was destroyed while it
    /// received, and a cross if it gave a frame up.
    fn node(&self, canvas: &mut Canvas, at: usize, node: usize, top: f64) {
        let moment = &self.film.frames[at][node];
        let (place, r) = (self.place(top, moment), self.radius);
        let fill = mixed(QUEUE, (f64::from(moment.queued) / self.room).min(1.0));
        let sent = self.since(at, node, |moment| moment.sent) as f64;
        // The ring is drawn first, below the node.
        if sent > 0.0 {
            canvas.ring(place, r * 1.45, SENDS, 0.8 + 2.2 * sent / self.busiest);
        }
        let [x, y] = place;
        match self.film.nodes[node].role {
            FilmRole::Root => {
                canvas.rect([x - r, y - r, 2.0 * r, 2.0 * r], &fill, 1.0, Some(solid(INK, 1.2)));
            }
            FilmRole::Sink => {
                let r = r * 1.32;
                // The first corner comes again at the end, because a path is not closed by itself.
                let corners = [[x, y - r], [x + r, y], [x, y + r], [x - r, y], [x, y - r]];
                canvas.area(&corners, &fill, 1.0);
                canvas.path(&corners, solid(INK, 1.2));
            }
            FilmRole::Client => {
                canvas.disc(place, r, &fill);
                canvas.ring(place, r, INK, 1.2);
            }
        }
        // In a smaller node digits cannot be read.
        if r >= 8.0 {
            let size = r * 0.9;
            canvas.text([x, y + size * 0.36], &node.to_string(), size, INK, Anchor::MIDDLE);
        }
        if self.since(at, node, |moment| moment.collided) > 0 {
            canvas.ring(place, r + 3.5, COLLISION, 2.2);
        }
        if self.since(at, node, |moment| moment.dropped) > 0 {
            let (arm, off) = ((r * 0.38).max(3.0), r * 0.95);
            let [left, right] = [x + off - arm, x + off + arm];
            let [upper, lower] = [y - off - arm, y - off + arm];
            canvas.line([left, upper], [right, lower], solid(COLLISION, 2.0));
            canvas.line([left, lower], [right, upper], solid(COLLISION, 2.0));
        }
    }

    /// Draws the time, the totals of the last step, and the meaning of the signs; returns their lower end.
    fn words(&self, canvas: &mut Canvas, at: usize, top: f64) -> f64 {
        let nodes = 0..self.film.nodes.len();
        let sum =
            |of: fn(&FilmMoment) -> u64| nodes.clone().map(|node| self.since(at, node, of)).sum::<u64>();
        let (sent, collided, dropped) = (sum(|it| it.sent), sum(|it| it.collided), sum(|it| it.dropped));
        let queued: u32 = self.film.frames[at].iter().map(|moment| moment.queued).sum();
        let decimals = usize::from(self.film.step_s.fract() != 0.0);
        let now = format!(
            "{:.decimals$} s: {sent} frames sent, {collided} receptions destroyed, {dropped} frames given up, {queued} waiting",
            at as f64 * self.film.step_s
        );
        let y = top + SMALL * 1.4;
        canvas.text([MARGIN, y], &now, SMALL * 1.1, INK, Anchor::START);
        // A film of one frame has no length to divide by.
        let end = (self.film.frames.len() - 1).max(1) as f64;
        let bar = y + 8.0;
        canvas.line([MARGIN, bar], [WIDTH - MARGIN, bar], solid(GRID, 3.0));
        let passed = MARGIN + (WIDTH - 2.0 * MARGIN) * at as f64 / end;
        canvas.line([MARGIN, bar], [passed, bar], solid(SENDS, 3.0));
        let signs = "square: root, diamond: sink; blue: its queue; blue ring: sends; red ring: a frame destroyed here; cross: gives a frame up";
        let y = bar + SMALL * 1.7;
        canvas.text([MARGIN, y], signs, SMALL, SOFT, Anchor::START);
        y + MARGIN
    }
}
