"""Submissions to the challenge by others, as they were published, and a second reading of each that shares nothing with this program.

MULLIGAN_SUBMISSIONS names a folder with one folder per submission (submission.json, README.md, logs)."""
import json
import os
import pathlib
import re
import shutil

from judges.support import Row

JUDGE = "submissions of others"
NEEDS = []
FAULTS = ["another-score-in-a-log"]

VERDICTS = {0: "sound", 1: "breaks a rule", 3: "contradicts itself"}
LIMIT = 16_000_000
# What people found who audited these folders without a program.
AUDITED = {"1701": 3, "1702": 3, "1886": 0}
FINAL = re.compile(r"^(?:quantized|final_|legal_ttt)\S*\s.*?val_bpb:\s*([0-9.]+)", re.M)
TOTAL = re.compile(r"^Total submission size (?:quantized|int8|int6)\S*: (\d+) bytes", re.M)


def numbers(value):
    """Results by seed, in the forms that people publish; those without a figure are left out."""
    results = value.get("seed_results") or value.get("results") or {}
    rows = results.items() if isinstance(results, dict) else ((str(r.get("seed")), r) for r in results if isinstance(r, dict))
    for seed, row in rows:
        row = row if isinstance(row, dict) else {"val_bpb": row}
        if seed.isdigit():
            yield seed, row
    if not results and isinstance(value.get("val_bpb"), (int, float)) and value.get("seed") is not None:
        yield str(value["seed"]), value


def second_reading(folder):
    """(exit code, reason) by three rules: the mean follows from the seeds, each seed's log has its score and its bytes, and no log
    or claim has more bytes than the limit."""
    try:
        claims = json.loads((folder / "submission.json").read_text())
    except (ValueError, FileNotFoundError):
        return 3, "no readable submission.json"
    rows = list(numbers(claims))
    claimed_bpb = [row["val_bpb"] for _, row in rows if isinstance(row.get("val_bpb"), (int, float))]
    if len(claimed_bpb) > 1 and isinstance(claims.get("val_bpb"), (int, float)):
        mean = sum(claimed_bpb) / len(claimed_bpb)
        if abs(mean - claims["val_bpb"]) > 1.01e-4:
            return 3, f"claims a mean of {claims['val_bpb']}, that of its seeds is {mean:.6f}"
    logs = {path.name: path.read_text(errors="replace") for path in sorted(folder.glob("*.log")) + sorted(folder.glob("*.txt"))}
    over = 0
    for seed, row in rows:
        claimed = next((row[key] for key in ("artifact_bytes", "submission_bytes", "bytes_total") if isinstance(row.get(key), int)), None)
        over = max(over, claimed or 0)
        mine = [text for name, text in logs.items() if seed in re.findall(r"\d+", name)] or (list(logs.values()) if len(rows) == 1 else [])
        if len(mine) != 1:
            continue
        scores, totals = FINAL.findall(mine[0]), TOTAL.findall(mine[0])
        if scores and "val_bpb" in row and min(abs(float(s) - row["val_bpb"]) for s in scores) > 1.01e-4:
            return 3, f"seed {seed}: claims {row['val_bpb']}, its log ends with {scores[-1]}"
        if totals and claimed and min(abs(int(t) - claimed) for t in totals) > 1:
            return 3, f"seed {seed}: claims {claimed} bytes, its log says {totals[-1]}"
        over = max(over, *(int(t) for t in totals[-1:]), 0)
    for key in ("bytes_total", "artifact_bytes"):
        if isinstance(claims.get(key), int):
            over = max(over, claims[key])
    return (1, f"{over} bytes, more than {LIMIT}") if over > LIMIT else (0, "")


def reason_of(done, folder):
    return re.sub(r"^mulligan: '.*?' is refused by ", "", done.stderr.strip()).removesuffix("; state what the runs' own logs say, and "
                                                                                            "leave the logs as they are.")


def judge(context):
    place = pathlib.Path(os.environ.get("MULLIGAN_SUBMISSIONS", ""))
    folders = sorted(path for path in place.iterdir() if path.is_dir()) if os.environ.get("MULLIGAN_SUBMISSIONS") else []
    if not folders:
        yield Row("all of it", "MULLIGAN_SUBMISSIONS names no folder with submissions", "", None)
        return
    if context.planted:
        yield plant(context, folders)
        return
    table, crashed, differing, audits = [], [], [], []
    for folder in folders:
        done = context.call("record", "--verify", folder)
        code, why = second_reading(folder)
        number = folder.name.split("_")[0]
        if done.returncode not in VERDICTS or done.stderr.count("\n") > 1:
            crashed.append(folder.name)
        if done.returncode != code:
            differing.append(f"{folder.name[:40]} ({VERDICTS.get(done.returncode)} here, {VERDICTS[code]} there)")
        if number in AUDITED and AUDITED[number] != done.returncode:
            audits.append(number)
        warned = ", ".join(re.findall(r"^WARN (\w+)", done.stdout, re.M))
        table.append((folder.name, VERDICTS.get(done.returncode, "crash"), reason_of(done, folder) or "", warned, why))
    context.tables["submissions"] = [
        ("folder", "verdict", "reason", "warnings about form", "the second reading"), *table]
    yield Row(f"{len(folders)} folders: crashes and reasons of more than a line", f"{len(crashed)}", "0", not crashed)
    yield Row(f"{len(AUDITED)} of them read by people", f"{len(audits)} other verdicts{audits or ''}", "0", not audits)
    yield Row("verdicts against the second reading", f"{len(differing)} differ{': ' + '; '.join(differing) if differing else ''}",
              "each is explained below", not differing)


def plant(context, folders):
    """A sound folder passes; with another score in one of its logs it must not."""
    for folder in folders:
        logs = [path for path in folder.glob("*.log") if FINAL.search(path.read_text(errors="replace"))]
        if context.call("record", "--verify", folder).returncode == 0 and logs:
            copy = context.scratch / "copy"
            shutil.copytree(folder, copy)
            text = (copy / logs[0].name).read_text(errors="replace")
            spoiled = FINAL.sub(lambda m: m[0].replace(m[1], f"{float(m[1]) + 0.01:.8f}"), text)
            (copy / logs[0].name).write_text(spoiled)
            done = context.call("record", "--verify", copy)
            return Row(f"{folder.name} with another score in {logs[0].name}", reason_of(done, copy) or "nothing", "sound",
                       done.returncode == 0)
    return Row("a sound folder with a log", "there is none", "", None)
