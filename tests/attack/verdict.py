"""Cases, counts and findings of one attack, and the table it ends with."""
import argparse
import collections
import os
import pathlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from running import Running

ROOT = pathlib.Path(__file__).resolve().parents[2]
KEPT_FINDINGS = 10  # folders
SHOWN_FINDINGS = 20  # with their commands


def parse(text, count, what):
    """Options that all attacks share. `count`: cases without --count; None: all there are."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=count, help=f"{what} (default: {count or 'all'})")
    parser.add_argument("--seed", type=int, default=1, help="chooses the cases (default: 1)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case: repeats one with --count 1")
    parser.add_argument("--build", default=str(ROOT / "build/release"), help="build folder, or an installation (default: build/release)")
    parser.add_argument("--shim", default=str(ROOT / "build/release/tests/attack/fault_shim.so"),
                        help="library that strikes (default: that of build/release)")
    parser.add_argument("--subject", help="folder of what is attacked, made where it is missing; without it a folder of each run")
    parser.add_argument("--keep", help="folder in which what the findings were made of is kept")
    return parser


class Attack:
    """Runs cases and keeps account. A case is a function of a random.Random and a scratch folder; it returns how it ended, in
    few words, or raises Flaw."""

    def __init__(self, name, options):
        self.name, self.options = name, options
        self.counts, self.findings, self.made, self.begun = collections.Counter(), [], 0, time.monotonic()
        self.commit = commit()

    def run(self, case, numbers=None):
        """Runs the cases; SIGINT and SIGTERM end that early, with the table of what was done."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, stop)
        try:
            self.run_all(case, numbers)
        except Stopped:
            print("stopped", file=sys.stderr)

    def run_all(self, case, numbers):
        numbers = range(self.options.first, self.options.first + self.options.count) if numbers is None else numbers
        for number in numbers:
            with tempfile.TemporaryDirectory(prefix=f"attack_{self.name}_") as folder:
                folder = pathlib.Path(folder)
                try:
                    self.counts[case(self.draw(number), folder, number)] += 1
                except Flaw as finding:
                    self.counts["FINDING"] += 1
                    self.findings.append((number, finding, self.kept(number, folder)))
                    print(f"case {number}: {finding}", file=sys.stderr, flush=True)
                except Exception:
                    print(f"case {number} breaks the attack itself", file=sys.stderr, flush=True)
                    raise
            self.made += 1

    def draw(self, number):
        return random.Random(f"{self.options.seed}:{number}")

    def kept(self, number, folder):
        if not self.options.keep or len(self.findings) >= KEPT_FINDINGS:
            return None
        place = pathlib.Path(self.options.keep).resolve() / f"{self.name}_{self.options.seed}_{number}"
        shutil.rmtree(place, ignore_errors=True)
        place.parent.mkdir(parents=True, exist_ok=True)
        subprocess.run(["cp", "-a", "--sparse=always", folder, place], check=False)
        return place

    def finish(self, note=""):
        """Prints the table, with a `note` on the whole; the exit code of the script."""
        print(f"\n{self.name}: {self.made} cases, seed {self.options.seed}, {time.monotonic() - self.begun:.0f} s, commit "
              f"{self.commit}{note and ', ' + note}\n")
        for ending, count in sorted(self.counts.items(), key=lambda entry: (entry[0] == "FINDING", entry[0])):
            print(f"  {count:6}  {ending}")
        for number, finding, place in self.findings[:SHOWN_FINDINGS]:
            print(f"\nFINDING case {number}: {finding}\n  seen with: {finding.command}\n  again: tests/attack/{self.name} "
                  f"--seed {self.options.seed} --first {number} --count 1 --keep FOLDER")
            if place:
                print(f"  kept: {place}")
        print(f"\n{self.name}: {len(self.findings)} findings in {self.made} cases")
        return 1 if self.findings or not self.made else 0


class Stopped(BaseException):
    """The user stops the attack."""


def stop(*_):
    for group in Running.alive:
        os.killpg(group, signal.SIGKILL)
    raise Stopped


class Flaw(Exception):
    """Something that no user should see, with the command that showed it."""

    def __init__(self, sentence, command=""):
        super().__init__(sentence)
        self.command = command


def commit():
    seen = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty=+changes", "--exclude", "*"], capture_output=True,
                          text=True)
    return seen.stdout.strip() or "unknown"
