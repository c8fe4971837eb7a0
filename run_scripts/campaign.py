"""Attack the output of small runs: kills, power cuts and damage, state by state.

    python run_scripts/campaign.py --states 2000 --damage 1000 --kills 100 --resumes 50 --seed 3

A run of each job (bodies, a fluid, a fluid around an obstacle with adaptive steps) is made with a
journal of what it does to its files. States that a kill or a power cut can leave are put together
from the journal; each must open to the frames that were complete, and end like the undisturbed run
when it is resumed. Then files of the run are damaged: no changed number may be returned. Then real
runs are killed, whole or one rank of three. The counts are printed; the first wrong state ends it
with exit code 1 and stays in the folder that the message names.
"""

import argparse
import sys
import tempfile
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.campaigns import (  # noqa: E402
    JOBS,
    crash_campaign,
    damage_campaign,
    kill_campaign,
    undisturbed,
)
from support.rank_kills import rank_kill_campaign  # noqa: E402


def main() -> int:
    """Run the campaigns and print how many states of each kind there were."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--states", type=int, default=500, help="states after kills, of each job")
    parser.add_argument("--damage", type=int, default=500, help="damaged runs, of each job")
    parser.add_argument("--resumes", type=int, default=20, help="how many of each are resumed")
    parser.add_argument("--kills", type=int, default=20, help="real runs that are killed, of each")
    parser.add_argument("--rank-kills", type=int, default=0, help="the same of one rank of three")
    parser.add_argument("--jobs", nargs="+", choices=JOBS, default=list(JOBS), help="which jobs")
    parser.add_argument("--seed", type=int, default=1, help="another one chooses other states")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="campaign-"))
    for job in options.jobs:
        place = folder / job
        place.mkdir()
        run = undisturbed(place, job, pause=0.0)
        print(f"{job}: {len(run.calls)} calls on {len(list(run.folder.rglob('*.h5')))} files")
        chosen = options.resumes, options.seed
        show(crash_campaign(run, place, options.states, *chosen))
        show(damage_campaign(run, place, options.damage, *chosen))
        show(kill_campaign(run, place, options.kills, options.seed))
        show(rank_kill_campaign(run, place, options.rank_kills, options.seed))
    print("no wrong number, and no frame lost")
    return 0


def show(found: Counter[tuple[str, str]]) -> None:
    """Print how many states of each kind there were."""
    for (kind, result), count in sorted(found.items()):
        print(f"  {kind:16} {result:20} {count:6}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
