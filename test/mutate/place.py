"""Where a campaign of mutation lies, and how its programs speak. Needs no package."""

import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PLACE = pathlib.Path(os.environ.get("CAMPAIGN_PLACE", ROOT / "build/campaign"))
TREE = PLACE / "tree"
BINARIES = TREE / "build/release"
CORPUS = PLACE / "corpus"


def fail(text):
    sys.exit(f"mutate: {text}")


def must(*words, **more):
    done = subprocess.run([str(w) for w in words], capture_output=True, text=True, **more)
    if done.returncode:
        fail(f"{' '.join(map(str, words))}\n{done.stdout[-3000:]}{done.stderr[-3000:]}")
    return done.stdout


def say(text):
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)
