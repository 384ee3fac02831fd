"""Chooses the call into the C library at which fault_shim.so strikes."""
import pathlib
import shutil
import tempfile

from running import run
from subject import Broken


class Strikes:
    def __init__(self, subject, shim):
        self.subject, self.shim, self.counts = subject, pathlib.Path(shim).resolve(), {}
        if not self.shim.exists():
            raise Broken(f"there is no '{shim}'; build the target mulligan_fault_shim, or name the library with --shim")

    def calls(self, command):
        """How often an undisturbed command makes each call; counted once."""
        key = tuple(map(str, command))
        if key not in self.counts:
            with tempfile.TemporaryDirectory(prefix="attack_count_") as folder:
                folder = pathlib.Path(folder)
                shutil.copytree(self.subject.folder, folder / "copy", symlinks=True)
                run(command, folder / "copy", environment={"LD_PRELOAD": str(self.shim), "ATTACK_COUNTS": str(folder / "counts")})
                self.counts[key] = {name: int(count) for name, count in
                                    (line.split() for line in (folder / "counts").read_text().splitlines())}
                if not self.counts[key]["write"]:
                    raise Broken(f"'{self.shim}' counted no write of `{' '.join(key)}`")
        return self.counts[key]

    def choose(self, draw, command, calls, actions):
        """(in words, environment) of a strike at one of the `calls`, a dictionary of weights."""
        counts = self.calls(command)
        made = [name for name in calls if counts[name]]
        call = draw.choices(made, weights=[calls[name] for name in made])[0]
        number, action = draw.randint(1, counts[call]), draw.choice(actions)
        return f"{action} at {call} {number}", {"LD_PRELOAD": str(self.shim), "ATTACK_CALL": call, "ATTACK_AT": str(number),
                                                "ATTACK_DO": str(action)}
