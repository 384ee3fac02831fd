"""A model for lm-eval (EleutherAI's lm-evaluation-harness) that scores and continues texts by this program.

    import lm_eval, mulligan.lm_eval
    lm_eval.simple_evaluate(model=mulligan.lm_eval.Mulligan("runs/quickstart"), tasks=["lambada_openai"])

It needs the packages lm-eval and sentencepiece (`pip install 'mulligan[lm-eval]'`) and a program with its experiments
(`mulligan probe calibration`). Every text begins with the document mark (BOS), as in training.
"""
from __future__ import annotations

import json
import os
import struct
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import sentencepiece
from lm_eval.api.model import TemplateLM
from lm_eval.api.registry import register_model
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from mulligan.commands import command
from mulligan.program import Error
from mulligan.run import Run


@register_model("mulligan")
class Mulligan(TemplateLM):
    """The weights of a run directory, or `weights`: another file that `mulligan eval` takes, such as its artifact."""

    def __init__(self, run: str | os.PathLike[str], weights: str | os.PathLike[str] = "", **_: Any) -> None:
        super().__init__()
        self.run = Run(run)
        self.weights = os.fspath(weights or run)
        config = self.run.config
        self.pieces = sentencepiece.SentencePieceProcessor(model_file=config["data"]["tokenizer"])
        if self.pieces.is_unknown(self.pieces.piece_to_id("\ue001")) is False:
            raise Error("the run's tokenizer transforms its text first (CaseOps), which this adapter does not.", 2)
        self.row = int(config["eval"]["sequence_length"])

    @property
    def eot_token_id(self) -> int:
        return int(self.pieces.bos_id())

    @property
    def max_length(self) -> int:
        """Tokens that are read at once; BOS is one of them."""
        return self.row - 1

    def tok_encode(self, string: str, add_special_tokens: bool | None = None, **_: Any) -> list[int]:
        return list(self.pieces.encode(string))

    def _loglikelihood_tokens(self, requests: Sequence[tuple[Any, list[int], list[int]]], **_: Any) -> list[tuple[float, bool]]:
        bos = self.eot_token_id
        documents, behind = [], []
        for _texts, context, continuation in requests:
            room = self.max_length - len(continuation)
            if room < 0:
                raise Error(f"a continuation has {len(continuation)} tokens, more than eval.sequence_length = {self.row} holds.", 2)
            kept = [token for token in context[-room or len(context):] if token != bos]
            documents.append([bos, *kept, *continuation])
            behind.append(1 + len(kept))
        return [(-sum(nats for nats, _ in scored[begin - 1:]), all(best for _, best in scored[begin - 1:]))
                for scored, begin in zip(self._scores(documents), behind)]

    def _scores(self, documents: Sequence[list[int]]) -> list[list[tuple[float, bool]]]:
        """Of each token but the first: nats, and whether it is the most likely. No document is cut by the end of a row."""
        stream: list[int] = []
        begins = []
        for document in documents:
            if len(stream) % self.row + len(document) > self.row:
                stream += [self.eot_token_id] * (-len(stream) % self.row)
            begins.append(len(stream))
            stream += document
        stream += [self.eot_token_id] * (-len(stream) % self.row + 1)
        with tempfile.TemporaryDirectory() as folder:
            shard, items = Path(folder) / "fineweb_val_000000.bin", Path(folder) / "items.jsonl"
            shard.write_bytes(struct.pack("<256i", 20240520, 1, len(stream), *[0] * 253) + struct.pack(f"<{len(stream)}H", *stream))
            settings = {"data.validation": str(shard), "eval.mode": "rows", "eval.packed_sequences": 1, "eval.shares": 0,
                        "eval.drop_remainder": False}
            changes = [word for key, value in settings.items() for word in ("--set", f"{key}={json.dumps(value)}")]
            command("probe", "calibration", self.weights, "--config", self.run.directory / "config.toml", "--tokens", str(len(stream)),
                    "--items", items, "--json", Path(folder) / "figures.json", "--quiet", *changes, echo=False)
            scored = [(item["loss_nats"], item["choice"] == item["answer"]) for item in map(json.loads, items.read_text().splitlines())]
        return [scored[begin:begin + len(document) - 1] for begin, document in zip(begins, documents)]

    def loglikelihood_rolling(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[float]:
        windows, owners = [], []
        for number, request in enumerate(requests):
            for context, continuation in self._windows(request.args[0]):
                windows.append((None, context, continuation))
                owners.append(number)
        sums = [0.0] * len(requests)
        for number, (likelihood, _) in zip(owners, self._loglikelihood_tokens(windows)):
            sums[number] += likelihood
        return sums

    def _windows(self, text: str) -> Iterator[tuple[list[int], list[int]]]:
        for window in get_rolling_token_windows(self.tok_encode(text), self.eot_token_id, self.max_length - 1, context_len=1):
            yield make_disjoint_window(window)

    def generate_until(self, requests: Sequence[Any], disable_tqdm: bool = False) -> list[str]:
        texts = []
        for prompt, options in (request.args for request in requests):
            said = command("generate", self.weights, "--prompt", prompt, "--max-tokens", str(options.get("max_gen_toks", 128)),
                           "--temperature", str(options.get("temperature", 0)), "--quiet", echo=False)
            text = said.removesuffix("\n").removeprefix(prompt)
            for stop in options.get("until", []):
                text = text.split(stop)[0]
            texts.append(text)
        return texts
