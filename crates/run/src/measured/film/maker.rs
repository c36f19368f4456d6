//! Makes a film while a mesh runs, in bounded memory.

use super::packed::rounded;
use super::{Film, FilmMoment};

/// Makes a [`Film`] in bounded memory. When it has more frames than fit, it drops every second frame, and from then on
/// keeps only every second new frame. This may repeat.
#[derive(Clone, Debug)]
pub struct FilmMaker {
    film: Film,
    /// The number of pushed frames of which one is kept.
    stride: usize,
    /// The number of frames that were pushed so far.
    shown: usize,
    /// The longest queue of each node since the last frame that was kept.
    peaks: Vec<u32>,
}

impl FilmMaker {
    /// Begins a film of these nodes. `film` has no frames yet. Its `step_s` is the time between two calls of
    /// [`push`](Self::push).
    pub fn new(film: Film) -> Self {
        let peaks = vec![0; film.nodes.len()];
        Self { film: Film { frames: Vec::new(), ..film }, stride: 1, shown: 0, peaks }
    }

    /// Adds a frame: the moments of all nodes, sorted by their numbers. The first call is for the start of the run,
    /// each further call for one step later. A missing moment becomes [`FilmMoment::default`], and moments after the
    /// last node are ignored.
    pub fn push(&mut self, moments: &[FilmMoment]) {
        for (peak, moment) in self.peaks.iter_mut().zip(moments) {
            // Frames that are not kept count as well, so that a short burst between two kept ones shows.
            *peak = moment.queued.max(*peak);
        }
        let kept = self.shown.is_multiple_of(self.stride);
        self.shown += 1;
        if !kept {
            return;
        }
        let mut frame: Vec<_> = moments.iter().map(|&moment| rounded(moment)).collect();
        frame.resize(self.peaks.len(), FilmMoment::default());
        for (moment, peak) in frame.iter_mut().zip(&mut self.peaks) {
            moment.queued = std::mem::take(peak);
        }
        self.film.frames.push(frame);
        if self.film.frames.len() > Film::max_frames(self.peaks.len()) {
            self.thin();
        }
    }

    /// Returns the film.
    pub fn finish(self) -> Film {
        self.film
    }

    /// Drops every second frame. The longest queue of a dropped frame counts for the next frame.
    fn thin(&mut self) {
        let mut kept: Vec<Vec<FilmMoment>> = Vec::with_capacity(self.film.frames.len() / 2 + 1);
        let mut skipped: Option<Vec<FilmMoment>> = None;
        for (number, mut frame) in std::mem::take(&mut self.film.frames).into_iter().enumerate() {
            if number % 2 == 1 {
                skipped = Some(frame);
                continue;
            }
            for (moment, before) in frame.iter_mut().zip(skipped.take().unwrap_or_default()) {
                moment.queued = moment.queued.max(before.queued);
            }
            kept.push(frame);
        }
        // The queues of a dropped last frame move to the frame to come.
        for (peak, moment) in self.peaks.iter_mut().zip(skipped.unwrap_or_default()) {
            *peak = moment.queued.max(*peak);
        }
        self.film.frames = kept;
        self.film.step_s *= 2.0;
        self.stride *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::super::{FilmNode, FilmRole};
    use super::*;

    fn two_nodes() -> Film {
        let node = |name: &str| FilmNode { role: FilmRole::Client, name: name.into() };
        Film { step_s: 0.5, nodes: vec![node("a"), node("b")], ..Film::default() }
    }

    #[test]
    fn a_short_film_keeps_every_frame() {
        let mut maker = FilmMaker::new(two_nodes());
        for sent in 0..400 {
            maker.push(&[FilmMoment { sent, ..FilmMoment::default() }; 2]);
        }
        let film = maker.finish();
        assert!(film.frames.iter().zip(0..).all(|(frame, sent)| frame[1].sent == sent));
        assert!(film.frames.len() == 400 && (film.step_s - 0.5).abs() < f64::EPSILON);
    }

    #[test]
    fn a_long_film_stays_bounded_and_keeps_time_counts_and_peaks() {
        let mut maker = FilmMaker::new(two_nodes());
        for number in 0..10_001_u64 {
            let queued = if number == 4_321 { 9 } else { 1 };
            let other = FilmMoment { sent: 3 * number, queued, ..FilmMoment::default() };
            maker.push(&[FilmMoment::default(), other]);
        }
        let film = maker.finish();
        assert!((200..=400).contains(&film.frames.len()), "{} frames", film.frames.len());
        assert!((film.step_s - 16.0).abs() < f64::EPSILON);
        assert!(film.frames.iter().zip(0..).all(|(frame, i)| frame[1].sent == 3 * 32 * i));
        let peaks: Vec<_> = (0..film.frames.len()).filter(|&i| film.frames[i][1].queued == 9).collect();
        assert_eq!(peaks, [4_321_usize.div_ceil(32)], "the peak is in one frame, the next that is kept");
        assert!(film.frames.iter().all(|frame| frame[0].queued == 0));
    }

    #[test]
    fn a_peak_in_any_frame_of_a_film_survives_thinning() {
        for peak in 0..800 {
            let mut maker = FilmMaker::new(two_nodes());
            for number in 0..=800 {
                let queued = u32::from(number == peak);
                maker.push(&[FilmMoment { queued, ..FilmMoment::default() }; 2]);
            }
            let film = maker.finish();
            let peaks = film.frames.iter().filter(|frame| frame[1].queued == 1).count();
            assert_eq!(peaks, 1, "the peak of frame {peak}");
        }
    }

    #[test]
    fn each_frame_of_a_film_has_a_state_for_every_node() {
        let mut maker = FilmMaker::new(two_nodes());
        let moment = FilmMoment { sent: 1, queued: 2, ..FilmMoment::default() };
        maker.push(&[moment]);
        maker.push(&[moment; 3]);
        assert_eq!(maker.finish().frames, [vec![moment, FilmMoment::default()], vec![moment; 2]]);
    }
}
