"""The report of a run: one HTML page that holds everything and loads nothing, to be opened by double click.

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

from hybrid_nbody.analysis.info import last_values
from hybrid_nbody.analysis.plots import drawable, parts_of, reasons, say_what_is_left_out
from hybrid_nbody.analysis.presentation import Figures, PresentedModel, presented
from hybrid_nbody.analysis.style import our_look
from hybrid_nbody.files.atomic import output_path, write_whole
from hybrid_nbody.files.log import read_log
from hybrid_nbody.files.run import open_run
from hybrid_nbody.progress import counted, counter

FILE_NAME = "report.html"
DPI = 110

VIEW = """\
<canvas id="view"></canvas>
<p class="controls"><button id="play">Play</button><input type="range" id="frame" min="0" step="1" aria-label="frame">\
<span id="clock"></span></p>
<p class="quiet">$caption Drag to turn, wheel to zoom, double click to go back.</p>
<script type="application/json" id="scene">$scene</script>
<script>
$script</script>"""


def make_report(
    path, output=None, say=None, progress=None, *, models: Mapping[str, PresentedModel]
) -> Path:
    """Write the report of a run.

    Parameters
    ----------
    path : str or Path
        The run's directory or its trajectory; the run may still be going on.
    output : str or Path, optional
        A file ending in .html, or a directory. By default ``report.html`` in the run's directory.
    say : callable, optional
        Takes a line on everything that is left out, and why.
    progress : callable, optional
        Called with the number of parts done, and to be done, after each: after each frame of the
        view in space, and as in `plots.plot_run`.
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
        figures = model.figures
        found = reasons(run, figures.pictures)
        chosen = [figures.pictures[kind] for kind in drawable(found)]
        step = counter(progress, len(_frames_of_view(run, figures)) + parts_of(run, chosen))
        sections = [
            ("In space", _view(run, figures, say, step)),
            ("Diagnostics", _diagnostics(run, model.highlights, say)),
            ("Pictures", _pictures(run, chosen, found, say, step)),
            *_of_the_log(run, say),
            (
                "Configuration",
                f"<pre>{escape(str(run.attributes.get('config', 'not stored')))}</pre>",
            ),
        ]
        page = _page(run, [(name, text) for name, text in sections if text])
    write_whole(target, page.encode(), "report")
    return target


def _page(run, sections):
    text = "\n".join(f"<h2>{name}</h2>\n{content}" for name, content in sections)
    title = escape(run.title or f"A run of model {run.model}")
    template = Template((files(__package__) / "report.html").read_text())
    return template.substitute(title=title, summary=escape(_summary(run)), sections=text)


def _summary(run):
    version = run.attributes.get("program_version", "of unknown version")
    count = run.number_of_frames
    time = run.time
    span = f", time {time[0]:g} to {time[-1]:g}" if count else ""
    bodies = f"{run.number_of_bodies} bodies, " if run.number_of_bodies else ""
    return f"Model {run.model}, {bodies}{count} frames{span}; written by hybrid_nbody {version}."


# --- sections -------------------------------------------------------------------------------------


def _no_view(run, figures: Figures) -> str:
    """Say why there is no view in space; nothing where there is."""
    return figures.view.reason(run) if figures.view else "its model has none"


def _frames_of_view(run, figures: Figures) -> Sequence[int]:
    return () if figures.view is None or _no_view(run, figures) else figures.view.frames(run)


def _view(run, figures, say, step):
    reason = _no_view(run, figures)
    if reason:
        say(f"no view in space: {reason}")
        return ""
    scene = figures.view.data(run, step)
    script = (files(__package__) / "viewer.js").read_text()
    text = json.dumps(scene, separators=(",", ":")).replace("</", "<\\/")
    return Template(VIEW).substitute(caption=escape(scene["caption"]), scene=text, script=script)


def _diagnostics(run, highlights, say):
    if not run.diagnostics.number_of_rows:
        say("no table of diagnostics: the run holds none")
        return ""
    rows = [("", f"at time {run.diagnostics.time[-1]:g}", "units")]
    rows += [
        (name.replace("_", " "), text, run.units(f"diagnostics/{name}"))
        for name, text in last_values(run, highlights)
    ]
    return table(rows)


def table(rows) -> str:
    """Return rows of texts as a table; the second column is of numbers."""
    kinds = ("", ' class="number"', "")
    lines = [
        "".join(f"<td{kind}>{escape(cell)}</td>" for kind, cell in zip(kinds, row, strict=True))
        for row in rows
    ]
    return "<table>\n" + "\n".join(f"<tr>{line}</tr>" for line in lines) + "\n</table>"


def _pictures(run, pictures, found, say, step):
    say_what_is_left_out(found, say)
    return "\n".join(
        _picture(picture.draw(run, -1, step), picture.caption)
        for picture in counted(pictures, step)
    )


def _picture(figure, caption):
    found = io.BytesIO()
    figure.savefig(found, format="png", dpi=DPI)
    code = base64.b64encode(found.getvalue()).decode()
    alt = f'alt="{escape(caption)}"'
    return f'<figure><img {alt} src="data:image/png;base64,{code}"><figcaption>{escape(caption)}</figcaption></figure>'


def _of_the_log(run, say):
    """Return the sections on the machine and on the time, of the last part of the run that the log tells of."""
    log = read_log(run.path.parent / "log.txt")
    if not log.shares:
        reason = (
            log.reason or "the log has none, the run still goes on, or did not end in good order"
        )
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


def _time_table(shares):
    total = sum(seconds for _, seconds in shares) or 1.0
    rows = [
        f'<tr><td>{escape(name)}</td><td class="number">{seconds:.3f} s</td><td class="number">{seconds / total:.1%}'
        f'</td><td><span class="bar" style="width:{300 * seconds / total:.0f}px"></span></td></tr>'
        for name, seconds in shares
    ]
    rows.append(f'<tr><td>total</td><td class="number">{total:.3f} s</td></tr>')
    return "<table>\n" + "\n".join(rows) + "\n</table>"
