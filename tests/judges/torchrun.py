"""torch.distributed.elastic's launcher with this program in place of a script: one or two agents are allowed, and one is killed."""
import json
import os
import pathlib
import signal
import socket
import struct
import subprocess
import sys
import time

from judges.support import BUILD, Row, read_json

JUDGE = "torchrun"
NEEDS = ["numpy", "torch"]
FAULTS = []

SETTINGS = """[run]
determinism = "world"
[train]
steps = 160
[checkpoint]
every_steps = 20
"""


def tensors_digest(path):
    raw = pathlib.Path(path).read_bytes()
    length, = struct.unpack("<Q", raw[:8])
    return json.loads(raw[8:8 + length])["__metadata__"]["tensors_sha256"]


def agent(context, port, run, number):
    """One machine's launcher with one rank; its output in agent.NUMBER."""
    command = [pathlib.Path(sys.executable).parent / "torchrun", "--no-python", "--nnodes", "1:2", "--nproc-per-node", "1", "--max-restarts", "5",
               "--rdzv-backend", "c10d", "--rdzv-endpoint", f"127.0.0.1:{port}", "--rdzv-id", "judged", "--rdzv-conf", "last_call_timeout=8",
               "--local-addr", "127.0.0.1", BUILD / "bin/mulligan", "train", "torchrun.toml", "--set", f"run.directory={run}"]
    return subprocess.Popen([*map(str, command)], cwd=context.scratch, stdout=open(context.scratch / f"agent.{number}", "w"),
                            stderr=subprocess.STDOUT, start_new_session=True)


def below(process):
    """A process and all that it has started."""
    found = [process]
    for path in pathlib.Path("/proc").glob("[0-9]*/stat"):
        try:
            if int(path.read_text().rpartition(")")[2].split()[1]) == process:
                found += below(int(path.parent.name))
        except (FileNotFoundError, ProcessLookupError):
            pass
    return found


def kill(process):
    for number in below(process.pid):
        try:
            os.kill(number, signal.SIGKILL)
        except ProcessLookupError:
            pass
    process.wait()


def judge(context):
    context.run("small")  # prepares the data and the configuration that this one extends
    (context.scratch / "torchrun.toml").write_text(f'extends = "base.toml"\n{SETTINGS}')
    context.mulligan("train", "torchrun.toml", "--set", "run.directory=alone", "--quiet")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    run, seen = context.scratch / "shared", "no checkpoint of two ranks came"
    agents = [agent(context, port, run, 0)]
    time.sleep(3)
    agents.append(agent(context, port, run, 1))
    try:
        limit = time.monotonic() + 240
        while time.monotonic() < limit and not (run / "checkpoints/step_00000040").exists():
            if all(a.poll() is not None for a in agents):
                break
            time.sleep(0.05)
        steps = sorted(path.name for path in (run / "checkpoints").glob("step_*"))
        kill(agents[1])
        seen = f"killed one behind {steps[-1] if steps else 'no checkpoint'}"
        code = agents[0].wait(timeout=300)
        said = (context.scratch / "agent.0").read_text().strip().splitlines()
        log = (run / "log.txt").read_text() if (run / "log.txt").exists() else ""
        equal = code == 0 and tensors_digest(run / "weights.safetensors") == tensors_digest(context.scratch / "alone/weights.safetensors")
        seen += f", the other ended with {code}, {'same' if equal else 'other'} weights as one process"
        if code:
            seen += f": {next((line for line in said if line.startswith('mulligan: ')), said[-1] if said else '')}"
        two = "of 2" in (context.scratch / "agent.0").read_text() or "2 ranks" in log
        good = equal and two and "resumed from" in log + (context.scratch / "agent.0").read_text() and read_json(run / "result.json")["steps"] == 160
    finally:
        for process in agents:
            if process.poll() is None:
                kill(process)
    yield Row("two agents (--nnodes 1:2), one killed during training: end, weights to the bit, resumed", seen, "equal", good)
