"""The page of a run while it goes on, served on this machine alone, to be read alone."""

import hashlib
import hmac
import json
import secrets
import sys
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from hybrid_nbody.analysis import report
from hybrid_nbody.analysis.damage import on_whole_frames
from hybrid_nbody.analysis.presentation import PresentedModel, presented
from hybrid_nbody.analysis.style import our_look
from hybrid_nbody.errors import HybridNBodyError, InputError
from hybrid_nbody.files.run import Run, find_trajectory, open_run
from hybrid_nbody.progress import no_step

HOST = "127.0.0.1"

PAUSE = 2.0
"""Seconds between two questions of a page for news."""

POLICY = f"{report.POLICY}; connect-src 'self'"

NOTE = "Live: the view and the diagnostics follow the run. Reload for new pictures."

HTML = "text/html; charset=utf-8"
TEXT = "text/plain; charset=utf-8"
JSON = "application/json"


@dataclass
class Watched:
    """A run that is looked at again and again.

    Attributes
    ----------
    path : Path
        The run's trajectory.
    models : mapping of str to PresentedModel
        The models by name.
    pause : float, optional
        Seconds between two questions of a page.
    """

    path: Path
    models: Mapping[str, PresentedModel]
    pause: float = PAUSE
    _pages: dict[str, str] = field(default_factory=dict)
    _lock: threading.Lock = field(default_factory=threading.Lock)  # matplotlib's style is shared

    def page(self) -> str:
        """Return the page, drawn again where the run has grown."""
        with self._lock, open_run(self.path) as run, our_look():
            version = version_of(run)
            if version not in self._pages:
                self._pages = {version: on_whole_frames(lambda: self._drawn(run), run)}
            return self._pages[version]

    def news(self, known: str) -> dict[str, Any] | None:
        """Return what a page shows of a run that has grown since a version, None if it has not."""
        with self._lock, open_run(self.path) as run:
            version = version_of(run)
            if version == known:
                return None
            return on_whole_frames(lambda: self._news(run, version), run)

    def _drawn(self, run: Run) -> str:
        model = presented(self.models, run.model)
        sections = report.sections_of(run, model, say=lambda line: None)
        live = {"version": version_of(run), "note": NOTE, "pause": 1000 * self.pause}
        data = f'<script type="application/json" id="live">{report.in_html(live)}</script>'
        has_view = any(name == report.VIEW_NAME for name, _ in sections)
        parts = (*(report.SCRIPTS if has_view else ()), "live.js")
        return report.page_of(run, sections, report.script_of(parts, data), POLICY, NOTE)

    def _news(self, run: Run, version: str) -> dict[str, Any]:
        model = presented(self.models, run.model)
        view = model.figures.view
        has_view = view is not None and not view.reason(run)
        has_rows = run.diagnostics.number_of_rows > 0
        return {
            "version": version,
            "summary": report.summary_of(run),
            "diagnostics": report.last_diagnostics(run, model.highlights) if has_rows else "",
            "scene": view.data(run, no_step) if view is not None and has_view else None,
        }


def version_of(run: Run) -> str:
    """Return a text that changes when an open run has grown, or another one is in its place."""
    which = hashlib.sha256(repr(sorted(run.attributes.items())).encode()).hexdigest()[:16]
    return f"{run.number_of_frames}-{run.diagnostics.number_of_rows}-{which}"


class Server(ThreadingHTTPServer):
    """Serves the page of a run to readers who know its token.

    Parameters
    ----------
    watched : Watched
        The run.
    port : int, optional
        0 takes a free one.

    Raises
    ------
    InputError
        The port is taken, or not allowed.
    """

    daemon_threads = True

    def __init__(self, watched: Watched, port: int = 0) -> None:
        self.watched = watched
        self.token = secrets.token_urlsafe(16)
        try:
            super().__init__((HOST, port), Handler)
        except (OSError, OverflowError) as error:
            reason = getattr(error, "strerror", None) or error
            raise InputError(
                f"--port {port}: cannot be used ({reason}); take another, or leave it out"
            ) from error
        self.hosts = {f"{name}:{self.server_port}" for name in (HOST, "localhost")}

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of a reader who has gone away."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    @property
    def address(self) -> str:
        """Return the address of the page, with the token."""
        return f"http://{HOST}:{self.server_port}/?token={self.token}"


class Handler(BaseHTTPRequestHandler):
    """Answers one question; there are only two, the page and its news."""

    server: Server
    server_version = "hybrid_nbody"
    sys_version = ""

    def do_GET(self) -> None:
        """Answer with the page, with news, or with why not."""
        try:
            where = urlsplit(self.path)
        except ValueError:
            self._answer(HTTPStatus.BAD_REQUEST, TEXT, "this is no address\n")
            return
        if not self._is_known(where):
            self._answer(HTTPStatus.FORBIDDEN, TEXT, "open the address that watch has printed\n")
            return
        try:
            self._serve(where)
        except HybridNBodyError as error:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, TEXT, f"{error}\n")

    def _is_known(self, where: SplitResult) -> bool:
        """Return whether a reader knows the token, and asks this machine under its own name."""
        token = parse_qs(where.query).get("token", [""])[0]
        knows = hmac.compare_digest(token.encode(), self.server.token.encode())
        return knows and self.headers.get("Host", "") in self.server.hosts

    def _serve(self, where: SplitResult) -> None:
        if where.path == "/":
            self._answer(HTTPStatus.OK, HTML, self.server.watched.page())
        elif where.path == "/state":
            known = parse_qs(where.query).get("version", [""])[0]
            news = self.server.watched.news(known)
            if news is None:
                self._answer(HTTPStatus.NO_CONTENT, JSON, "")
            else:
                self._answer(HTTPStatus.OK, JSON, json.dumps(news))
        else:
            self._answer(HTTPStatus.NOT_FOUND, TEXT, "there is only one page\n")

    def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
        contents = text.encode()
        self.send_response(status)
        headers = {
            "Content-Type": kind,
            "Content-Length": str(len(contents)),
            "Cache-Control": "no-store",
            "Referrer-Policy": "no-referrer",
            "X-Content-Type-Options": "nosniff",
            "X-Frame-Options": "DENY",
        }
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(contents)

    def log_message(self, format: str, *arguments: object) -> None:
        """Say nothing of each question."""


def server_of(
    path: str | Path,
    port: int = 0,
    pause: float = PAUSE,
    *,
    models: Mapping[str, PresentedModel],
) -> Server:
    """Return what serves the page of a run; call ``serve_forever()``.

    Parameters
    ----------
    path : str or Path
        The run's directory or its trajectory; the run may still be going on.
    port : int, optional
        Of 127.0.0.1; 0 takes a free one.
    pause : float, optional
        Seconds between two questions of a page for news.
    models : mapping of str to PresentedModel
        The models by name.

    Raises
    ------
    InputError
        There is no such run, or the port cannot be used.
    FileError
        The run cannot be read.
    """
    trajectory = find_trajectory(path)
    with open_run(trajectory):
        pass  # what cannot be read is refused at once
    return Server(Watched(trajectory, models, pause), port)
