"""What the rows know of the run: device, places, programs, and results that several rows look at."""
import hashlib
import json
import os
import pathlib
import shutil
import struct
import subprocess

import place
from harness import NotOk, Skipped


class Context:
    def __init__(self, options, folder, scratch, commands, out):
        self.options, self.folder, self.scratch, self.commands, self.out = options, folder, scratch, commands, out
        self.emulated, self.quick = options.device == "emulated", options.quick
        self.partial = {}  # figures of a row that then finds a fault
        self.memory = {}   # what several rows need, made by the first

    def once(self, key, make):
        if key not in self.memory:
            self.memory[key] = make()
        return self.memory[key]

    def backend(self, name):
        if name == "cpu":
            return {"backend.plugin": "cpu"}
        return {"backend.plugin": "cuda", "backend.device": self.options.device,
                **dict(setting.split("=", 1) for setting in self.options.set)}

    def mulligan(self, *arguments, environment=None):
        return self.commands.run([self.folder / "bin/mulligan", *arguments], environment)

    # Programs that may be absent.

    def test_program(self, name):
        program = self.folder / "bin" / name
        if not program.exists():
            raise Skipped(f"bin/{name} is not there: the bundle has no tests, archives of tests/gpu/pack have them")
        return program

    def tool(self, name):
        found = shutil.which(name) or next(
            (str(p) for p in map(pathlib.Path, (f"/usr/local/cuda/bin/{name}",
                                                f"/usr/local/cuda/compute-sanitizer/{name}")) if p.exists()), None)
        if not found:
            raise Skipped(f"{name} is not installed")
        return found

    def torch_python(self):
        """The interpreter of --python, if it has PyTorch (and its GPU)."""
        def ask():
            code = ("import torch; print(torch.__version__)" if self.emulated else
                    "import torch; assert torch.cuda.is_available(), 'PyTorch finds no GPU'; print(torch.__version__)")
            seen = subprocess.run([self.options.python, "-c", code], capture_output=True, text=True)
            return "" if seen.returncode == 0 else (seen.stderr.strip().splitlines() or ["it does not start"])[-1]
        problem = self.once("torch", ask)
        if problem:
            raise Skipped(f"{self.options.python}: {problem}")
        return self.options.python

    # Runs and their files.

    def run_folder(self, name):
        return self.scratch / "runs" / name

    def train(self, name, config, settings, environment=None):
        """Trains into a folder of that name; its result.json."""
        folder = self.run_folder(name)
        self.mulligan("train", config, "--set", f"run.directory={folder}", *settings, environment=environment)
        return json.loads((folder / "result.json").read_text())

    def config(self, name):
        path = self.folder / "configs" / name
        return path if path.exists() else place.ROOT / "configs" / name


def weights(folder):
    """sha256 of each tensor in weights.safetensors (its header names the configuration as well)."""
    raw = (folder / "weights.safetensors").read_bytes()
    length = struct.unpack("<Q", raw[:8])[0]
    header, data = json.loads(raw[8:8 + length]), memoryview(raw)[8 + length:]
    return {name: hashlib.sha256(data[entry["data_offsets"][0]:entry["data_offsets"][1]]).hexdigest()
            for name, entry in header.items() if name != "__metadata__"}


def step_losses(folder):
    steps = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    return [step["loss_nats"] for step in steps if step.get("event") == "step"]


def require_near(what, ours, expected, tolerance):
    if not abs(ours - expected) <= tolerance:  # NaN is not near
        raise NotOk(f"{what}: {ours:.6g} instead of {expected:.6g} (tolerance {tolerance:g})")


def used_gpu_memory():
    """Bytes in use on the first GPU, as its driver counts."""
    seen = subprocess.run(["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits", "-i", "0"],
                          capture_output=True, text=True)
    return int(float(seen.stdout.split()[0]) * (1 << 20)) if seen.returncode == 0 and seen.stdout.split() else 0


def machine(context):
    """Name of GPU and driver, or of the CPU."""
    if context.emulated:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return f"emulated, not a GPU, on {len(os.sched_getaffinity(0))} cores of {names[0] if names else 'a processor'}"
    seen = subprocess.run(["nvidia-smi", "--query-gpu=name,driver_version,memory.total", "--format=csv,noheader"],
                          capture_output=True, text=True)
    return seen.stdout.strip().splitlines()[0] if seen.returncode == 0 and seen.stdout.strip() else "no GPU (nvidia-smi fails)"
