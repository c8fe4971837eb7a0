"""What a person asks for on the command line of a benchmark, checked before anything is measured or written."""

from hybrid_nbody.errors import InputError


def numbers(option: str, text: str, least: int = 1, most: int | None = None) -> list[int]:
    """Return the whole numbers of a list such as ``1024,4096``, each once, in the order given.

    Raises
    ------
    InputError
        If it is no such list, or a number is out of bounds.
    """
    bounds = f"at least {least}" + (f" and at most {most}" if most is not None else "")
    try:
        found = [int(word) for word in text.split(",")]
    except ValueError:
        found = []
    if not found or any(number < least or (most is not None and number > most) for number in found):
        raise InputError(f"{option}: must be whole numbers separated by commas, {bounds} (got '{text}')")
    return list(dict.fromkeys(found))


def sizes(arguments, default: list[int] | None = None) -> list[int] | None:
    """Return the numbers of bodies that ``--sizes`` asks for, or `default` if it was not given.

    Raises
    ------
    InputError
        If it is no list of numbers from 2 on.
    """
    return default if arguments.sizes is None else numbers("--sizes", arguments.sizes, least=2)


def number(option: str, text: str, least: int = 1) -> int:
    """Return a whole number.

    Raises
    ------
    InputError
        If it is none, or too small.
    """
    if not text.isdecimal() or int(text) < least:
        raise InputError(f"{option}: must be a whole number, at least {least} (got '{text}')")
    return int(text)


def words(option: str, text: str, allowed) -> list[str]:
    """Return the words of a list such as ``A,C``, each once, in the order given.

    Raises
    ------
    InputError
        If one is not allowed.
    """
    found = text.split(",")
    unknown = [word for word in found if word not in allowed]
    if unknown:
        raise InputError(f"{option}: allowed are {', '.join(allowed)}, separated by commas (got '{text}')")
    return list(dict.fromkeys(found))
