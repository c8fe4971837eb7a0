"""Attack the output of small runs: kills, power cuts and damage, state by state.

    python run_scripts/campaign.py --states 2000 --damage 1000 --kills 100 --resumes 50 --seed 3

A run of each model is made with a journal of what it does to its files. States that a kill or a
power cut can leave are put together from the journal; each must open to the frames that were
complete, and end like the undisturbed run when it is resumed. Then files of the run are damaged: no
changed number may be returned. The counts are printed; the first wrong state ends it with exit
code 1 and stays in the folder that the message names.
"""

import argparse
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support.campaigns import (  # noqa: E402
    crash_campaign,
    damage_campaign,
    kill_campaign,
    undisturbed,
)


def main() -> int:
    """Run the campaigns and print how many states of each kind there were."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--states", type=int, default=500, help="states after kills, of each model")
    parser.add_argument("--damage", type=int, default=500, help="damaged runs, of each model")
    parser.add_argument("--resumes", type=int, default=20, help="how many of each are resumed")
    parser.add_argument("--kills", type=int, default=20, help="real runs that are killed, of each")
    parser.add_argument("--seed", type=int, default=1, help="another one chooses other states")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="campaign-"))
    for model in ("nbody", "fluid"):
        place = folder / model
        place.mkdir()
        run = undisturbed(place, model, pause=0.0)
        print(f"{model}: {len(run.calls)} calls on {len(list(run.folder.rglob('*.h5')))} files")
        crashes = crash_campaign(run, place, options.states, options.resumes, options.seed)
        damages = damage_campaign(run, place, options.damage, options.resumes, options.seed)
        kills = kill_campaign(run, place, options.kills, options.seed)
        for (kind, result), count in sorted((crashes + damages + kills).items()):
            print(f"  {kind:16} {result:20} {count:6}")
    print("no wrong number, and no frame lost")
    return 0


if __name__ == "__main__":
    sys.exit(main())
