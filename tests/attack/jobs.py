"""Commands that are interrupted: what each is called with, what it makes, and that it makes the same when it is repeated."""
import pathlib
import shutil
import tempfile

from running import fault, leftovers, run
from subject import Broken, difference, outcome, scores
from verdict import Flaw

TRAIN = ("train", "tiny.toml", "--set", "run.directory=attacked")


class Jobs:
    """Each works in a copy of the subject."""

    def __init__(self, subject):
        self.subject, self.expected, self.seconds = subject, {}, {}

    def words(self, name):
        """The command line. "train tiny 60": steps; "train 2 threads": the quickstart's model."""
        if name.startswith("train tiny"):
            return [*TRAIN, "--set", f"train.steps={name.split()[2]}"]
        if name.startswith("train"):
            return self.subject.quickstart("attacked", threads=int(name.split()[1]))
        if name == "prepare":
            return ["prepare", "corpus", "--out", "again", "--vocab-size", "512", "--validation-documents", "2"]
        if name == "overwrite":
            return ["train", "tiny.toml", "--set", "run.directory=run", "--set", "run.seed=7", "--overwrite"]
        return [name, "run"]

    def command(self, name):
        return self.subject.command(*self.words(name))

    def copy(self, folder):
        shutil.copytree(self.subject.folder, folder, dirs_exist_ok=True, symlinks=True)

    def result(self, name, folder, ended):
        """What a finished command made, to be compared."""
        if name.startswith("train"):
            return outcome(folder / "attacked")
        if name == "overwrite":
            return outcome(folder / "run")
        if name == "prepare":
            return {path.name: path.read_bytes() for path in sorted((folder / "again").iterdir())}
        if name == "quantize":
            return (folder / "run/artifact.mulligan").read_bytes()
        if name == "report":
            return len((folder / "run/report.html").read_text()) > 1000
        return scores(ended.output)

    def straight(self, name):
        """Result and duration of the undisturbed command; measured once."""
        if name not in self.expected:
            with tempfile.TemporaryDirectory(prefix="attack_straight_") as folder:
                self.copy(folder)
                ended = run(self.command(name), folder)
                if ended.code or not (expected := self.result(name, pathlib.Path(folder), ended)):
                    raise Broken(f"{name} undisturbed: {fault(ended) or ended.errors or 'no result'}")
                self.expected[name], self.seconds[name] = expected, ended.seconds
        return self.expected[name], self.seconds[name]

    def compare(self, name, folder, ended, what, repeat):
        """Refuses a finished command that made something else than the undisturbed one."""
        expected, seen = self.straight(name)[0], self.result(name, folder, ended)
        if seen != expected:
            wherein = difference(expected, seen) if isinstance(expected, dict) and isinstance(seen, dict) else str(seen)[:200]
            raise Flaw(f"{what}, with another result: {wherein}", repeat)

    def again(self, name, folder, what, repeat):
        """Repeats (train, eval, ttt: resumes) what was interrupted. It must end with the undisturbed command's result, one row for each
        step and validation, and without leftovers of the interrupted process."""
        words = self.words(name) + (["--resume"] if name.startswith(("train", "eval", "ttt")) else [])
        if name == "prepare" and (folder / "again/manifest.json").exists():  # complete: to be checked, not made again
            words = ["prepare", "--check", "again"]
        second = run(self.subject.command(*words), folder)
        if second.code or fault(second):
            # A run that was complete refuses to be trained again, with a sentence; what it made is compared.
            if not (name.startswith("train") and second.code == 2 and (folder / "attacked/result.json").exists()):
                raise Flaw(f"{what}; then `{words[0]}` again: {fault(second) or second.errors}", repeat)
        self.compare(name, folder, second, f"{what}; then `{words[0]}` again", repeat)
        if left := leftovers(folder):
            raise Flaw(f"{what}; `{words[0]}` again leaves {left[:3]}", repeat)
