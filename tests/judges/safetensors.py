"""The safetensors package, whose reader is the format's own (Rust), reads what this program writes, and both readers accept and
refuse the same files."""
import concurrent.futures
import json
import random
import struct

from judges.support import Row, write_safetensors

JUDGE = "safetensors"
NEEDS = ["numpy", "safetensors"]
FAULTS = ["hole-in-header"]

OURS = {"F64": 64, "F32": 32, "F16": 16, "BF16": 16, "I64": 64, "I32": 32, "U16": 16, "I8": 8, "U8": 8}
# What they know and this program has no use for; bits of an element.
THEIRS = {"BOOL": 8, "I16": 16, "U32": 32, "U64": 64, "C64": 64, "F8_E4M3": 8, "F8_E5M2": 8, "F8_E8M0": 8, "F4": 4, "F6_E2M3": 6,
          "F6_E3M2": 6}
MUTATIONS = 1000


def they_read(path):
    """Name to (dtype, shape, bytes); None where they refuse it."""
    import safetensors
    try:
        return {name: (t["dtype"], t["shape"], bytes(t["data"])) for name, t in safetensors.deserialize(path.read_bytes())}
    except safetensors.SafetensorError:
        return None


def by_hand(path):
    """The same by the format's description alone."""
    raw = path.read_bytes()
    length, = struct.unpack("<Q", raw[:8])
    header = json.loads(raw[8:8 + length])
    return {name: (t["dtype"], t["shape"], raw[8 + length:][slice(*t["data_offsets"])]) for name, t in header.items()
            if name != "__metadata__"}


def we_read(context, path):
    """(accepted, its sentence): a file is identical with itself where it can be read."""
    done = context.call("checkpoint", "diff", path, path)
    if done.returncode not in (0, 3) or (done.returncode and done.stderr.count("\n") != 1):
        raise RuntimeError(f"mulligan ended with {done.returncode} on {path.name}: {done.stderr}")
    return done.returncode == 0, done.stderr


def mutated(number):
    """(header as bytes, data) of a file of three tensors with one to three changes. The same for the same number."""
    draw = random.Random(number)
    header = {"__metadata__": {"format": "pt"}}
    at = 0
    for name, dtype, shape in (("a", "F32", [2, 3]), ("b", "BF16", [5]), ("c.d", "I64", [])):
        size = OURS[dtype] // 8 * (shape[0] * (shape[1] if len(shape) > 1 else 1) if shape else 1)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + size]}
        at += size
    data = bytes(draw.randrange(256) for _ in range(at))
    names = [name for name in header if name != "__metadata__"]
    text = None
    for _ in range(draw.randint(1, 3)):
        entry, kind = header.get(draw.choice(names)), draw.randrange(14)
        if entry is None:
            continue
        if kind == 0:
            entry["data_offsets"] = [draw.choice((-8, -1, 0, 1, 4, 24)) for _ in range(2)]
        elif kind == 1:
            entry["shape"] = draw.choice(([0], [-1], [2**62, 4], [2**64], [1.5], ["2"], entry.get("shape", []) + [1], [1] * 40))
        elif kind == 2:
            entry["dtype"] = draw.choice((*OURS, "f32", "F128", "", None, 3))
        elif kind == 3:
            data += b"\0" * draw.choice((1, 8))
        elif kind == 4:
            data = data[:-draw.choice((1, 8))]
        elif kind == 5:
            header["__metadata__"] = draw.choice(({"a": 1}, {"a": None}, [], "x", {}, {"a": {"b": "c"}}, None))
        elif kind == 6:
            entry.pop(draw.choice(("dtype", "shape", "data_offsets")), None)
        elif kind == 7:
            entry["more"] = draw.choice((1, None, {"x": []}))
        elif kind == 8:
            header["empty"] = {"dtype": "F32", "shape": draw.choice(([0], [0, 3], [3, 0])), "data_offsets": [draw.choice((0, at))] * 2}
        elif kind == 9:
            entry["data_offsets"] = draw.choice(([0], [0, 4, 8], [4, 0], ["0", "4"], None, [0, 2**63], [0.0, 4.0], [-4, 0]))
        elif kind == 10:
            del header[draw.choice(names)]
            names = [name for name in header if name != "__metadata__"] or ["none"]
        elif kind == 11:
            header[draw.choice(("", "é", "a/b", "\u0000", "x" * 300))] = dict(entry)
        elif kind == 12:
            size = entry.get("data_offsets")
            if isinstance(size, list) and len(size) == 2 and all(isinstance(n, int) and abs(n) < 1000 for n in size):
                data, moved = data + b"\0" * max(0, size[1] - size[0]), len(data)
                entry["data_offsets"] = [moved, moved + size[1] - size[0]]  # leaves a hole
        else:
            raw = bytearray(json.dumps(header).encode())
            for _ in range(draw.randint(1, 2)):
                raw[draw.randrange(len(raw))] = draw.choice(b'0123456789"{}[]:, \n\t\\xeE-+.\xff')
            text = bytes(raw)
            break
    text = text or json.dumps(header).encode()
    if draw.random() < 0.1:
        text = draw.choice((b" ", b"\n", b"\xef\xbb\xbf")) + text
    if draw.random() < 0.3:
        text += b" " * draw.randrange(9)
    if draw.random() < 0.05:
        text += draw.choice((b"x", b"{}", b"\0"))
    return text, data


def our_files(context):
    """Every kind of file that this program writes."""
    run = context.run("small", "[checkpoint]\nevery_steps = 10\n")
    found = sorted(run.rglob("*.safetensors"))
    for dtype in ("f32", "bf16", "f16"):
        context.mulligan("checkpoint", "export", run / "weights.safetensors", "--dtype", dtype, "--out", f"{dtype}.safetensors")
        found.append(context.scratch / f"{dtype}.safetensors")
    context.mulligan("vectors", "pack", run, f"same={run}", "--bits", 4, "--out", "vectors.safetensors")
    found.append(context.scratch / "vectors.safetensors")
    if context.planted:  # a tensor is moved eight bytes away from the one before it
        path = context.scratch / "hole.safetensors"
        write_safetensors(path, {"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]},
                                 "b": {"dtype": "F32", "shape": [1], "data_offsets": [12, 16]}}, bytes(16))
        found.append(path)
    return found


def judge(context):
    files, wrong, tensors = our_files(context), [], 0
    for path in files:
        theirs = they_read(path)
        if theirs is None or theirs != by_hand(path):
            wrong.append(path.name)
        tensors += len(theirs or {})
    yield Row(f"{len(files)} files of ours, {tensors} tensors: names, dtypes, shapes, bytes",
              f"{len(wrong)} files{': ' + ', '.join(wrong) if wrong else ''}", "0", not wrong)
    if context.planted:
        return

    folder = context.scratch / "mutations"
    folder.mkdir()

    def both(number):
        path = folder / f"{number}.safetensors"
        write_safetensors(path, *mutated(number))
        ours, sentence = we_read(context, path)
        return number, ours, they_read(path) is not None, sentence

    with concurrent.futures.ThreadPoolExecutor() as pool:
        verdicts = list(pool.map(both, range(MUTATIONS)))
    unequal = [v for v in verdicts if v[1] != v[2]]
    accepted = sum(theirs for _, _, theirs, _ in verdicts)
    more = f": {[(number, 'we accept' if ours else sentence) for number, ours, _, sentence in unequal[:3]]}" if unequal else ""
    yield Row(f"{MUTATIONS} changed files, {accepted} of which they accept: accepted or refused", f"{len(unequal)} verdicts{more}", "0",
              not unequal)

    unclear = []
    for dtype, bits in THEIRS.items():
        path = folder / f"{dtype}.safetensors"
        write_safetensors(path, {"w": {"dtype": dtype, "shape": [8], "data_offsets": [0, bits]}}, bytes(bits))
        accepted, sentence = we_read(context, path)
        if they_read(path) is None:
            unclear.append(f"{dtype} (they refuse it)")
        elif accepted or dtype not in sentence:
            unclear.append(dtype)
    yield Row(f"{len(THEIRS)} element types of theirs that we do not have: refused in a sentence that names the type",
              f"{len(unclear)} types{': ' + ', '.join(unclear) if unclear else ''}", "0", not unclear)
