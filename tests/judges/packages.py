"""lintian and pip look at the files of a release, and apt and dpkg install and remove the package in clean roots (tests/release/check).

MULLIGAN_RELEASE names the folder that launch/release made."""
import os
import pathlib
import re
import shutil
import subprocess
import sys

from judges.support import ROOT, Row

JUDGE = "apt, dpkg, lintian, pip"
NEEDS = []
FAULTS = []


def run(*words, **options):
    return subprocess.run(list(map(str, words)), capture_output=True, text=True, **options)


def of_lintian(package):
    if not shutil.which("lintian"):
        return Row(f"lintian on {package.name}", "not installed (apt-get install lintian)", "", None)
    said = run("lintian", "--allow-root", package)
    found = re.findall(r"^([EW]): \S+ (\S+)", said.stdout.replace("mulligan:", "mulligan"), re.M)
    errors = sorted({tag for kind, tag in found if kind == "E"})
    release = run("lintian", "--version").stdout.strip()
    return Row(f"{release} on {package.name}: errors", f"{len(errors)}{': ' + ', '.join(errors) if errors else ''}, {len(found) - len(errors)} warnings",
               "0 errors", not errors and not said.stderr.strip())


def of_pip(wheel, scratch):
    """Installed in an environment of its own, run, removed: what remains."""
    here = scratch / "pip"
    run(sys.executable, "-m", "venv", here, check=True)
    before = set(here.rglob("*"))
    done = run(here / "bin/python", "-m", "pip", "install", "--no-index", "--no-deps", wheel)
    said = run(here / "bin/mulligan", "--version") if done.returncode == 0 else done
    run(here / "bin/python", "-m", "pip", "uninstall", "--yes", "mulligan")
    left = [path for path in set(here.rglob("*")) - before if "__pycache__" not in path.parts]
    release = run(here / "bin/python", "-m", "pip", "--version").stdout.split()[1]
    return Row(f"pip {release} on {wheel.name}: installed, run, removed", f"exit code {said.returncode}, {len(left)} files left", "0, 0 files",
               said.returncode == 0 and "mulligan" in said.stdout and not left)


def of_roots(folder):
    done = run(ROOT / "tests/release/check", folder)
    good, wrong, skipped = (re.findall(rf"^{word} - (.*)", done.stdout, re.M) for word in ("ok", "not ok", "skipped"))
    if not good and not wrong:
        return Row("apt and dpkg in clean roots", (skipped or [done.stderr.strip() or "tests/release/check says nothing"])[0], "", None)
    return Row("apt and dpkg in clean roots (bookworm): installed, config init's lines, removed", f"{len(wrong)} of {len(good) + len(wrong)} checks"
               f"{': ' + wrong[0] if wrong else ''}", "0", not wrong)


def judge(context):
    folder = pathlib.Path(os.environ.get("MULLIGAN_RELEASE", ""))
    packages, wheels = (sorted(folder.glob(f"mulligan{kind}")) if os.environ.get("MULLIGAN_RELEASE") else [] for kind in ("*.deb", "*.whl"))
    if not packages or not wheels:
        yield Row("all of it", "MULLIGAN_RELEASE names no folder of a release (launch/release makes one)", "", None)
        return
    yield of_lintian(packages[-1])
    yield of_pip(wheels[-1], context.scratch)
    yield of_roots(folder)
