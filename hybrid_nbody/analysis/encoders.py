"""Encoding a movie frame by frame: MP4 by ffmpeg, or GIF by Pillow."""

import shutil
import subprocess
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import IO

import numpy as np
from PIL import Image
from PIL.GifImagePlugin import getdata

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.views import Array

SUFFIXES = (".mp4", ".gif")

CODECS = (
    ("libx264", ("-preset", "veryfast", "-crf", "20")),
    ("libopenh264", ("-b:v", "4M")),
    ("mpeg4", ("-q:v", "3")),
)
"""Usable encoders of ffmpeg, the best first."""

MOST_HUNDREDTHS = 2**16 - 1
"""Longest time for which a GIF can show a picture, in hundredths of a second."""


def has_ffmpeg() -> bool:
    """Return whether ffmpeg is on the PATH."""
    return shutil.which("ffmpeg") is not None


class Encoder(ABC):
    """Writes a movie, frame by frame.

    Parameters
    ----------
    path : Path
        The file to write.
    size : tuple of int
        Width and height in pixels; both even.
    fps : float
        Frames a second.

    Raises
    ------
    OSError
        Here or in a method: the file cannot be written. Call `abandon` then.
    """

    @abstractmethod
    def add(self, pixels: Array) -> None:
        """Add a frame.

        Parameters
        ----------
        pixels : (height, width, 4) array of uint8
            Red, green, blue and transparency, which is ignored; the first row is the top. It is not
            kept.
        """

    @abstractmethod
    def close(self) -> None:
        """Finish the file."""

    @abstractmethod
    def abandon(self) -> None:
        """Stop writing; the file is useless."""


class Mp4(Encoder):
    """A movie that ffmpeg encodes while frames are drawn; parameters as of `Encoder`.

    Raises
    ------
    InputError
        ffmpeg has none of `CODECS`.
    """

    def __init__(self, path: Path, size: tuple[int, int], fps: float) -> None:
        # closed at the end; a pipe could fill up and block
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        command = _command(path, _codec(), size, fps)
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._errors
        )
        self._input: IO[bytes] = self._process.stdin  # type: ignore[assignment]  # a pipe

    def add(self, pixels: Array) -> None:
        """See `Encoder.add`."""
        try:
            self._input.write(np.ascontiguousarray(pixels).data)
        except OSError as error:
            raise OSError(self._complaint()) from error

    def close(self) -> None:
        """See `Encoder.close`."""
        with suppress(OSError):
            self._input.close()
        if self._process.wait():
            raise OSError(self._complaint())
        self._errors.close()

    def abandon(self) -> None:
        """See `Encoder.abandon`."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._input.close()
        self._errors.close()

    def _complaint(self) -> str:
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        return (
            "; ".join(line.strip() for line in lines if line.strip())[-200:]
            or f"ffmpeg ended with code {code}"
        )


def _command(path: Path, codec: Sequence[str], size: tuple[int, int], fps: float) -> list[str]:
    shape = f"{size[0]}x{size[1]}"
    source = f"-f rawvideo -pix_fmt rgba -s {shape} -r {fps:g} -i - -an".split()
    target = ["-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4"]
    return ["ffmpeg", "-loglevel", "error", "-y", *source, "-c:v", *codec, *target, f"file:{path}"]


def _codec() -> tuple[str, ...]:
    """Return the name of the best available encoder, and its options."""
    listed = subprocess.run(
        ["ffmpeg", "-hide_banner", "-encoders"],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    ).stdout
    for codec, options in CODECS:
        if f" {codec} " in listed:
            return codec, *options
    names = ", ".join(codec for codec, _ in CODECS)
    raise InputError(
        f"this ffmpeg has none of the encoders {names}; write a .gif instead of an .mp4"
    )


class Gif(Encoder):
    """A movie as a repeating GIF; parameters as of `Encoder`."""

    def __init__(self, path: Path, size: tuple[int, int], fps: float) -> None:
        # A GIF counts hundredths of a second, and viewers slow down what is shorter than two of
        # them.
        self._hundredths = min(max(2, round(100 / fps)), MOST_HUNDREDTHS)
        screen = b"".join(side.to_bytes(2, "little") for side in size) + b"\x70\x00\x00"
        self._file = open(path, "wb")  # noqa: SIM115 - closed at the end
        self._file.write(b"GIF89a" + screen + b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")

    def add(self, pixels: Array) -> None:
        """See `Encoder.add`."""
        picture = Image.fromarray(np.ascontiguousarray(pixels[..., :3])).quantize(
            256, Image.Quantize.FASTOCTREE
        )
        self._file.writelines(
            getdata(picture, duration=10 * self._hundredths, include_color_table=True)
        )

    def close(self) -> None:
        """See `Encoder.close`."""
        self._file.write(b";")
        self._file.close()

    def abandon(self) -> None:
        """See `Encoder.abandon`."""
        with suppress(OSError):
            self._file.close()


def new_encoder(path: Path, size: tuple[int, int], fps: float) -> Encoder:
    """Return the encoder for a file by its ending, one of `SUFFIXES`; parameters as `Encoder`."""
    if path.suffix.lower() == ".gif":
        return Gif(path, size, fps)
    return Mp4(path, size, fps)
