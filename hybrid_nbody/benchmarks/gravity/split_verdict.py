"""What the rows of ``bench split`` say: where the optimum should be, where it is, and whether auto finds it."""

from itertools import groupby

ALONE = "alone"
NEAR = "near"
EVERYWHERE = "everywhere"
AUTO = "auto"
"""What a row is: a device alone, a multiple of the predicted optimum, a given share, or the
program's own choice."""

CLAIMED = 0.1
"""The share of experiment E, which it calls hardly worthwhile."""

PROMISED = 0.98
"""Of the speed of the better device alone: what the choice of auto reaches at least."""


def of_problem(rows, row) -> list[dict]:
    """Return the rows of the same precision and number of bodies."""
    return [
        other
        for other in rows
        if (other["precision"], other["bodies"]) == (row["precision"], row["bodies"])
    ]


def alone(rows) -> tuple[float, float]:
    """Return the seconds of a force on the main device alone and on the CPU alone."""
    seconds = {row["share"]: row["median_s"] for row in rows if row["kind"] == ALONE}
    return seconds[0.0], seconds[1.0]


def optimum(main: float, cpu: float) -> float:
    """Return the share with which both devices need equally long: rate_cpu / (rate_cpu + rate_main).

    Parameters
    ----------
    main, cpu : float
        Seconds of a force on each device alone.
    """
    return main / (main + cpu)


def expected(share: float, main: float, cpu: float) -> float:
    """Return the seconds of a force if both devices work at the same time, each at its own rate."""
    return max((1 - share) * main, share * cpu)


def conclusions(rows) -> list[dict]:
    """Return what the rows say of each problem whose devices were both measured alone."""
    found = []
    for _, group in groupby(rows, key=lambda row: (row["precision"], row["bodies"])):
        group = list(group)
        if len([row for row in group if row["kind"] == ALONE]) == 2:
            found.append(_conclusion(group))
    return found


def _conclusion(rows):
    main, cpu = alone(rows)
    measured = [row for row in rows if row.get("median_s") and row["kind"] != AUTO]
    result = {"precision": rows[0]["precision"], "bodies": rows[0]["bodies"]}
    return (
        result
        | _predicted(rows[0]["bodies"], main, cpu)
        | _best(measured)
        | _claim(measured)
        | _auto(rows)
    )


def _predicted(bodies, main, cpu):
    """Return the rate of each device alone, and what should be the best share."""
    share = optimum(main, cpu)
    return {
        "main_rate": bodies**2 / main,
        "cpu_rate": bodies**2 / cpu,
        "predicted_share": share,
        "predicted_s": expected(share, main, cpu),
    }


def _best(measured):
    """Return the best share that was measured, against the better device alone."""
    best = min(measured, key=lambda row: row["median_s"])
    against = min(alone(measured)) / best["median_s"]
    return {"best_share": best["share"], "best_s": best["median_s"], "best_against_alone": against}


def _claim(measured):
    """Return what the claimed share gives, if it was measured."""
    claimed = next((row for row in measured if row["share"] == CLAIMED), None)
    if not claimed:
        return {}
    return {
        "claimed_share": CLAIMED,
        "claimed_against_main": alone(measured)[0] / claimed["median_s"],
    }


def _auto(rows):
    """Return what the program chose by itself, and whether that is as fast as promised, if it was measured."""
    auto = next((row for row in rows if row["kind"] == AUTO), None)
    if not auto:
        return {}
    return {
        "auto_share": auto["share"],
        "auto_s": auto["median_s"],
        "auto_against_alone": auto["against_alone"],
        "auto_keeps_promise": auto["against_alone"] >= PROMISED,
    }


def summary(rows) -> dict:
    """Return the conclusions for the JSON."""
    return {"conclusions": conclusions(rows)}


def verdict(rows) -> list[str]:
    """Return the conclusions in words."""
    return [line for found in conclusions(rows) for line in _lines(found)]


def _lines(found):
    """Yield what was found of a problem, in words."""
    yield (
        f"{found['bodies']} bodies, {found['precision']}: alone {found['main_rate'] * 1e-9:.4g} and "
        f"{found['cpu_rate'] * 1e-9:.4g} (CPU) G interactions/s; predicted optimum {found['predicted_share']:.2%} on "
        f"the CPU, {found['predicted_s'] * 1e3:.4g} ms"
    )
    yield (
        f"  best measured {found['best_share']:.2%}, {found['best_s'] * 1e3:.4g} ms: "
        f"{found['best_against_alone']:.3f} of the speed of the better device alone"
    )
    if "auto_share" in found:
        yield _auto_line(found)
    if "claimed_share" in found:
        yield (
            f"  with {found['claimed_share']:.0%} on the CPU: {found['claimed_against_main']:.3f} of the speed without"
        )


def _auto_line(found):
    kept = "" if found["auto_keeps_promise"] else f", LESS than the {PROMISED} that are promised"
    return (
        f"  auto took {found['auto_share']:.2%}, {found['auto_s'] * 1e3:.4g} ms: "
        f"{found['auto_against_alone']:.3f} of the better device alone{kept}"
    )
