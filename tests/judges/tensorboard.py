"""TensorBoard's own loader reads the event file that `mulligan report --tensorboard` writes: every number of metrics.jsonl, at its step."""
import json

from judges.support import Row

JUDGE = "TensorBoard"
NEEDS = ["tensorboard"]
FAULTS = []

STEP = {"event": "step", "window": [0, 1], "step_seconds": 2.0, "slowest_step_seconds": 2.0}
METRICS = [STEP | {"step": 1, "loss_nats": 7.625, "window_loss_nats": 7.625, "gradient_norm": 0.5, "gradient_norm_of": {"matrices": 0.25},
                   "lr": {"matrices": 0.02}, "tokens": 2048, "tokens_per_second": 1000.0, "elapsed_seconds": 2.0, "budget_fraction": 0.1},
           STEP | {"step": 300, "loss_nats": 4.25, "window_loss_nats": 5.0, "gradient_norm": None, "gradient_norm_of": {"matrices": 0.125},
                   "lr": {"matrices": 0.01}, "tokens": 614400, "tokens_per_second": 1024.0, "elapsed_seconds": 600.0, "budget_fraction": 1.0},
           {"event": "validation", "step": 300, "val_loss_nats": 4.5, "val_bpb": 1.75, "val_tokens": 100, "val_bytes": 300, "seconds": 1.0}]
EXPECTED = {("loss_nats", 1): 7.625, ("loss_nats", 300): 4.25, ("lr/matrices", 300): 0.01, ("gradient_norm/matrices", 300): 0.125,
            ("gradient_norm", 1): 0.5, ("gradient_norm", 300): None, ("tokens", 300): 614400, ("val_loss_nats", 300): 4.5, ("val_bpb", 300): 1.75}


def read(folder):
    """Value and time by tag and step."""
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
    events = EventAccumulator(str(folder))
    events.Reload()
    return {(tag, event.step): (event.value, event.wall_time) for tag in events.Tags()["scalars"] for event in events.Scalars(tag)}


def judge(context):
    run, board = context.scratch / "run", context.scratch / "board"
    run.mkdir()
    (run / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in METRICS))
    context.mulligan("report", run, "--tensorboard", board)
    seen = read(board)
    wrong = [key for key, value in EXPECTED.items() if (value is None) != (key not in seen) or (value and abs(seen[key][0] - value) > 1e-6 * value)]
    yield Row(f"tags, steps and values of an event file: {len(EXPECTED)} numbers", ", ".join(map(str, wrong)) or "none differs", "none differs", not wrong)
    times = [time for _, time in seen.values()]
    yield Row("seconds between its first and its last value", f"{max(times) - min(times):.0f}", "598", round(max(times) - min(times)) == 598)
    (file,) = board.glob("events.out.tfevents.*")
    damaged = bytearray(file.read_bytes())
    damaged[200] ^= 0x7f  # noticed by the reader's checksums, so it is they that were right
    file.write_bytes(damaged)
    yield Row("values that are read of a damaged file", f"{len(read(board))}", f"fewer than {len(seen)}", len(read(board)) < len(seen))
