"""The report of a run: one HTML page that contains everything and loads nothing.

Frames are read one at a time; of the view in space the page holds a bounded number of frames,
points and triangles.
"""

import base64
import io
import json
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from string import Template

from matplotlib.figure import Figure

from hybrid_nbody.analysis import page
from hybrid_nbody.analysis.damage import on_whole_frames
from hybrid_nbody.analysis.excess import each_once
from hybrid_nbody.analysis.info import last_values
from hybrid_nbody.analysis.plots import drawable, parts_of, reasons, say_what_is_left_out
from hybrid_nbody.analysis.presentation import Figures, Picture, PresentedModel, Say, presented
from hybrid_nbody.analysis.style import our_look
from hybrid_nbody.files.atomic import output_path, write_whole
from hybrid_nbody.files.log import Log, read_log
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.progress import OnProgress, Step, counted, counter

FILE_NAME = "report.html"
DPI = 110

VIEW_NAME = "3D view"

VIEW = """\
<div class="space"><canvas id="view" tabindex="0" aria-label="the run in space"></canvas>\
<canvas id="over"></canvas><ul id="legend"></ul></div>
<p class="controls"><button id="play">Play</button><button id="trails">Trails</button>\
<input type="range" id="frame" min="0" step="1" aria-label="frame"><span id="clock"></span></p>
<p class="quiet">$caption Drag to rotate, with Shift or two fingers to move; scroll or pinch to
zoom; double-click to reset. Keys, after a click: arrows, with Shift too; + and - zoom, 0 resets,
space plays, comma and full stop step, T shows trails.</p>
<script type="application/json" id="scene">$scene</script>"""

SCRIPTS = ("scene.js", "drawing.js", "hand.js")
"""The parts of the script of the view, in order."""

POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
"""What a page may load: nothing but what it contains."""


def make_report(
    path: str | Path,
    output: str | Path | None = None,
    say: Say | None = None,
    progress: OnProgress | None = None,
    *,
    models: Mapping[str, PresentedModel],
) -> Path:
    """Write the report of a run.

    Parameters
    ----------
    path : str or Path
        The run's directory or its trajectory; the run may still be going on.
    output : str or Path, optional
        A file ending in .html, or a directory. By default ``report.html`` in the run's directory.
    say : callable, optional
        Takes a line about each part that is left out, and why.
    progress : callable, optional
        Called with the numbers of parts done and of all parts, after each frame of the view in
        space and as in `plots.plot_run`.
    models : mapping of str to PresentedModel
        The models by name.

    Returns
    -------
    Path
        The file written.

    Raises
    ------
    InputError
        There is no such run, or `output` is no HTML file.
    FileError
        The run cannot be read or the report cannot be written.
    """
    say = say or (lambda line: None)
    with open_run(path) as run, our_look():
        folder = Path(output) if output is not None else run.path.parent
        target = output_path("report", folder, FILE_NAME, (".html", ".htm"))
        model = presented(models, run.model)
        text = on_whole_frames(lambda: _drawn(run, model, say, progress), run)
    write_whole(target, text.encode(), "report")
    return target


def _drawn(run: Run, model: PresentedModel, say: Say, progress: OnProgress | None) -> str:
    """Return the page of a file."""
    sections = sections_of(run, model, say, progress)
    has_view = any(name == VIEW_NAME for name, _ in sections)
    return page_of(run, sections, script_of(SCRIPTS if has_view else ()))


def sections_of(
    run: Run, model: PresentedModel, say: Say, progress: OnProgress | None = None
) -> list[tuple[str, str]]:
    """Return names and contents of the sections of a page that are not empty."""
    figures = model.figures
    found = reasons(run, figures.pictures)
    chosen = [figures.pictures[kind] for kind in drawable(found)]
    step = counter(progress, len(_frames_of_view(run, figures)) + parts_of(run, chosen))
    log = read_log(run.path.parent / "log.txt")
    sections = [
        ("Warnings", _items(each_once(log.warnings))),
        (VIEW_NAME, _view(run, figures, say, step)),
        ("Diagnostics", _diagnostics(run, model.highlights, say)),
        ("Pictures", _pictures(run, chosen, found, say, step)),
        *_of_the_log(run, log, say),
        (
            "Configuration",
            f"<pre>{escape(str(run.attributes.get('config', 'not stored')))}</pre>",
        ),
    ]
    return [(name, text) for name, text in sections if text]


def script_of(parts: Sequence[str], data: str = "") -> str:
    """Return the script of a page: `data` in HTML, and parts that share what they define."""
    if not parts:
        return ""
    text = "\n".join((files(page) / part).read_text() for part in parts)
    return f'{data}<script>\n"use strict";\n(function () {{\n{text}}})();\n</script>\n'


def page_of(
    run: Run,
    sections: Sequence[tuple[str, str]],
    script: str,
    policy: str = POLICY,
    note: str = "",
) -> str:
    """Return a page of some sections, with a note above them if there is one."""
    text = "\n".join(f"<h2>{name}</h2>\n{content}" for name, content in sections)
    title = escape(run.title or f"A run of model {run.model}")
    template = Template((files(page) / "report.html").read_text())
    return template.substitute(
        title=title,
        summary=escape(summary_of(run)),
        sections=text,
        script=script,
        policy=policy,
        note=f'<p class="quiet" id="state">{escape(note)}</p>\n' if note else "",
    )


def summary_of(run: Run) -> str:
    """Return what a run is and how far it is, in a sentence."""
    version = run.attributes.get("program_version", "of unknown version")
    count = run.number_of_frames
    time = run.time
    span = f", time {time[0]:g} to {time[-1]:g}" if count else ""
    bodies = f"{run.number_of_bodies} bodies, " if run.number_of_bodies else ""
    return f"Model {run.model}, {bodies}{count} frames{span}; written by hybrid_nbody {version}."


# --- sections -------------------------------------------------------------------------------------


def _frames_of_view(run: Run, figures: Figures) -> Sequence[int]:
    view = figures.view
    return () if view is None or view.reason(run) else view.frames(run)


def _view(run: Run, figures: Figures, say: Say, step: Step) -> str:
    view = figures.view
    if view is None or view.reason(run):
        reason = "its model has none" if view is None else view.reason(run)
        say(f"no view in space: {reason}")
        return ""
    scene = view.data(run, step)
    return Template(VIEW).substitute(caption=escape(scene["caption"]), scene=in_html(scene))


def in_html(data: object) -> str:
    """Return data as JSON that may stand in an element of a page."""
    return json.dumps(data, separators=(",", ":")).replace("</", "<\\/")


def _diagnostics(run: Run, highlights: Sequence[str], say: Say) -> str:
    if not run.diagnostics.number_of_rows:
        say("no table of diagnostics: the run holds none")
        return ""
    return f'<div id="diagnostics">{last_diagnostics(run, highlights)}</div>'


def last_diagnostics(run: Run, highlights: Sequence[str]) -> str:
    """Return the last row of diagnostics as an HTML table."""
    rows = [("", f"at time {run.diagnostics.time[-1]:g}", "units")]
    rows += [
        (name.replace("_", " "), text, run.units(f"diagnostics/{name}"))
        for name, text in last_values(run, highlights)
    ]
    return table(rows)


def table(rows: Sequence[tuple[str, str, str]]) -> str:
    """Return rows of texts as an HTML table, whose second column holds numbers."""
    classes = ("", ' class="number"', "")
    lines = [
        "".join(f"<td{name}>{escape(cell)}</td>" for name, cell in zip(classes, row, strict=True))
        for row in rows
    ]
    return _in_table([f"<tr>{line}</tr>" for line in lines])


def _in_table(rows: Sequence[str]) -> str:
    """Return rows of HTML as a table, which scrolls by itself where it is too wide."""
    lines = "\n".join(rows)
    return f'<div class="wide"><table>\n{lines}\n</table></div>'


def _pictures(
    run: Run, pictures: Sequence[Picture], found: Mapping[str, str], say: Say, step: Step
) -> str:
    say_what_is_left_out(found, say)
    return "\n".join(
        _picture(picture.draw(run, -1, step), picture.caption)
        for picture in counted(pictures, step)
    )


def _picture(figure: Figure, caption: str) -> str:
    found = io.BytesIO()
    figure.savefig(found, format="png", dpi=DPI)
    code = base64.b64encode(found.getvalue()).decode()
    text = escape(caption)
    image = f'<img alt="{text}" src="data:image/png;base64,{code}">'
    return f"<figure>{image}<figcaption>{text}</figcaption></figure>"


def _items(texts: Sequence[str]) -> str:
    """Return texts as an HTML list; empty without any."""
    items = "\n".join(f"<li>{escape(text)}</li>" for text in texts)
    return f"<ul>\n{items}\n</ul>" if texts else ""


def _of_the_log(run: Run, log: Log, say: Say) -> list[tuple[str, str]]:
    """Return the sections on the machine and on the time, from the last start in the log."""
    if not log.shares:
        reason = log.reason or "the log has none; the run is still running, or was killed"
        say(f"no table of where the time went: {reason}")
    known = {
        name: str(run.attributes[name]) for name in ("backend", "ranks") if name in run.attributes
    }
    machine = table([(name, "", text) for name, text in known.items()]) if known else ""
    machine += f"<pre>{escape(chr(10).join(log.machine))}</pre>" if log.machine else ""
    return [
        ("Machine", machine),
        ("Where the time went", _time_table(log.shares) if log.shares else ""),
    ]


def _time_row(name: str, seconds: float, share: float) -> str:
    bar = f'<span class="bar" style="--share:{share:.3f}"></span>'
    cells = (
        f"<td>{escape(name)}</td>",
        f'<td class="number">{seconds:.3f} s</td>',
        f'<td class="number">{share:.1%}</td>',
        f"<td>{bar}</td>",
    )
    return f"<tr>{''.join(cells)}</tr>"


def _time_table(shares: Sequence[tuple[str, float]]) -> str:
    total = sum(seconds for _, seconds in shares) or 1.0
    rows = [_time_row(name, seconds, seconds / total) for name, seconds in shares]
    rows.append(f'<tr><td>total</td><td class="number">{total:.3f} s</td></tr>')
    return _in_table(rows)
