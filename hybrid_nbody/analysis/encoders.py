"""Writing the frames of a movie one after another: MP4 through ffmpeg, or GIF by Pillow. None of them is kept."""

import shutil
import subprocess
import tempfile
from contextlib import suppress
from pathlib import Path

import numpy as np
from PIL import Image
from PIL.GifImagePlugin import getdata

from hybrid_nbody.errors import FileError, InputError

SUFFIXES = (".mp4", ".gif")

CODECS = (("libx264", ("-preset", "veryfast", "-crf", "20")), ("libopenh264", ("-b:v", "4M")), ("mpeg4", ("-q:v", "3")))
"""The encoders of ffmpeg that will do, the best first."""


def has_ffmpeg() -> bool:
    """Whether ffmpeg is on the PATH."""
    return shutil.which("ffmpeg") is not None


MOST_HUNDREDTHS = 2**16 - 1
"""Of a second that a GIF can show a picture for."""


class Encoder:
    """Writes a movie beside its place, and puts it there when it is whole.

    Parameters
    ----------
    path : Path
        Where the movie will be.
    """

    def __init__(self, path):
        self.path = path
        self.partial = path.with_name(f".{path.name}.part")

    def add(self, pixels) -> None:
        """Add a frame: (height, width, 4) uint8, red, green, blue and what is not looked at."""
        raise NotImplementedError

    def close(self) -> None:
        """Finish the file.

        Raises
        ------
        FileError
            It could not be written.
        """
        try:
            self._finish()
            self.partial.replace(self.path)
        except OSError as error:
            raise self.fault(error.strerror or error) from error

    def abandon(self) -> None:
        """Leave no file, but the one of before."""
        self._end()
        with suppress(OSError):
            self.partial.unlink(missing_ok=True)

    def fault(self, why) -> FileError:
        """Return the error that says why the movie cannot be written."""
        return FileError(f"{self.path}: cannot write the movie ({why})")


class Mp4(Encoder):
    """A movie that ffmpeg encodes while frames are drawn.

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
    InputError
        There is no ffmpeg, or none of its encoders will do.
    """

    def __init__(self, path, size, fps):
        super().__init__(path)
        if not has_ffmpeg():
            raise InputError(f"{path}: an MP4 needs ffmpeg, which is not on the PATH; install it, or write a .gif")
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed at the end; a pipe could fill up and block
        command = _command(self.partial, _codec(path), size, fps)
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=self._errors)

    def add(self, pixels):
        try:
            self._process.stdin.write(np.ascontiguousarray(pixels))
        except OSError as error:
            raise self.fault(self._complaint()) from error

    def _finish(self):
        with suppress(OSError):
            self._process.stdin.close()
        if self._process.wait():
            raise self.fault(self._complaint())
        self._errors.close()

    def _end(self):
        self._process.kill()
        self._process.wait()
        with suppress(OSError):
            self._process.stdin.close()
        self._errors.close()

    def _complaint(self):
        code = self._process.wait()
        self._errors.seek(0)
        lines = self._errors.read().decode("utf-8", "replace").split("\n")
        return "; ".join(line.strip() for line in lines if line.strip())[-200:] or f"ffmpeg ended with code {code}"


def _command(path, codec, size, fps):
    source = ["-f", "rawvideo", "-pix_fmt", "rgba", "-s", f"{size[0]}x{size[1]}", "-r", f"{fps:g}", "-i", "-"]
    target = ["-c:v", *codec, "-pix_fmt", "yuv420p", "-movflags", "+faststart", "-f", "mp4", str(path)]
    return ["ffmpeg", "-loglevel", "error", "-y", *source, "-an", *target]


def _codec(path):
    """Return the name of the best encoder there is, and its options."""
    listed = subprocess.run(
        ["ffmpeg", "-hide_banner", "-encoders"], capture_output=True, text=True, stdin=subprocess.DEVNULL
    ).stdout
    for codec, options in CODECS:
        if f" {codec} " in listed:
            return codec, *options
    names = ", ".join(codec for codec, _ in CODECS)
    raise InputError(f"{path}: this ffmpeg has none of the encoders {names}; write a .gif instead")


class Gif(Encoder):
    """A movie as a GIF that repeats; parameters as of `Mp4`.

    Raises
    ------
    FileError
        The file cannot be written.
    """

    def __init__(self, path, size, fps):
        super().__init__(path)
        # A GIF counts hundredths of a second, and viewers slow down what is shorter than two of them.
        self._hundredths = min(max(2, round(100 / fps)), MOST_HUNDREDTHS)
        screen = b"".join(side.to_bytes(2, "little") for side in size) + b"\x70\x00\x00"
        try:
            self._file = open(self.partial, "wb")  # noqa: SIM115 - closed at the end
        except OSError as error:
            raise self.fault(error.strerror or error) from error
        self._write(b"GIF89a" + screen + b"\x21\xff\x0bNETSCAPE2.0\x03\x01\x00\x00\x00")

    def add(self, pixels):
        picture = Image.fromarray(np.ascontiguousarray(pixels[..., :3])).quantize(256, Image.Quantize.FASTOCTREE)
        for piece in getdata(picture, duration=10 * self._hundredths, include_color_table=True):
            self._write(piece)

    def _finish(self):
        self._write(b";")
        self._file.close()

    def _end(self):
        with suppress(OSError):
            self._file.close()

    def _write(self, piece):
        try:
            self._file.write(piece)
        except OSError as error:
            raise self.fault(error.strerror or error) from error


def encoder_of(path):
    """Return the encoder for a file by its ending, one of `SUFFIXES`."""
    return {".mp4": Mp4, ".gif": Gif}[Path(path).suffix.lower()]
