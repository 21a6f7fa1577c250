"""Kills the embedded API under write load, many times, and compares what it has with what its clients were told.

python tests/soak/soak_store.py [--kills 100] [--seed N]
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from support.apiserver_kills import KillTest


def main() -> int:
    """Return 1 if anything was lost, half written or invented."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n", 1)[0])
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6))
    options = parser.parse_args()
    failed = 0
    with tempfile.TemporaryDirectory() as folder:
        test = KillTest(Path(folder), options.seed)
        try:
            for number in range(1, options.kills + 1):
                problems = test.round()
                failed += bool(problems)
                for problem in problems:
                    print(f"kill {number}: {problem}")
                if number % 10 == 0 or number == options.kills:
                    print(f"{number} kills, {test.acknowledged} acknowledged writes, {failed} bad rounds", flush=True)
        finally:
            test.close()
    print(f"seed {options.seed}: {'FAILED' if failed else 'nothing lost, nothing half'}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
