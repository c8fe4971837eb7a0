"""The look of a movie: its size, colours, plane and camera, as a person writes them."""

import difflib
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from hybrid_nbody.errors import InputError
from hybrid_nbody.files.views import Array

SMALLEST = 64
LARGEST = 7680
"""Pixels along a side."""

Plane = tuple[int, int]
"""The two axes of space that are seen, across and up."""


@dataclass(frozen=True)
class Camera:
    """A direction from which bodies are seen, infinitely far away.

    Attributes
    ----------
    azimuth : float
        Angle about z, in degrees; from 0, x points to the camera.
    elevation : float
        Angle above the x-y plane, in degrees.
    turn : float
        Degrees about z that the camera goes during a movie.
    """

    azimuth: float
    elevation: float
    turn: float = 0.0

    def axes(self, share: float) -> Array:
        """Return the directions across, up and to the camera, as columns: (3, 3) float64.

        Parameters
        ----------
        share : float
            How much of the movie is over, from 0 to 1.
        """
        azimuth = math.radians(self.azimuth + self.turn * share)
        elevation = math.radians(self.elevation)
        across = (-math.sin(azimuth), math.cos(azimuth), 0.0)
        outward = np.array([math.cos(azimuth), math.sin(azimuth), 0.0])
        vertical = np.array([0.0, 0.0, 1.0])
        up = math.cos(elevation) * vertical - math.sin(elevation) * outward
        towards = math.sin(elevation) * vertical + math.cos(elevation) * outward
        return np.column_stack([across, up, towards])


@dataclass(frozen=True)
class Look:
    """The look of a movie; None leaves a choice to its kind.

    Attributes
    ----------
    size : tuple of int, optional
        Width and height in pixels, both even.
    colormap : str, optional
        One of matplotlib's.
    plane : tuple of int, optional
        The axes of space across and up.
    range : tuple of float, optional
        The lowest and the highest value of the scale of colours.
    camera : Camera, optional
        Instead of a plane.
    """

    size: tuple[int, int] | None = None
    colormap: str | None = None
    plane: Plane | None = None
    range: tuple[float, float] | None = None
    camera: Camera | None = None


USUAL = Look()
"""What each kind of movie shows if nothing is asked for."""


def look_of(
    size: str | None = None,
    colormap: str | None = None,
    plane: str | None = None,
    range: str | None = None,
    camera: str | None = None,
) -> Look:
    """Return a look from the texts of the command line.

    Parameters
    ----------
    size : str, optional
        Such as ``1280x720``.
    colormap : str, optional
        Such as ``magma``.
    plane : str, optional
        Such as ``xz``.
    range : str, optional
        Such as ``0,5``.
    camera : str, optional
        Azimuth and elevation in degrees, such as ``30,20``; ``30,20,360`` turns it.

    Raises
    ------
    InputError
        A text is none of these.
    """
    if plane is not None and camera is not None:
        raise InputError("--plane and --camera: give one of them")
    return Look(
        None if size is None else _size(size),
        None if colormap is None else _colormap(colormap),
        None if plane is None else _plane(plane),
        None if range is None else _range(range),
        None if camera is None else _camera(camera),
    )


def _size(text: str) -> tuple[int, int]:
    found = re.fullmatch(r"(\d+)x(\d+)", text)
    width, height = (int(found[1]), int(found[2])) if found else (0, 0)
    if not all(SMALLEST <= side <= LARGEST and side % 2 == 0 for side in (width, height)):
        raise InputError(
            f"--size {text}: must be WIDTHxHEIGHT in pixels, such as 1280x720, both even and from "
            f"{SMALLEST} to {LARGEST}"
        )
    return width, height


def _colormap(name: str) -> str:
    from matplotlib import colormaps

    if name not in colormaps:
        near = difflib.get_close_matches(name, colormaps, 1)
        hint = f"did you mean '{near[0]}'?" if near else "viridis, magma and gray are some"
        raise InputError(f"--colormap {name}: matplotlib has no colour map of this name; {hint}")
    return name


def _plane(text: str) -> Plane:
    if not re.fullmatch(r"[xyz]{2}", text) or text[0] == text[1]:
        raise InputError(f"--plane {text}: must be two axes, across and up: xy, xz, yz, …")
    return "xyz".index(text[0]), "xyz".index(text[1])


def _range(text: str) -> tuple[float, float]:
    limits = _numbers(text)
    if len(limits) != 2 or not limits[0] < limits[1]:
        raise InputError(
            f"--range {text}: must be LOW,HIGH with LOW below HIGH, such as 0,5; a negative LOW "
            "needs an equals sign, as in --range=-1,1"
        )
    return limits[0], limits[1]


def _camera(text: str) -> Camera:
    angles = _numbers(text)
    if len(angles) not in (2, 3) or abs(angles[1]) > 90:
        raise InputError(
            f"--camera {text}: must be AZIMUTH,ELEVATION or AZIMUTH,ELEVATION,TURN in degrees, the "
            "elevation from -90 to 90, such as 30,20 or 30,20,360"
        )
    return Camera(*angles)


def _numbers(text: str) -> Sequence[float]:
    """Return the finite numbers of a text with commas; none if something else is in it."""
    try:
        found = [float(part) for part in text.split(",")]
    except ValueError:
        return ()
    return found if all(map(math.isfinite, found)) else ()
