"""lm-eval scores the same tasks twice: with this program through launch/python, and with its own model of transformers on the folder that
`mulligan export --to hf` writes."""
import importlib
import json
import os
import sys

from judges.support import BUILD, ROOT, Row
from judges.transformers import exported

JUDGE = "lm-eval"
NEEDS = ["numpy", "sentencepiece", "safetensors", "torch", "transformers", "accelerate", "lm-eval"]
FAULTS = ["rotary-base-of-folder"]

TEXTS, QUESTIONS = 20, 16


def tasks_of(context):
    """A text scored whole, and questions with four continuations, both made of the test text."""
    documents = [path.read_text() for path in sorted((context.scratch / "corpus").glob("*.txt"))]
    texts = [document[:300].rsplit(" ", 1)[0] for document in documents[:TEXTS]]
    (context.scratch / "texts.jsonl").write_text("".join(json.dumps({"text": text}) + "\n" for text in texts))
    documents = [document for document in documents if len(document) >= 800]  # a choice of no words is refused by theirs
    questions = []
    for number in range(QUESTIONS):
        words = documents[number % len(documents)][100:400].split()[1:-1]
        others = [" ".join(documents[(number + k) % len(documents)][500 + 40 * k:560 + 40 * k].split()[1:4]) for k in (1, 2, 3)]
        choices = others[:number % 4] + [" ".join(words[-3:])] + others[number % 4:]
        questions.append({"question": " ".join(words[:-3]), "choices": choices, "answer": number % 4})
    (context.scratch / "questions.jsonl").write_text("".join(json.dumps(q) + "\n" for q in questions))

    def task(name, file, **more):
        return {"task": name, "dataset_path": "json", "dataset_kwargs": {"data_files": {"test": str(context.scratch / file)}},
                "test_split": "test", "num_fewshot": 0, "metadata": {"version": 1}} | more
    return [task("local_text", "texts.jsonl", output_type="loglikelihood_rolling", doc_to_text="", doc_to_target="{{text}}",
                 metric_list=[{"metric": "bits_per_byte"}]),
            task("local_questions", "questions.jsonl", output_type="multiple_choice", doc_to_text="{{question}}", doc_to_target="answer",
                 doc_to_choice="choices", metric_list=[{"metric": "acc"}])]


def evaluated(harness, of_texts, of_questions, tasks):
    """Bits per byte, accuracy, and of each question the likelihoods."""
    def results(model, task):
        return harness.simple_evaluate(model=model, tasks=[dict(task)], log_samples=True, bootstrap_iters=0)
    texts, questions = results(of_texts, tasks[0]), results(of_questions, tasks[1])
    samples = sorted(questions["samples"]["local_questions"], key=lambda sample: sample["doc_id"])
    return (texts["results"]["local_text"]["bits_per_byte,none"], questions["results"]["local_questions"]["acc,none"],
            [[answer[0][0] if isinstance(answer[0], (list, tuple)) else answer[0] for answer in sample["resps"]] for sample in samples])


def judge(context):
    os.environ |= {"HF_HUB_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1", "HF_DATASETS_CACHE": str(context.scratch / "datasets"),
                   "MULLIGAN_PROGRAM": str(BUILD / "bin/mulligan"), "TOKENIZERS_PARALLELISM": "false"}
    sys.path.insert(0, str(ROOT / "launch/python"))
    harness = importlib.import_module("lm_eval")
    huggingface = importlib.import_module("lm_eval.models.huggingface")
    ours = importlib.import_module("mulligan.lm_eval")
    run = context.run("small")
    folder = exported(context, run, "judged")
    if context.planted:
        config = json.loads((folder / "config.json").read_text())
        config["model"]["rope.base"] = 20000.0
        (folder / "config.json").write_text(json.dumps(config))
    tasks = tasks_of(context)

    def theirs(add_bos_token):  # it scores a text after a BOS of its own, which would be a second one there
        return huggingface.HFLM(pretrained=str(folder), trust_remote_code=True, device="cpu", dtype="float32", add_bos_token=add_bos_token, batch_size=1)
    bits, right, likelihoods = evaluated(harness, ours.Mulligan(run), ours.Mulligan(run), tasks)
    their_bits, their_right, their_likelihoods = evaluated(harness, theirs(False), theirs(True), tasks)
    yield Row(f"bits per byte of {TEXTS} texts, {bits:.6f} here", f"{abs(bits - their_bits):.1e} bpb", "1e-06", abs(bits - their_bits) <= 1e-6)
    pairs = [(a, b) for mine, other in zip(likelihoods, their_likelihoods) for a, b in zip(mine, other)]
    worst = max(abs(a - b) for a, b in pairs)
    yield Row(f"{len(pairs)} continuations of {QUESTIONS} questions: log-likelihoods", f"{worst:.1e} nats", "1e-04", worst <= 1e-4)
    yield Row(f"{QUESTIONS} questions of four choices: accuracy, {right:.4f} here", f"{abs(right - their_right):.4f}", "0", right == their_right)
