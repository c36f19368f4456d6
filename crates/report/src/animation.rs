//! A film of a mesh as an animated GIF.

use std::collections::HashMap;
use std::io::{self, Write};

use coapace_run::measured::Film;
use gif::{Encoder, Frame, Repeat};

use super::drawing::Scene;
use super::export::{parse, pixels};
use super::parallel::each;

/// The time from one picture to the next, in hundredths of a second.
const DELAY: u16 = 10;
/// The number of pictures that are drawn at the same time. The number limits the memory for them.
const CHUNK: usize = 32;
/// The number of pictures from which the palette is taken.
const SAMPLES: usize = 12;
/// The index in the palette for a pixel that has not changed since the picture before.
const UNCHANGED: u8 = 255;

/// Writes `film` as an animated GIF that repeats for ever, ten frames of the film a second. `title` is above the picture.
///
/// # Errors
/// Returns an error for a film without nodes or frames, and the errors of `out`.
pub fn write_film_gif(film: &Film, title: &str, out: impl Write) -> io::Result<()> {
    let scene =
        Scene::new(film, title).ok_or_else(|| io::Error::other("the film has no nodes or no frames"))?;
    let draw = |moment: usize| -> io::Result<(u16, u16, Vec<[u8; 3]>)> {
        let picture = pixels(&parse(&scene.svg(moment))?, 1.0)?;
        let colours =
            picture.pixels().iter().map(|pixel| [pixel.red(), pixel.green(), pixel.blue()]).collect();
        Ok((picture.width() as u16, picture.height() as u16, colours))
    };
    // Not below 0: a film without frames has no scene.
    let last = film.frames.len() - 1;
    // One palette for all frames, from samples of the whole film. Palettes of single frames take more bytes, and flicker.
    let moments: Vec<usize> = (0..SAMPLES).map(|i| last * i / (SAMPLES - 1)).collect();
    let samples = each(&moments, |moment| draw(*moment))?;
    let (width, height, _) = samples[0];
    let mut palette = Palette::of(samples.iter().map(|(_, _, colours)| &colours[..]));
    let mut encoder = Encoder::new(out, width, height, &palette.bytes()).map_err(io::Error::other)?;
    encoder.set_repeat(Repeat::Infinite).map_err(io::Error::other)?;

    let mut before: Vec<u8> = Vec::new();
    let moments: Vec<usize> = (0..=last).collect();
    // Pictures of a chunk are drawn in parallel. The whole film would not fit into memory.
    for chunk in moments.chunks(CHUNK) {
        for (_, _, colours) in each(chunk, |moment| draw(*moment))? {
            let now = palette.indices(&colours);
            let changed = now
                .iter()
                .enumerate()
                // Unchanged pixels are transparent, which compresses well: most of a picture is the same.
                .map(|(place, &index)| if before.get(place) == Some(&index) { UNCHANGED } else { index });
            let frame = Frame {
                width,
                height,
                delay: DELAY,
                // By default the picture before is kept, which shows through transparent pixels.
                transparent: Some(UNCHANGED),
                buffer: changed.collect::<Vec<u8>>().into(),
                ..Frame::default()
            };
            encoder.write_frame(&frame).map_err(io::Error::other)?;
            before = now;
        }
    }
    Ok(())
}

/// Splits a picture into runs of pixels of one colour, so that a colour is looked up once a run.
fn runs(picture: &[[u8; 3]]) -> impl Iterator<Item = &[[u8; 3]]> {
    picture.chunk_by(|a, b| a == b)
}

/// The most common colours of the pictures. The pictures have few flat colours, so these are kept exactly.
struct Palette {
    colours: Vec<[u8; 3]>,
    known: HashMap<[u8; 3], u8>,
}

impl Palette {
    fn of<'a>(pictures: impl Iterator<Item = &'a [[u8; 3]]>) -> Self {
        let mut counts: HashMap<[u8; 3], usize> = HashMap::new();
        for run in pictures.flat_map(runs) {
            *counts.entry(run[0]).or_default() += run.len();
        }
        let mut counts: Vec<_> = counts.into_iter().collect();
        // Equally common colours are sorted by their values, so the file is always the same.
        counts.sort_unstable_by_key(|(colour, count)| (std::cmp::Reverse(*count), *colour));
        let colours: Vec<_> =
            // 255 colours: the last index means that a pixel has not changed.
            counts.into_iter().take(usize::from(UNCHANGED)).map(|(colour, _)| colour).collect();
        Self { colours, known: HashMap::new() }
    }

    /// Returns all 256 colours as the file has them: red, green and blue, a byte each.
    fn bytes(&self) -> Vec<u8> {
        let mut bytes: Vec<u8> = self.colours.iter().flatten().copied().collect();
        // A GIF needs a palette of a power of two. The colour of the transparent index is never seen.
        bytes.resize(3 * 256, 0);
        bytes
    }

    /// Returns the index of each pixel's colour.
    fn indices(&mut self, picture: &[[u8; 3]]) -> Vec<u8> {
        let mut indices = Vec::with_capacity(picture.len());
        for run in runs(picture) {
            indices.resize(indices.len() + run.len(), self.nearest(run[0]));
        }
        indices
    }

    fn nearest(&mut self, colour: [u8; 3]) -> u8 {
        let Self { colours, known } = self;
        *known.entry(colour).or_insert_with(|| {
            let far = |other: &[u8; 3]| {
                (0..3).map(|i| (i32::from(colour[i]) - i32::from(other[i])).pow(2)).sum::<i32>()
            };
            // A palette has at most 255 colours, so the place fits into a byte.
            (0..colours.len()).min_by_key(|&place| far(&colours[place])).unwrap_or(0) as u8
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use coapace_run::measured::{FilmMaker, FilmMoment, FilmNode, FilmRole};
    use coapace_sim::Position;

    #[test]
    fn a_film_is_a_gif_with_a_picture_for_each_frame() {
        let node = |role, name: &str| FilmNode { role, name: name.into() };
        let nodes = vec![node(FilmRole::Root, "root"), node(FilmRole::Client, "client")];
        let mut maker = FilmMaker::new(Film { step_s: 1.0, queue_frames: 8, nodes, ..Film::default() });
        for sent in 0..7_u64 {
            let moment = |x: f64, parent| FilmMoment {
                position: Position { x, y: 0.0 },
                parent,
                sent,
                queued: sent as u32,
                ..FilmMoment::default()
            };
            maker.push(&[moment(0.0, None), moment(10.0 + sent as f64, Some(0))]);
        }
        let mut bytes = Vec::new();
        write_film_gif(&maker.finish(), "mesh <cocoa>", &mut bytes).unwrap();
        let mut decoder = gif::DecodeOptions::new().read_info(bytes.as_slice()).unwrap();
        let mut frames = 0;
        while decoder.read_next_frame().unwrap().is_some() {
            frames += 1;
        }
        assert_eq!(frames, 7);
        assert!(write_film_gif(&Film::default(), "", Vec::new()).is_err());
    }
}
