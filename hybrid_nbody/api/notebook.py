"""What a notebook shows of a simulation: a bar while it runs, a picture of its state."""

import base64
import html
import io
import sys
import time
from typing import TYPE_CHECKING, Any

from hybrid_nbody.progress import Progress

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FIRST_SECONDS = 0.5
"""Runs that end sooner show no bar."""

DPI = 60
"""Of the picture of a state."""


def notebook() -> Any:
    """Return IPython's displays where a notebook runs this program; None elsewhere."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    return sys.modules["IPython.display"] if hasattr(shell, "kernel") else None


class NotebookProgress(Progress):
    """Progress as a bar below the cell of a notebook, redrawn in place.

    Parameters
    ----------
    what : str
        See `Progress`.
    displays : module
        ``IPython.display``.
    """

    def __init__(self, what: str, displays: Any) -> None:
        super().__init__(what)
        self._displays = displays
        self._shown: Any = None

    def update(self, done: int, total: int, details: str = "") -> None:
        """See `Progress.update`."""
        if self._shown is None and time.monotonic() < self._started + FIRST_SECONDS:
            return
        bar = self._displays.HTML(self._bar(done, total, details))
        if self._shown is None:
            self._shown = self._displays.display(bar, display_id=True)
        else:
            self._shown.update(bar)

    def _bar(self, done: int, total: int, details: str) -> str:
        """Return the bar and a line of text."""
        now = done - self._first
        whole = max(total - self._first, 1)
        words = [f"{self.what} {done}/{total}", details, self.clock(done, total)]
        text = html.escape("  ".join(filter(None, words)))
        return f'<progress value="{now}" max="{whole}"></progress> {text}'


def picture_of(figure: "Figure", text: str) -> str:
    """Return a figure with a line of text, as HTML that needs no other file."""
    found = io.BytesIO()
    figure.savefig(found, format="png", dpi=DPI)
    data = base64.b64encode(found.getvalue()).decode("ascii")
    return f'<div>{html.escape(text)}</div><img src="data:image/png;base64,{data}">'
