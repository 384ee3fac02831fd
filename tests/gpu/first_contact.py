"""The row that a run begins with: what only a card can answer, in at most three minutes. Each library call and kernel of the
record's step once with its real shapes, against a reference; attention whose batch has empty rows; how many modules,
measurements and plans there were; the time to the first step. Where anything is wrong it prints one block to send back."""
import ctypes
import json
import sys

import place
from context import machine
from corpus import record_settings
from harness import NotOk, Rows

rows = Rows()
SECONDS = 180         # of the row
COMPARING_SECONDS = 120  # of it; calls that come later only run
ATTEMPTS = 4          # a process that a call has ended is started again, the call left to the reference
RECORD = "records/pr1886.toml"


def gpu_missing():
    """Empty where the driver has a GPU, else why there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return "the NVIDIA driver is not installed (libcuda.so.1 is not found)"
    count = ctypes.c_int()
    code = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if code == 100 or not code and count.value == 0:
        return "the NVIDIA driver finds no GPU"
    return f"the NVIDIA driver does not start (cuInit gives {code})" if code else ""


def versions(context):
    """Of driver and libraries, as the program will find them: "CUDA driver 12.4, cuDNN 9.19.0, ..."."""
    code = """
import ctypes, sys
def ask(name, ends, function, text):
    for end in ends:
        try: library = ctypes.CDLL(f"{name}.{end}")
        except OSError: continue
        return text(library)
    return "missing"
def number(function, kind=ctypes.c_int):
    def call(library):
        value = kind(); getattr(library, function)(ctypes.byref(value)); return value.value
    return call
def returned(function):
    def call(library):
        entry = getattr(library, function); entry.restype = ctypes.c_size_t; return entry()
    return call
def nvrtc(library):
    a, b = ctypes.c_int(), ctypes.c_int(); library.nvrtcVersion(ctypes.byref(a), ctypes.byref(b)); return f"{a.value}.{b.value}"
cuda = ("so.13", "so.12", "so")
print("CUDA driver", ask("libcuda", ("so.1",), None, number("cuDriverGetVersion")),
      "| NVRTC", ask("libnvrtc", cuda, None, nvrtc), "| cuBLASLt", ask("libcublasLt", cuda, None, returned("cublasLtGetVersion")),
      "| cuDNN", ask("libcudnn", ("so.9",), None, returned("cudnnGetVersion")),
      "| NCCL", ask("libnccl", ("so.2",), None, number("ncclGetVersion")))
"""
    try:
        return context.commands.run([context.options.python, "-c", code]).strip()
    except NotOk as fault:
        return f"not known ({fault})"


class Seen:
    """The events of all attempts: calls by number, what was set up, what the device logged."""

    def __init__(self):
        self.calls, self.logs, self.ready, self.end = {}, [], None, None
        self.error, self.open = "", None  # of the last attempt: its sentence, the call that did not end

    def read(self, path):
        """One attempt's events. What it reports of a call that was left to the reference does not replace what is known."""
        self.error, self.open, self.end = "", None, None
        for line in path.read_text().splitlines() if path.exists() else []:
            try:
                event = json.loads(line)
            except ValueError:
                break  # cut off where the process ended
            kind = event.pop("event")
            if kind == "begin":
                self.open = event
            elif kind == "call":
                self.open = None
                if event["verdict"] != "taken over":
                    self.calls[event["number"]] = event
            elif kind == "log":
                self.logs.append(event["line"])
            elif kind == "ready":
                self.ready = self.ready or event
            elif kind == "end":
                self.end = event
            elif kind == "error":
                self.error = event["sentence"]

    def stopped_at(self, sentence):
        """The number of the call at which the device or the process stopped; None: at none."""
        stopped = [number for number, call in self.calls.items() if call.get("stopped") and not call.get("left")]
        if self.open is not None:
            number = self.open["number"]
            self.calls[number] = {**self.open, "verdict": "failed", "stopped": True, "seconds": 0.0,
                                  "sentence": f"the process ended within this call ({sentence})"}
            stopped.append(number)
        for number in stopped:
            self.calls[number]["left"] = True
        return stopped[-1] if stopped else None

    def of(self, *verdicts):
        return [call for _, call in sorted(self.calls.items()) if call["verdict"] in verdicts]


OWN_ATTENTION = {"run.require_libraries": "false", "backend.attention": "own"}


def walk(context):
    """Runs the program, again with the calls that ended it left to the reference, and where nothing was set up without a
    library of attention; what was seen, the faults of setting up, and the files."""
    program = context.test_program("mulligan_first_contact")
    seen, taken_over, files, faults, settings = Seen(), [], [], [], {}
    for attempt in range(1, ATTEMPTS + 1):
        events = context.out / f"first_contact.{attempt}.jsonl"
        events.unlink(missing_ok=True)
        more = ["--taken-over", ",".join(map(str, taken_over))] if taken_over else []
        sentence = ""
        try:
            context.commands.run([program, context.config(RECORD), "--events", events, "--seconds", COMPARING_SECONDS, *more,
                                  *record_settings(context, **settings)], codes=(0, 1, 3))
        except NotOk as fault:
            sentence = str(fault)
        files.append(events)
        seen.read(events)
        stopped = seen.stopped_at(sentence)
        if stopped is not None:
            taken_over.append(stopped)
            continue
        if sentence:
            faults.append(("" if seen.ready else "nothing was set up: ") + (seen.error or sentence))
        if seen.ready or settings:
            break
        settings = OWN_ATTENTION
    return seen, faults, files


def describe(call):
    return f"call {call['number']}, {call['kernel']} of the {call['program']}, {call['shapes']}: {call['sentence']}"


def block(context, seen, faults, files):
    """What to send back."""
    lines = ["---- send this back " + "-" * 60, f"card      {machine(context)}", f"versions  {versions(context)}",
             f"device    {seen.ready['device'] if seen.ready else 'not set up'}", f"commit    {place.commit(context.folder)}"]
    lines += [f"failed    {fault}" for fault in faults]
    names = ", ".join(str(file) for file in [*files, context.out / "log.txt"])
    return "\n".join([*lines, f"files     {names}", "-" * 80])


def first_step_seconds(context):
    """Seconds to the end of a first step of training, with the kernels of the walk in the cache."""
    text = context.mulligan("profile", context.config(RECORD), "--json", "--steps", 1, *record_settings(context))
    return json.loads(text)["first_step_seconds"]


@rows.row("first-contact", "correctness", "each call of the record's step once, against a reference; attention with empty rows; counts",
          SECONDS)
def first_contact(context, detail):
    seen, faults, files = walk(context)
    wrong = seen.of("failed", "differs")
    faults += [describe(call) for call in wrong]
    figures = context.partial = {"calls": len(seen.calls), "agree": len(seen.of("agrees")), "wrong": len(wrong),
                                 "not_compared": len(seen.of("not compared"))}
    if seen.ready:
        figures["set_up_s"] = seen.ready["seconds"]
    if seen.end:
        figures["measurements"] = seen.end["measurements"]
    made = [line for line in seen.logs if "modules of kernels: " in line]
    if made:  # "...; modules of kernels: ...; plans of attention: 22"
        figures["made"] = made[-1]
    if not faults:
        try:
            figures["first_step_s"] = first_step_seconds(context)
        except NotOk as fault:
            faults.append(f"the first whole step: {fault}")
    compared = [call for call in seen.of("agrees") if call["limit_largest"] > 0]
    nearest = sorted(compared, key=lambda call: -call["largest"] / call["limit_largest"])[:10]
    detail.append(call_table(wrong + [call for call in nearest if call not in wrong]))
    if faults:
        text = block(context, seen, faults, files)
        print(text, file=sys.stderr, flush=True)
        detail.append(f"\n```\n{text}\n```")
        raise NotOk(f"{len(wrong)} of {len(seen.calls)} calls are wrong; first: {faults[0]}")
    if not seen.of("agrees") or not seen.end:
        raise NotOk("no call was compared")
    return figures


def call_table(calls):
    """Calls that are wrong, and those nearest to their limits."""
    lines = ["| call | program | kernel | shapes | verdict | reference | argument | largest difference | of all | limits |",
             "|---|---|---|---|---|---|---|---|---|---|"]
    for call in calls:
        figures = [f"{call.get(name, 0):.1e}" for name in ("largest", "rms")]
        limits = f"{call.get('limit_largest', 0):.0e}, {call.get('limit_rms', 0):.0e}"
        lines.append("| " + " | ".join(map(str, [call["number"], call["program"], call["kernel"], call["shapes"], call["verdict"],
                                                 call.get("reference", ""), call.get("argument", ""), *figures, limits])) + " |")
    return "\n".join(lines)
