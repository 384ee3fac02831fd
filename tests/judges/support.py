"""What judges share: rows of the table, the program under judgement, small runs that it has trained."""
import dataclasses
import functools
import hashlib
import json
import os
import pathlib
import struct
import subprocess

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("MULLIGAN_BUILD", ROOT / "build/release")).resolve()


@dataclasses.dataclass
class Row:
    """One line of the table. `passed`: None where the judge could not run, and `difference` says why."""
    compared: str
    difference: str
    bound: str
    passed: bool | None

    @property
    def verdict(self):
        return {True: "within", False: "broken", None: "could not run"}[self.passed]


class Context:
    """Of one call of tests/judges/run: a folder to write into, and the fault that is planted, "" for none."""

    def __init__(self, scratch, planted=""):
        self.scratch, self.planted = pathlib.Path(scratch), planted
        self.tables = {}  # further tables, head first, by the names of their files

    def call(self, *words, **options):
        """The finished process of `mulligan WORDS`; the exit code is the caller's to look at."""
        return subprocess.run([BUILD / "bin/mulligan", *map(str, words)], capture_output=True, text=True,
                              **{"cwd": self.scratch} | options)

    def mulligan(self, *words, **options):
        """What it prints. Raises where it fails."""
        done = self.call(*words, **options)
        if done.returncode:
            raise RuntimeError(f"mulligan {' '.join(map(str, words))} ended with {done.returncode}: {done.stderr.strip()}")
        return done.stdout

    def shell(self, line):
        """A line for bash that knows the functions of tests/end_to_end/cli_checks.bash."""
        prefix = f"MULLIGAN_USUAL_SIGNALS=$$; source '{ROOT}/tests/end_to_end/cli_checks.bash'; trap - EXIT; rm -rf \"$work\"; cd '{self.scratch}'; "
        return subprocess.run(["bash", "-c", prefix + line], capture_output=True, text=True, check=True,
                              env=os.environ | {"MULLIGAN_BUILD": str(BUILD)}).stdout

    @functools.cached_property
    def data(self):
        """Prepared shards of the text that all tests train on (512 pieces)."""
        self.shell("tiny_corpus corpus")
        self.mulligan("prepare", "corpus", "--out", "data", "--vocab-size", 512, "--validation-fraction", 0.3, "--quiet")
        return self.scratch / "data"

    def run(self, name, settings=""):
        """A run directory, trained for 20 steps: every feature of the record's architecture at a small size; `settings` is TOML
        that is laid over it. Trained once per call."""
        folder = self.scratch / "runs" / name
        if folder.exists():
            return folder
        data = self.data
        (self.scratch / "base.toml").write_text(self.shell(f"small_config '{data}'; record_sections"))
        (self.scratch / f"{name}.toml").write_text(f'extends = "base.toml"\n{settings}')
        self.mulligan("train", f"{name}.toml", "--set", f"run.directory={folder}", "--quiet")
        return folder


def fetched(repository, ref, path, sha256):
    """A file of a public git repository, which is fetched once, into the build folder. Raises where it cannot be had, or has other
    bytes. Git's own setting url.BASE.insteadOf takes the place of GitHub on a machine that does not reach it."""
    folder = BUILD / "judges/fetched" / repository.replace("/", "+")
    file = folder / f"{sha256[:16]}-{pathlib.Path(path).name}"
    if not file.exists():
        folder.mkdir(parents=True, exist_ok=True)

        def git(*words):
            done = subprocess.run(["git", "--git-dir", folder / "git", *words], capture_output=True, env=os.environ | {"GIT_TERMINAL_PROMPT": "0"})
            if done.returncode:
                raise RuntimeError(f"{repository} cannot be fetched: {done.stderr.decode().strip().splitlines()[-1]}")
            return done.stdout
        git("init", "--quiet", "--bare", folder / "git")
        git("fetch", "--quiet", "--depth", "1", f"https://github.com/{repository}", ref)
        file.write_bytes(git("show", f"FETCH_HEAD:{path}"))
    if hashlib.sha256(file.read_bytes()).hexdigest() != sha256:
        raise RuntimeError(f"{path} of {repository} has another sha256 than the one that this judge was made for")
    return file


def plugin_trace(*words):
    """What tests/judges/plugin_trace.cpp prints, which is built where there is a build folder."""
    if (BUILD / "CMakeCache.txt").exists():
        subprocess.run(["cmake", "--build", BUILD, "--target", "mulligan_plugin_trace"], check=True, capture_output=True)
    done = subprocess.run([BUILD / "bin/mulligan_plugin_trace", *map(str, words)], capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(done.stderr.strip())
    return done.stdout


def quickstart_run():
    """The run directory of launch/quickstart in this checkout; None where it has not been made."""
    folder = ROOT / "runs/quickstart"
    return folder if (folder / "weights.safetensors").exists() else None


def shard_tokens(path):
    """Ids of a token shard: 256 int32 of header, then uint16."""
    import numpy
    header = numpy.fromfile(path, "<i4", 256)
    return numpy.fromfile(path, "<u2", header[2], offset=1024)


def read_json(path):
    return json.loads(pathlib.Path(path).read_text())


def write_safetensors(path, header, data):
    """A file of this header (a dictionary, or bytes as they are) and data."""
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + data)
