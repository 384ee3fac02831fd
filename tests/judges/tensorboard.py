"""TensorBoard's own loader; the checks are those of tests/end_to_end/tensorboard.sh."""
import os
import subprocess
import sys

from judges.support import BUILD, ROOT, Row

JUDGE = "TensorBoard"
NEEDS = ["tensorboard"]
FAULTS = []


def judge(context):
    done = subprocess.run([ROOT / "tests/end_to_end/tensorboard.sh"], capture_output=True, text=True,
                          env=os.environ | {"MULLIGAN_BUILD": str(BUILD), "MULLIGAN_TENSORBOARD_PYTHON": sys.executable})
    lines = done.stdout.splitlines()
    good, bad = [[line for line in lines if line.startswith(word)] for word in ("ok - ", "not ok - ")]
    yield Row(f"tags, steps, values and times of an event file: {len(good) + len(bad)} checks", f"{len(bad)} checks: {bad}" if bad else "0 checks",
              "0", bool(good) and not bad and done.returncode == 0)
