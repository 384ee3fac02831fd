"""The prediction of a step (mulligan profile --predict) against what was measured, kernel by kernel."""
import array
import json

from corpus import record_data, record_settings, record_shape

CARDS = {"H100": "h100", "H200": "h200", "A100": "a100"}  # by a part of the name that nvidia-smi gives
SHARD_HEADER_BYTES = 1024


def card_of(machine):
    """The card of a prediction; None where there is none for it."""
    return next((card for part, card in CARDS.items() if part in machine), None)


def document_tokens(context):
    """Mean length, over tokens, of the first shard's documents as rows hold them: cut at the sequence length."""
    folder, longest = record_data(context), record_shape(context)[1]["sequence"]
    bos = json.loads((folder / "manifest.json").read_text())["tokenizer"]["bos_id"]
    tokens = array.array("H")
    tokens.frombytes(sorted(folder.glob("*_train_*.bin"))[0].read_bytes()[SHARD_HEADER_BYTES:])
    starts = [place for place, token in enumerate(tokens) if token == bos] + [len(tokens)]
    lengths = []
    for length in (end - start for start, end in zip(starts, starts[1:])):
        lengths += [longest] * (length // longest) + [length % longest]
    return round(sum(length * length for length in lengths) / sum(lengths))


def predict(context, config, card, looped):
    """One phase of `mulligan profile --predict --json` for the record's shape on one GPU."""
    order = ["--phase", "looped"] if looped else []
    text = context.mulligan("profile", config, "--predict", "--json", "--card", card, "--document-tokens",
                            document_tokens(context), *order, *record_settings(context))
    return json.loads(text)["phases"][0]


def by_kernel(rows):
    """Rows of a prediction, or of a measured profile, added up by program and kernel."""
    found = {}
    for row in rows:
        sums = found.setdefault((row["program"], row["kernel"]), {"calls": 0, "launches": 0, "seconds": 0.0})
        for name in sums:
            sums[name] += row.get(name, 0)
    return found


def table(measured, predicted, card):
    """Markdown: every kernel that either names, the longest first; the rows of both add up to the last line."""
    ours, theirs = by_kernel(measured["rows"]), by_kernel(predicted["rows"])
    milliseconds = lambda row: f"{1e3 * row['seconds']:.3f}" if row else "-"
    lines = [f"Measured against predicted for {card} (documents of the same mean length); no rate was fitted to these measurements:", "",
             "| program | kernel | calls | launches | ms measured | ms predicted | measured / predicted |",
             "|---|---|---|---|---|---|---|"]
    longest = lambda key: -max(rows[key]["seconds"] if key in rows else 0 for rows in (ours, theirs))
    for key in sorted({*ours, *theirs}, key=longest):
        mine, theirs_ = ours.get(key), theirs.get(key)
        ratio = f"{mine['seconds'] / theirs_['seconds']:.2f}" if mine and theirs_ else "-"
        lines.append(f"| {key[0]} | {key[1]} | {(mine or theirs_)['calls']} | {theirs_['launches'] if theirs_ else '-'} "
                     f"| {milliseconds(mine)} | {milliseconds(theirs_)} | {ratio} |")
    step, foreseen = measured["step_seconds"], predicted["predicted_step_seconds"]
    lines.append(f"| whole step | | {predicted['calls']} | {predicted['launches']} | {1e3 * step:.3f} | {1e3 * foreseen:.3f} "
                 f"| {step / foreseen:.2f} |")
    return "\n" + "\n".join(lines)
