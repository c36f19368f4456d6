//! Arguments on charts in files.

use std::path::{Path, PathBuf};

use clap::Args;
use coapace_report::{PlateSize, Plates};

#[derive(Debug, Args)]
pub(crate) struct FigureArguments {
    /// Write charts of the report into this directory as SVG, PDF and PNG. If there are several conditions, charts that compare
    /// them; if there is one, all charts
    #[arg(id = "figures", long = "figures", value_name = "DIR")]
    dir: Option<PathBuf>,

    /// The charts that --figures writes, with commas between: names of charts, columns such as median_fct_s, or `all`
    #[arg(long, value_name = "CHART", value_delimiter = ',', requires = "figures")]
    charts: Vec<String>,

    /// The size of the charts of --figures: page, column (IEEE, 3.5 in), double (7.16 in) or slide (16:9)
    #[arg(long = "figure-size", value_name = "SIZE", requires = "figures")]
    size: Option<PlateSize>,

    /// Write the charts of --figures without titles, for papers that have captions
    #[arg(long, requires = "figures")]
    no_titles: bool,
}

impl FigureArguments {
    /// Returns the directory, if charts are to be written.
    pub(crate) fn dir(&self) -> Option<&Path> {
        self.dir.as_deref()
    }

    /// Returns which charts to write, with their size and titles.
    pub(crate) fn plates(&self) -> Plates {
        let (charts, size) = (self.charts.clone(), self.size.unwrap_or_default());
        Plates { charts, size, titles: !self.no_titles }
    }
}
