//! Text as HTML, and the chart library.

use std::fmt::Display;
use std::io;

/// Returns `text` as HTML text, or as the value of a quoted attribute.
pub(super) fn escape(text: &str) -> String {
    let mut html = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => html.push_str("&amp;"),
            '<' => html.push_str("&lt;"),
            '>' => html.push_str("&gt;"),
            '"' => html.push_str("&quot;"),
            '\'' => html.push_str("&#39;"),
            _ => html.push(character),
        }
    }
    html
}

/// Returns `text` as HTML text. Text between two backticks becomes code.
pub(super) fn coded(text: &str) -> String {
    let part = |(place, part): (usize, &str)| {
        // Escaped before the tags are added, which must stay tags.
        let part = escape(part);
        if place % 2 == 0 { part } else { format!("<code>{part}</code>") }
    };
    text.split('`').enumerate().map(part).collect()
}

/// Returns a table that scrolls where it is too wide.
pub(super) fn table(class: &str, head: &str, bodies: &str) -> String {
    format!(
        "<div class=\"scroll\"><table class=\"{class}\"><thead><tr>{head}</tr></thead>{bodies}</table></div>"
    )
}

/// Returns headings of columns.
pub(super) fn headings(names: impl IntoIterator<Item = impl Display>) -> String {
    let heading = |name| format!("<th scope=\"col\">{name}</th>");
    names.into_iter().map(heading).collect()
}

/// Returns headings that sort a table when the reader clicks on them, each with a smaller text below its name.
pub(super) fn sorting_headings<'a>(columns: impl IntoIterator<Item = (impl Display, &'a str)>) -> String {
    let button = |(name, below)| format!("<button type=\"button\">{name}<small>{below}</small></button>");
    headings(columns.into_iter().map(button))
}

/// Returns HTML that is hidden until the reader unfolds it by a click on the text `line`.
pub(super) fn folded(line: &str, html: &str) -> String {
    format!("<details><summary>{line}</summary>{html}</details>")
}

/// Writes a section with a title, a paragraph of `text` if there is any, and `html`.
pub(super) fn section(
    out: &mut impl io::Write,
    id: &str,
    title: &str,
    text: &str,
    html: &str,
) -> io::Result<()> {
    let text = if text.is_empty() { String::new() } else { format!("<p>{}</p>\n", unbroken(text)) };
    writeln!(out, "<section id=\"{id}\">\n<h2>{title}</h2>\n{text}{html}\n</section>")
}

/// Keeps a percent sign on the line of its number, by a no-break space.
pub(super) fn unbroken(text: &str) -> String {
    text.replace(" %", "\u{a0}%")
}

/// Returns a value as JSON for a script element: it has no `<`, so it cannot end the element.
pub(super) fn json_for_script(value: &impl serde::Serialize) -> serde_json::Result<String> {
    serde_json::to_string(value).map(|json| json.replace('<', "\\u003c"))
}

/// Returns the element in which the script draws a chart.
pub(super) fn plot(number: usize, height: usize) -> String {
    format!("<div class=\"plot\" data-panel=\"{number}\" style=\"height:{height}px\"></div>")
}

/// Buttons that save a chart. They are hidden until the script shows them.
pub(super) const SAVE: &str = "<span class=\"save\" hidden><button type=\"button\" data-save=\"svg\">SVG</button>\
    <button type=\"button\" data-save=\"png\">PNG</button></span>";

/// The source of plotly.js 3.0.1 with its cartesian charts: the file of the npm package plotly.js-cartesian-dist-min, unchanged.
pub(super) const PLOTLY: &str = include_str!("../vendor/plotly-cartesian.min.js");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn html_markup_in_names_is_escaped() {
        assert_eq!(escape(r#"<a b="c">&'"#), "&lt;a b=&quot;c&quot;&gt;&amp;&#39;");
    }

    #[test]
    fn json_in_a_page_cannot_close_its_script_element() {
        let json = json_for_script(&"</script><!--").unwrap();
        assert!(!json.contains('<'));
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), "</script><!--");
    }

    #[test]
    fn the_chart_library_of_the_page_is_plotly_only() {
        assert!(PLOTLY.contains("plotly.js (cartesian - minified) v3.0.1") && PLOTLY.len() > 1_000_000);
        assert!(!PLOTLY.contains("</script") && PLOTLY.len() < 1_400_000);
    }
}
