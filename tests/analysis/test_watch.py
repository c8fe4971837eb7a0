"""A run is watched over HTTP while it grows, by those who know the token; nothing is written."""

import http.client
import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from urllib.parse import urlsplit

import h5py
import numpy as np
import pytest
from support.browser import CHROMIUM, Browser
from support.written_runs import positions_of

from hybrid_nbody.analysis import report, watch
from hybrid_nbody.errors import FileError, InputError
from hybrid_nbody.files.run import Run, open_run
from hybrid_nbody.running.models import MODELS


@pytest.fixture
def served(write_run, monkeypatch):
    """Return a function that serves a run, written with some frames, and returns the server."""
    monkeypatch.setattr(report, "_pictures", lambda *_: "")  # they take long
    servers = []

    def start(frames=2):
        folder = write_run(frames=frames, bodies=4, rows=frames)
        server = watch.server_of(folder, pause=0.1, models=MODELS)
        threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def ask(server, path, *, token=True, method="GET", host=None):
    """Return status, headers and text of an answer; the path is sent as it is."""
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=20)
    mark = "&" if "?" in path else "?"
    address = f"{path}{mark}token={server.token}" if token else path
    connection.request(method, address, headers={"Host": host} if host else {})
    answer = connection.getresponse()
    found = (answer.status, dict(answer.getheaders()), answer.read().decode())
    connection.close()
    return found


def grow(folder, frames):
    """Add a frame and a row to a run, as the program would."""
    with h5py.File(folder / "trajectory.h5", "r+") as file:
        positions = positions_of(frames, 4)
        for name, values in (
            ("bodies/position", positions),
            ("bodies/velocity", -positions),
            ("step", 10 * np.arange(frames)),
            ("time", 0.5 * np.arange(frames)),
        ):
            file[name].resize(frames, axis=0)
            file[name][:] = values
        for data in file["diagnostics"].values():
            data.resize(frames, axis=0)
            data[-1] = 7


def test_the_page_is_that_of_the_report(served):
    status, headers, page = ask(served(), "/")
    assert (status, headers["Cache-Control"]) == (200, "no-store")
    assert "connect-src 'self'" in page and "2 frames, time 0 to 0.5" in page
    assert '<canvas id="view"' in page and watch.NOTE in page
    assert re.findall(r'(?:src|href)="(?!data:)[^"]*"|url\(|@import|https?://', page) == []


@pytest.mark.parametrize("path", ["/", "/state", "/?token=", "/?token=wrong", "/nothing"])
def test_without_the_token_nothing_is_told(served, path):
    status, _, text = ask(served(), path, token=False)
    assert (status, text) == (403, "open the address that watch has printed\n")


@pytest.mark.parametrize(
    "path",
    ["/trajectory.h5", "/../out/trajectory.h5", "/%2e%2e/%2e%2e/etc/passwd", "//etc/passwd", "/."],
)
def test_there_are_no_files(served, path):
    assert ask(served(), path)[0] == 404


def test_another_name_of_the_machine_is_refused(served):
    server = served()
    assert ask(server, "/state", host="somewhere.example")[0] == 403
    assert ask(server, "/state", host=f"localhost:{server.server_port}")[0] == 200


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE"])
def test_it_can_only_be_read(served, method):
    assert ask(served(), "/", method=method)[0] == 501


def test_an_address_that_is_none(served):
    assert ask(served(), "http://[", token=False, host="localhost")[0] == 400


def test_news_of_a_run_that_grows(served):
    server = served(frames=2)
    folder = server.watched.path.parent
    before = sorted(folder.iterdir())
    two = json.loads(ask(server, "/state")[2])["version"]
    assert ask(server, f"/state?version={two}")[::2] == (204, "")
    grow(folder, 3)
    status, _, text = ask(server, f"/state?version={two}")
    news = json.loads(text)
    assert (status, news["version"][:4], news["scene"]["times"]) == (200, "3-3-", [0, 0.5, 1])
    assert "3 frames" in news["summary"] and "at time 7" in news["diagnostics"]
    assert ask(server, f"/state?version={news['version']}")[0] == 204
    assert "3 frames" in ask(server, "/")[2]
    assert sorted(folder.iterdir()) == before


def test_another_run_of_as_many_frames_in_its_place_is_news(served, monkeypatch):
    server = served(frames=2)
    old = json.loads(ask(server, "/state")[2])["version"]
    attributes = dict(open_run(server.watched.path).attributes) | {"config": "another: one"}
    monkeypatch.setattr(Run, "attributes", property(lambda run: attributes))
    status, _, text = ask(server, f"/state?version={old}")
    assert (status, json.loads(text)["version"] != old) == (200, True)


def test_a_run_that_is_gone_is_said(served):
    server = served()
    server.watched.path.unlink()
    status, _, text = ask(server, "/state")
    assert status == 503 and "trajectory.h5" in text


def test_what_cannot_be_watched(served, in_folder):
    with pytest.raises(InputError, match="nothing: "):
        watch.server_of("nothing", models=MODELS)
    (in_folder / "trajectory.h5").write_text("something else")
    with pytest.raises(FileError, match="trajectory.h5"):
        watch.server_of(in_folder, models=MODELS)
    server = served()
    port = server.server_port
    with pytest.raises(InputError, match=f"--port {port}: cannot be used .*; take another"):
        watch.Server(server.watched, port)
    with pytest.raises(InputError, match="--port 70000: cannot be used"):
        watch.Server(server.watched, 70000)


def test_ctrl_c_ends_it_with_a_message(write_run):
    command = [sys.executable, "-m", "hybrid_nbody", "watch", str(write_run())]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ, **pipes) as process:
        address = urlsplit(process.stdout.readline())
        assert (address.hostname, address.query[:6]) == ("127.0.0.1", "token=")
        assert "Ctrl-C ends it" in process.stderr.readline()
        time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=20)
    assert (process.returncode, said) == (
        0,
        "\nhybrid_nbody: stopped watching; the run is not touched\n",
    )


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on the PATH")
def test_new_frames_appear_in_the_browser(served, tmp_path):
    server = served(frames=0)
    folder = server.watched.path.parent
    with Browser(tmp_path / "profile") as browser:
        tab = browser.open(server.address)
        assert tab.value("document.getElementById('view')") is None
        for frames in (1, 2, 3):  # the first reloads the page, the others do not
            grow(folder, frames)
            last = f"document.getElementById('view')?.dataset.frame === '{frames - 1}'"
            tab.wait_for(last)
        assert tab.value("document.getElementById('summary').textContent").count("3 frames") == 1
        assert tab.messages() == []
        home = f"http://127.0.0.1:{server.server_port}/"
        assert all(one.startswith((home, "data:")) for one in tab.requests())
