// The film of a mesh, in the player of reports, which has a page of its own.
import { html, isDark } from "./charts.js";

const safe = (json) => json.replaceAll("<", "\\u003c");

/** Shows a film, the JSON of which is given, in the element. */
export async function showFilm(room, json, mechanism) {
  const player = await (await fetch("film.html")).text();
  const data = (id, text) => `<script type="application/json" id="${id}">${safe(text)}<\/script>`;
  const page = `<!doctype html><html lang="en"${isDark() ? ' data-theme="dark"' : ""}><head><meta charset="utf-8"><title>Film of ${mechanism.replace(/[<&]/g, "")}</title>
<link rel="stylesheet" href="style.css"><link rel="stylesheet" href="film.css"><style>body{overflow:hidden}:root{color-scheme:${isDark() ? "dark" : "light"}}</style></head><body><main style="padding:0">
<div class="film" id="film-player"><div class="film-choice" hidden><label>Mechanism <select id="film-mechanism"><option value="0">film</option></select></label>
<label>Condition <select id="film-title"><option value="0">–</option></select></label></div>${player}</div></main>
${data("films", '[{"m":0,"title":""}]')}${data("film-0", json)}<script src="film.js"><\/script></body></html>`;
  const frame = html("iframe", { title: `Film of the mesh with ${mechanism}`, srcdoc: page });
  frame.onload = () => {
    const { body } = frame.contentDocument;
    const fit = () => { frame.style.height = `${body.scrollHeight + 4}px`; };
    new ResizeObserver(fit).observe(body);
    fit();
  };
  room.replaceChildren(frame);
}
