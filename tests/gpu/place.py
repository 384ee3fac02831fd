"""Where the programs under test are: a build folder, or an unpacked bundle or archive of tests/gpu/pack; and where the
machine has CUDA's libraries."""
import ctypes
import glob
import os
import pathlib
import shutil
import subprocess
import tarfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
CUDA_LIBRARIES = {"libnvrtc": ("so.13", "so.12"), "libcublasLt": ("so.13", "so.12"), "libcudnn": ("so.9",),
                  "libnccl": ("so.2",)}


class Unusable(Exception):
    """Nothing can be run; the sentence says why."""


def find_programs(options, scratch):
    """The folder with bin/mulligan: --bundle unpacked, --build, this tree if it is an unpacked archive, else build/release,
    which is built where it is missing."""
    if options.bundle:
        return unpack(pathlib.Path(options.bundle), scratch)
    if options.build:
        folder = pathlib.Path(options.build).resolve()
    elif (ROOT / "bin/mulligan").exists():
        folder = ROOT
    else:
        folder = ROOT / "build/release"
        if not (folder / "bin/mulligan").exists():
            build()
    if not (folder / "bin/mulligan").exists():
        raise Unusable(f"there is no program {folder}/bin/mulligan; build it, or name an archive with --bundle.")
    return folder


def unpack(archive, scratch):
    try:
        with tarfile.open(archive) as file:
            file.extractall(scratch / "bundle", filter="data") if hasattr(tarfile, "data_filter") else file.extractall(
                scratch / "bundle")
    except (OSError, tarfile.TarError) as fault:
        raise Unusable(f"'{archive}' cannot be unpacked: {fault}.") from None
    found = list((scratch / "bundle").glob("*/bin/mulligan"))
    if len(found) != 1:
        raise Unusable(f"'{archive}' has no FOLDER/bin/mulligan; give an archive of the target bundle or of tests/gpu/pack.")
    return found[0].parents[1]


def build():
    if not shutil.which("cmake"):
        raise Unusable("there is neither a build nor cmake; name an archive of tests/gpu/pack with --bundle.")
    for command in (["cmake", "--preset", "release"], ["cmake", "--build", "--preset", "release"]):
        seen = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if seen.returncode:
            text = (seen.stdout + seen.stderr).strip().splitlines()
            cause = next((line for line in text if "Missing:" in line), text[-1] if text else "")
            raise Unusable(f"`{' '.join(command)}` failed ({cause.strip()}); on a machine without the libraries use an "
                           "archive of tests/gpu/pack.")


def opens(name):
    try:
        ctypes.CDLL(name)
        return True
    except OSError:
        return False


def library_folders(python):
    """Folders to be put on LD_LIBRARY_PATH so that the plugins find NVRTC, cuBLASLt, cuDNN and NCCL: none where the system
    finds them, else CUDA's own or those that come with PyTorch."""
    missing = [name for name, ends in CUDA_LIBRARIES.items() if not any(opens(f"{name}.{end}") for end in ends)]
    if not missing:
        return []
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if name in os.environ]
    homes += sorted(glob.glob("/usr/local/cuda*"), reverse=True)
    places = [os.path.join(home, end) for home in homes for end in ("lib64", "lib", "targets/x86_64-linux/lib")]
    for site in site_folders(python):
        places += sorted(glob.glob(os.path.join(site, "nvidia", "*", "lib")), reverse=True)
    folders = []
    for name in missing:
        files = [f"{name}.{end}" for end in CUDA_LIBRARIES[name]]
        folder = next((p for p in places if any(os.path.exists(os.path.join(p, file)) for file in files)), None)
        if folder and folder not in folders:
            folders.append(folder)
    return folders


def site_folders(python):
    seen = subprocess.run([python, "-c", "import sys; print('\\n'.join(p for p in sys.path if p.endswith('-packages')))"],
                          capture_output=True, text=True)
    return seen.stdout.split() if seen.returncode == 0 else []


def commit(folder):
    """What was built: the archive's note, or git's word."""
    note = folder / "COMMIT"
    if note.exists():
        return note.read_text().strip()
    seen = subprocess.run(["git", "-C", ROOT, "describe", "--always", "--dirty=+changes", "--exclude", "*"],
                          capture_output=True, text=True)
    return seen.stdout.strip() or "unknown"
