"""Slurm (a controller and a node of its own), Open MPI and MPICH start two ranks each: tests/multiprocess/starters, by this page's rows."""
import os
import re
import shutil
import subprocess

from judges.support import BUILD, ROOT, Row

JUDGE = "Slurm, Open MPI, MPICH"
NEEDS = []
FAULTS = []

# The starter's words for itself, the program that has to be installed, how that says its version, the Debian package.
STARTERS = {"openmpi": ("Open MPI", ["mpirun.openmpi", "--version"], "openmpi-bin"),
            "hydra": ("MPICH", ["mpiexec.hydra", "--version"], "mpich"),
            "srun": ("Slurm, srun", ["slurmctld", "-V"], "slurmctld slurmd slurm-client"),
            "sbatch train.sbatch": ("Slurm, launch/slurm/train.sbatch", ["slurmctld", "-V"], "slurmctld slurmd slurm-client"),
            "sbatch train_2x8.sbatch, here on one node": ("Slurm, launch/slurm/train_2x8.sbatch on one node", ["slurmctld", "-V"],
                                                          "slurmctld slurmd slurm-client")}


def version(command, path):
    program = shutil.which(command[0], path=path)
    if not program:
        return None
    said = subprocess.run([program, *command[1:]], capture_output=True, text=True).stdout
    found = re.search(r"\d+\.\d+(\.\d+)*", said)
    return found.group(0) if found else ""


def judge(context):
    path = os.environ["PATH"] + ":/usr/sbin"
    done = subprocess.run([ROOT / "tests/multiprocess/starters"], capture_output=True, text=True, cwd=context.scratch, timeout=900,
                          env=os.environ | {"PATH": path, "MULLIGAN_BUILD": str(BUILD)})
    alone = re.search(r"^# one process: val_bpb (\S+)", done.stdout, re.M)
    for name, (title, command, package) in STARTERS.items():
        release, what = version(command, path), f"{title}: two ranks, val_bpb of one process"
        scored = re.search(rf"^# {re.escape(name)}: val_bpb (\S+); ?(.*)$", done.stdout, re.M)
        if release is None:
            yield Row(what, f"not installed (apt-get install --no-install-recommends {package})", "", None)
        elif not alone or not scored or scored[1] == "none":
            wrong = re.search(r"^not ok - .*(?:\n +.*)*", done.stdout, re.M)
            yield Row(f"{what}, {release}", wrong[0] if wrong else "it did not start", "1e-03 bpb", False)
        else:
            off = abs(float(scored[1]) - float(alone[1]))
            failed = [line for line in done.stdout.splitlines() if line.startswith(f"not ok - {name}")]
            yield Row(f"{what}, {release}, {float(alone[1]):.6f}", f"{off:.1e} bpb{': ' + failed[0] if failed else ''}", "1e-03 bpb",
                      off <= 1e-3 and not failed)
