"""Rows of the first part: the backend's results against the cpu backend's and the reference's, bit-identical repetition,
and what NVIDIA's checkers find."""
import concurrent.futures
import json
import os
import re

import place
from context import machine, require_near, step_losses, weights
from corpus import data_settings, small_data, small_settings, arguments
from harness import NotOk, Rows, Skipped

rows = Rows()
QUICKSTART = "quickstart.toml"


@rows.row("machine", "correctness", "the device, the program and the libraries it will find", 60)
def the_machine(context, detail):
    figures = {"device": machine(context), "version": context.mulligan("--version").strip(),
               "commit": place.commit(context.folder)}
    if not context.emulated:
        folders = place.library_folders(context.options.python)
        figures["CUDA_libraries"] = ":".join(folders) or "of the system"
        if figures["device"].startswith("no GPU"):
            raise NotOk("nvidia-smi finds no GPU")
    return figures


def run_tests(context, program, filter_all, filter_quick, compiles):
    """A GoogleTest program on the device under test; how many tests passed. If it `compiles` kernels of many shapes, which takes
    most of the time on a GPU, in parts side by side."""
    program, chosen = context.test_program(program), filter_quick if context.quick else filter_all
    shards = max(1, min(8, (os.cpu_count() or 1) // 2)) if compiles and not context.emulated else 1
    environment = {"MULLIGAN_TEST_DEVICE": context.options.device, "MULLIGAN_GOLDEN_DIR": str(place.ROOT / "tests/golden"),
                   "GTEST_TOTAL_SHARDS": str(shards)}

    def run(shard):
        report = context.scratch / f"{program.name}.{shard}.json"
        report.unlink(missing_ok=True)
        context.commands.run([program, f"--gtest_filter={chosen}", "--gtest_brief=1", f"--gtest_output=json:{report}"],
                             {**environment, "GTEST_SHARD_INDEX": str(shard)}, codes=(0, 1))
        if not report.exists():
            raise NotOk(f"{program.name} left no report")
        return [(f"{suite['name']}.{test['name']}", test) for suite in json.loads(report.read_text())["testsuites"]
                for test in suite["testsuite"]]

    with concurrent.futures.ThreadPoolExecutor(shards) as together:
        tests = [test for shard in together.map(run, range(shards)) for test in shard]
    failed = [name for name, test in tests if test.get("failures")]
    skipped = [name for name, test in tests if test.get("result") == "SKIPPED"]
    figures = context.partial = {"passed": len(tests) - len(failed) - len(skipped), "failed": len(failed)}
    if skipped:
        figures["skipped"] = " ".join(skipped)
    if failed:
        raise NotOk(f"{len(failed)} of {len(tests)} tests failed: {', '.join(failed[:5])}")
    if not tests or len(tests) == len(skipped):
        raise NotOk(f"{program.name} ran no test for {chosen}")
    return figures


# Name, what it compares, limit in seconds, program, tests of all and of --quick; whether they compile kernels of many shapes.
for name, what, limit, *tests in (
        ("kernels", "every kernel against the formulas and the cpu backend (fp32 2e-5, bf16 2e-2)", 240,
         "mulligan_emulated_tests", "*", "*norm*:*rope*:*softcap*:*adamw*:*sum_*:*embedding*:PlantedBugs*", True),
        ("model", "logits and gradients of the model against the cpu backend (fp32 2e-5; bf16 cosine 0.999)", 60,
         "mulligan_end_to_end_tests", "CudaModel.*", "CudaModel.*", False),
        ("golden", "the reference's numbers in fp32, but for test-time training", 120,
         "mulligan_golden_tests", "*-*TttGolden*", "MuonGolden*:AdamwGolden*:ClipGolden*:SoftcapCe*", True),
        ("golden-ttt", "the reference's test-time training in fp32, token by token", 150,
         "mulligan_golden_tests", "*TttGolden*", "TttGolden.PhaseTokens:TttGolden.ForwardAndGradients", False),
        ("runs", "20 steps, artifact, test-time training and planned memory against the cpu backend", 120,
         "mulligan_end_to_end_tests", "CudaRun.*", "CudaRun.TrainsLike*:CudaRun.TakesTheMemory*", False)):
    rows.row(name, "correctness", what, limit)(lambda context, detail, tests=tests: run_tests(context, *tests))


def trained(context, backend, dtype, steps):
    def train():
        return context.train(f"{backend}_{dtype}", context.config(QUICKSTART), small_settings(context, backend, dtype, steps))
    return context.once(("trained", backend, dtype), train)


def steps_of(context):
    return 3 if context.quick else 10 if context.emulated else 20


def compare_training(context, dtype, first, every, score):
    ours, cpu = (trained(context, backend, dtype, steps_of(context)) for backend in ("cuda", "cpu"))
    losses, expected = (step_losses(context.run_folder(f"{backend}_{dtype}")) for backend in ("cuda", "cpu"))
    if len(losses) != steps_of(context) or len(expected) != steps_of(context):
        raise NotOk(f"{len(losses)} and {len(expected)} steps were logged instead of {steps_of(context)}")
    largest = max(abs(a - b) / b for a, b in zip(losses, expected))
    figures = {"steps": len(losses), "largest_difference_of_a_loss": largest, "val_bpb": ours["val_bpb"], "cpu": cpu["val_bpb"]}
    context.partial = figures
    require_near("loss of the first step", losses[0], expected[0], first * expected[0])
    for step, (a, b) in enumerate(zip(losses, expected)):
        require_near(f"loss of step {step}", a, b, every * b)
    require_near("val_bpb", ours["val_bpb"], cpu["val_bpb"], score)
    return figures


rows.row("train-fp32", "correctness", "training in fp32 against the same run on the cpu backend", 120)(
    lambda context, detail: compare_training(context, "fp32", 2e-6, 1e-3, 2e-3))
rows.row("train-bf16", "correctness", "training in bf16 against the same run on the cpu backend", 120)(
    lambda context, detail: compare_training(context, "bf16", 2e-3, 2e-2, 2e-2))


@rows.row("artifact", "correctness", "quantised on the device, scored on both", 120)
def artifact(context, detail):
    trained(context, "cuda", "fp32", steps_of(context))
    folder = context.run_folder("cuda_fp32")
    context.mulligan("quantize", folder, *([] if context.quick else ["--source", place.ROOT]))
    made = folder / "artifact.mulligan"
    scores = {}
    for backend in ("cuda", "cpu"):
        text = context.mulligan("eval", made, *arguments({**context.backend(backend), **data_settings(small_data(context))}))
        scores[backend] = float(re.search(r"val_bpb\s+([\d.]+)", text).group(1))
    figures = context.partial = {"bytes": made.stat().st_size, "val_bpb": scores["cuda"], "cpu": scores["cpu"]}
    require_near("val_bpb of the artifact", scores["cuda"], scores["cpu"], 1e-4 + 1e-5)  # printed with five digits
    return figures


@rows.row("ttt", "correctness", "test-time training of that artifact on both", 150)
def ttt(context, detail):
    made = context.run_folder("cuda_fp32") / "artifact.mulligan"
    if not made.exists():
        artifact(context, detail)
    seen = {}
    for backend in ("cuda", "cpu"):
        output = context.scratch / f"ttt_{backend}"
        output.mkdir(exist_ok=True)
        context.mulligan("ttt", made, "--output", output, *small_settings(context, backend, "fp32", steps_of(context)))
        seen[backend] = json.loads((output / "ttt_result.json").read_text())
    ours, cpu = seen["cuda"], seen["cpu"]
    figures = context.partial = {"tokens": ours["with_ttt"]["tokens"], "without": ours["without_ttt"]["val_bpb"],
                                 "with": ours["with_ttt"]["val_bpb"], "cpu": cpu["with_ttt"]["val_bpb"]}
    if ours["with_ttt"]["tokens"] != cpu["with_ttt"]["tokens"]:
        raise NotOk("both scored different tokens")
    require_near("val_bpb without", ours["without_ttt"]["val_bpb"], cpu["without_ttt"]["val_bpb"], 1e-4)
    require_near("val_bpb with", ours["with_ttt"]["val_bpb"], cpu["with_ttt"]["val_bpb"], 1e-3)
    return figures


def probed(context, folder, backend, *more):
    """mulligan probe logits of a run: its measurements by precision."""
    figures = context.scratch / "probe.json"
    sizes = ["--sequences", 2, "--length", 32, "--prompt", 16, "--tokens", 4] if context.emulated else [
        "--sequences", 8, "--length", 256, "--tokens", 256]
    batches = "1,3" if context.emulated else "1,3,8,32"
    context.mulligan("probe", "logits", folder, "--precisions", "fp32,bf16,layercast-bf16", "--batches", batches, *sizes, "--json",
                     figures, "--quiet", *more, *arguments({**context.backend(backend), **data_settings(small_data(context))}))
    return {one["precision"]: one for one in json.loads(figures.read_text())["measurements"]}


@rows.row("layercast", "correctness", "logits over batch sizes: 16-bit projections in fp32 arithmetic change nothing, bf16 does", 150)
def layercast(context, detail):
    trained(context, "cuda", "fp32", steps_of(context))
    seen = probed(context, context.run_folder("cuda_fp32"), "cuda")

    def largest(precision):
        return max(change["largest_over_rms"] for change in seen[precision]["batch_changes"])

    def flips(precision):
        return sum(change["top1_flips"] for change in seen[precision]["batch_changes"])

    def index(precision):
        return min(change["mean_divergence_index"] for change in seen[precision]["batch_changes"])

    cast = seen["layercast-bf16"]
    figures = {"layercast": largest("layercast-bf16"), "flips": flips("layercast-bf16"), "index": index("layercast-bf16"),
               "fp32": largest("fp32"), "bf16": largest("bf16"), "bf16_flips": flips("bf16"), "bf16_index": index("bf16"),
               "bytes": cast["weight_bytes"]}
    context.partial = figures
    if cast["weight_bytes"] != 2 * cast["projection_elements"] + 4 * cast["other_elements"]:
        raise NotOk("weights take other than two bytes an element of projections and four of the rest")
    if figures["layercast"] > 1e-5 or figures["flips"] > 0:
        raise NotOk(f"LayerCast's logits move by {figures['layercast']:.1e} of their rms with the batch's size")
    return figures


def repeated(context, name, steps, **more):
    def train():
        settings = small_settings(context, "cuda", "bf16", steps, **{
            "run.determinism": "run", "data.validation": "''", **more})
        context.train(name, context.config(QUICKSTART), settings)
        return weights(context.run_folder(name)), step_losses(context.run_folder(name))
    return context.once(("repeated", name), train)


def compare_bits(context, other, **more):
    steps = 2 if context.quick else 6
    return require_equal_bits(context, repeated(context, "captured", steps), repeated(context, other, steps, **more))


def require_equal_bits(context, ours, theirs):
    differ = [name for name in ours[0] if ours[0][name] != theirs[0].get(name)]
    context.partial = figures = {"steps": len(ours[1]), "tensors": len(ours[0]), "different": len(differ)}
    if differ or not ours[0]:
        raise NotOk(f"weights differ: {', '.join(differ[:5])}")
    if ours[1] != theirs[1] or not ours[1]:
        raise NotOk("losses differ")
    return figures


rows.row("repeat", "correctness", "the same bf16 run twice under determinism = run, to the bit", 90)(
    lambda context, detail: compare_bits(context, "again"))
rows.row("graphs", "correctness", "captured graphs against calls one by one, to the bit", 90)(
    lambda context, detail: compare_bits(context, "eager", **{"backend.graphs": "false"}))
rows.row("rows", "correctness", "every kernel's rows alone and among 128 sequences under batch_invariant, to the bit", 240)(
    lambda context, detail: run_tests(context, "mulligan_emulated_tests", "All/KernelRows.*:Determinism.*",
                                      "All/KernelRows.*rms_norm*:All/KernelRows.*matmul*:Determinism.*", True))


def scored_side_by_side(context, level, windows):
    """Nats per token and training tokens/s of two steps; so many windows are scored side by side."""
    name, steps = f"{level}-{windows}", 2 if context.quick else 20
    context.train(name, context.config(QUICKSTART), small_settings(context, "cuda", "fp32", steps, **{
        "run.determinism": level, "eval.mode": "sliding", "eval.sequence_length": 64, "eval.stride": 64,
        "eval.packed_sequences": windows}))
    result = json.loads((context.run_folder(name) / "result.json").read_text())
    return result["val_loss_nats"], result["tokens_per_second"]


@rows.row("batch", "correctness", "a score under determinism = batch with 1, 3 and 16 windows side by side, to the bit", 150)
def batch(context, detail):
    scores = {windows: scored_side_by_side(context, "batch", windows) for windows in (1, 3, 16)}
    run = scored_side_by_side(context, "run", 16)
    context.partial = figures = {
        "different": len({score for score, _ in scores.values()}) - 1, "val_loss_nats": scores[1][0],
        "tokens_s_batch": scores[16][1], "tokens_s_run": run[1]}
    if figures["different"]:
        raise NotOk(f"scores differ: {scores}")
    require_near("val_loss_nats", scores[1][0], run[0], 1e-3)
    return figures


def no_fault(summary):
    """Of compute-sanitizer's "ERROR SUMMARY: 0 errors" and "RACECHECK SUMMARY: 0 hazards displayed (0 errors, 0 warnings)"."""
    return re.search(r"SUMMARY: 0 (errors|hazards)\b", summary) is not None


def checked(context, tool):
    if context.emulated:
        raise Skipped("needs a GPU; the emulated device checks accesses and races in every row")
    program = context.tool("compute-sanitizer")
    folder = context.run_folder(tool)
    settings = small_settings(context, "cuda", "bf16", 1, **{"train.tokens_per_step": 512, "data.validation": "''"})
    found = context.scratch / f"{tool}.txt"
    context.commands.run([program, "--tool", tool, "--log-file", found, "--print-limit", "20", context.folder / "bin/mulligan",
                          "train", context.config(QUICKSTART), "--set", f"run.directory={folder}", *settings], codes=(0, 1))
    text = found.read_text() if found.exists() else ""
    context.commands.log.write(text)
    summary = next((line.strip("= ") for line in text.splitlines() if "SUMMARY" in line), "")
    if not summary:
        raise NotOk(f"compute-sanitizer {tool} gave no summary")
    context.partial = {"summary": summary}
    if not no_fault(summary):
        raise NotOk(f"{tool} found faults")
    if not (folder / "result.json").exists():
        raise NotOk("the run did not end")
    return {"summary": summary}


rows.row("memcheck", "correctness", "compute-sanitizer memcheck on a step", 120)(lambda context, detail: checked(context, "memcheck"))
rows.row("racecheck", "correctness", "compute-sanitizer racecheck on a step", 150)(lambda context, detail: checked(context, "racecheck"))
