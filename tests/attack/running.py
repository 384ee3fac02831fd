"""Runs one command under limits and says how it ended, and whether that is an ending that a user may see."""
import dataclasses
import os
import pathlib
import re
import resource
import select
import shlex
import signal
import subprocess
import tempfile
import time

MEMORY_LIMIT_MB = 1024  # more than that is a finding
FUSE_BYTES = 6 << 30  # of private memory: keeps the machine alive
WAIT_SECONDS = 120  # a command that is not done by then hangs; the tiny runs here take a second of a free machine
CPU_SECONDS = 40  # a command that has used as much hangs as well
NOBODY = 65534  # whose files permissions protect, where root is who runs this
KILLED = -int(signal.SIGKILL)


@dataclasses.dataclass
class Ended:
    command: list
    code: int  # exit code, or minus the signal that ended it
    hung: bool
    megabytes: int  # largest resident memory
    output: str
    errors: str
    seconds: float

    @property
    def sentences(self):
        """Lines of standard error that begin like one of the program's own sentences."""
        return [line for line in self.errors.splitlines() if line.startswith("mulligan: ")]

    def __str__(self):
        if self.hung:
            return "hangs"
        return f"exit {self.code}" if self.code >= 0 else f"died of {signal.Signals(-self.code).name}"


class Running:
    """A started command. `limits`: resource limits in addition to the fuses, of the size of files also for what catches its output;
    `user`: runs under that user id; `stdout`, `stderr`: open files in place of that."""

    alive = set()  # process groups, to be ended with the attack

    def __init__(self, command, folder, environment=None, limits=None, user=None, **streams):
        self.command, self.begun = [os.fspath(word) for word in command], time.monotonic()
        self.out, self.err = tempfile.TemporaryFile(), tempfile.TemporaryFile()
        limits = {resource.RLIMIT_DATA: FUSE_BYTES, resource.RLIMIT_CPU: CPU_SECONDS, resource.RLIMIT_CORE: 0, **(limits or {})}

        def prepare():
            for kind, most in limits.items():
                resource.setrlimit(kind, (most, most))
            if user is not None:
                os.setgroups([])
                os.setgid(user)
                os.setuid(user)

        streams = {"stdin": subprocess.DEVNULL, "stdout": self.out, "stderr": self.err, **streams}
        self.process = subprocess.Popen(self.command, cwd=folder, env={**os.environ, **(environment or {})},
                                        preexec_fn=prepare, start_new_session=True, **streams)
        Running.alive.add(self.process.pid)
        self.pid, self.descriptor = self.process.pid, os.pidfd_open(self.process.pid)

    def sleep(self, seconds):
        """Waits; True when the command has ended by then (it stays to be collected)."""
        waiting = select.poll()
        waiting.register(self.descriptor, select.POLLIN)
        return bool(waiting.poll(max(0, int(seconds * 1000))))

    def send(self, number):
        """Sends a signal; nothing where the command has ended."""
        try:
            signal.pidfd_send_signal(self.descriptor, number)
        except ProcessLookupError:
            pass

    def end(self, wait=WAIT_SECONDS):
        """Waits for the end, at most `wait` seconds."""
        hung = not self.sleep(wait)
        if hung:
            os.killpg(self.pid, signal.SIGKILL)
        status, used = os.wait4(self.pid, 0)[1:]
        os.close(self.descriptor)
        Running.alive.discard(self.pid)
        code = os.waitstatus_to_exitcode(status)
        self.process.returncode = code
        hung = hung or code == -int(signal.SIGXCPU) or (code == KILLED and used.ru_utime + used.ru_stime >= CPU_SECONDS - 1)
        return Ended(self.command, code, hung, used.ru_maxrss >> 10, read(self.out), read(self.err),
                     time.monotonic() - self.begun)


def read(stream):
    stream.seek(0)
    with stream:
        return stream.read(1 << 22).decode("utf-8", "backslashreplace")


def run(command, folder, **options):
    return Running(command, folder, **options).end()


def fault(ended, codes=(0, 1, 2, 3)):
    """What no user should see in this ending, or None: a crash, a hang, too much memory, an exit code other than `codes`, an
    error that is not one sentence, an "internal error", raw control characters."""
    if ended.hung:
        return f"is not done after {ended.seconds:.0f} s"
    if ended.megabytes > MEMORY_LIMIT_MB:
        return f"took {ended.megabytes} MB"
    if ended.code not in codes:
        last = next((line for line in reversed(ended.errors.splitlines()) if line.strip()), "")
        return f"{ended}: {last[:200]}"
    if ended.code > 0 and len(ended.sentences) != 1:
        return f"exit {ended.code} with {len(ended.sentences)} sentences: {ended.errors[:300]!r}"
    if "internal error" in ended.errors:
        return ended.sentences[0][:300]
    odd = re.search(r"[\x00-\x08\x0b-\x1f\x7f]", ended.errors + ended.output)
    if odd:
        return f"prints the raw control character {odd.group()!r}"
    return None


def shell(command, folder=None, environment=None):
    """The line that repeats a command."""
    words = [f"{key}={shlex.quote(value)}" for key, value in (environment or {}).items()]
    line = " ".join(words + [shlex.quote(os.fspath(word)) for word in command])
    return f"(cd {shlex.quote(os.fspath(folder))} && {line})" if folder else line


def leftovers(folder):
    """What a command should have taken away: temporary names, hidden files and folders. A run's lock stays, unlocked."""
    return sorted(str(path.relative_to(folder)) for path in pathlib.Path(folder).rglob("*")
                  if ".tmp" in path.name or path.name.endswith(".preparing") or (path.name.startswith(".") and path.name != ".lock"))
