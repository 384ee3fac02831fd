"""The sentencepiece package with the models and texts of its own tests (its source archive from PyPI has them), and with models
that it trains here where it has none of a kind."""
import subprocess
import sys
import tarfile

from judges.support import BUILD, Row, read_json, shard_tokens

JUDGE = "sentencepiece"
NEEDS = ["numpy", "sentencepiece"]
FAULTS = ["another-tokenizer"]

# Lines that tokenizers stumble over, each a document of its own.
ODD = ["a", " a", "  two  spaces ", "tab\tand\u00a0nbsp", "Ｆｕｌｌ　ｗｉｄｔｈ ①", "é e\u0301 ﬁ", "日本語の文章、カタカナ。", "👩‍👩‍👧 🏳️‍🌈", "\u200bzero\u200dwidth", "▁mark",
       "кириллица", "x" * 300, "a\r\nb", "\ufeffbom", "1234567890", "ا ب ت"]


def own_tests(version):
    """Folder `test` of the package's source archive; fetched once into the build folder."""
    folder = BUILD / "judges" / f"sentencepiece-{version}"
    if not folder.exists():
        # pip prepares the package before it keeps its archive: in an environment of its own, since Debian 12's setuptools cannot.
        subprocess.run([sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", "sentencepiece",
                        "-d", BUILD / "judges", f"sentencepiece=={version}"], check=True, capture_output=True)
        with tarfile.open(folder.parent / (folder.name + ".tar.gz")) as archive:
            members = [m for m in archive.getmembers() if m.name.startswith(f"{folder.name}/test/")]
            archive.extractall(folder.parent, members, filter="data")
    return folder / "test"


def documents_of(context, texts):
    """A folder with one file per text, in an order that --keep-order keeps."""
    folder = context.scratch / f"texts{len(list(context.scratch.glob('texts*')))}"
    folder.mkdir()
    for number, text in enumerate(texts):
        (folder / f"{number:06}.txt").write_bytes(text.encode())
    return folder


def judge_model(context, name, model, texts):
    """Ids of every document, and for models that keep text the bytes of all by both routes."""
    import sentencepiece
    theirs = sentencepiece.SentencePieceProcessor(model_file=str(model))
    if not theirs.is_byte(theirs.piece_to_id("<0x41>")):  # such a model cannot write every text, and prepare refuses that
        texts = [text for text in texts if theirs.unk_id() not in theirs.encode(text)]
    out = context.scratch / f"data-{name}"
    done = context.call("prepare", documents_of(context, texts), "--out", out, "--tokenizer", model, "--keep-order",
                        "--validation-documents", min(40, len(texts) // 2), "--quiet")
    if not (out / "manifest.json").exists():  # data that only fails a check of its tokens is written
        return Row(f"{name}: refused", done.stderr.strip(), "a refusal says why", done.stderr.count("\n") == 1)
    bos, manifest = theirs.bos_id(), read_json(out / "manifest.json")
    ids = [int(i) for part in ("train", "val") for path in sorted(out.glob(f"fineweb_{part}_0*.bin")) for i in shard_tokens(path)]
    documents, current = [], None
    for i in ids:
        if i == bos:
            documents.append(current := [])
        else:
            current.append(i)
    if context.planted:
        documents[0][0] += 1
    # Prepared data has an order of its own. What some version of their decoder does not give back to the byte, such as a space at
    # the beginning, this program writes as byte pieces where the model keeps text.
    ours, unequal, kept, ties = {}, [], 0, 0
    for ids in documents:
        ours[theirs.decode(ids).encode()] = ours[bytes_of(theirs, ids)] = ids
    by_ids = set(map(tuple, documents))
    for text in texts:
        ids = theirs.encode(text)
        if tuple(ids) in by_ids:
            continue
        mine = ours.get(text.encode())
        if mine and bytes_of(theirs, mine) == text.encode() and (text[0] == " " or "▁" in text):
            kept += 1
        elif mine and abs(sum(map(theirs.get_score, mine)) - sum(map(theirs.get_score, ids))) < 1e-5 * sum(map(abs, map(theirs.get_score, ids))):
            ties += 1  # versions of the library break them differently: the distribution's is older
        else:
            unequal.append(text[:30])
    notes = [f"{ties} ties of the unigram model" if ties else "", f"{kept} with a space at the beginning or a mark written as bytes" if kept else ""]
    return Row(f"{name}: ids of {len(texts)} documents, {sum(len(theirs.encode(text)) for text in texts)} tokens",
               ", ".join(filter(None, [f"{len(unequal)} documents", *notes, f"{unequal[:6]}" if unequal else ""])), "0", not unequal)


def bytes_of(model, ids):
    """The text of a document piece by piece, byte pieces as bytes."""
    parts = (bytes([int(model.id_to_piece(i)[1:-1], 16)]) if model.is_byte(i) else model.id_to_piece(i).replace("▁", " ").encode()
             for i in ids)
    return b"".join(parts)


def trained(context, name, texts, **options):
    """A model that the package trains on these texts."""
    import sentencepiece
    source = context.scratch / f"{name}.txt"
    source.write_text("\n".join(texts))
    sentencepiece.SentencePieceTrainer.train(input=str(source), model_prefix=str(context.scratch / name), minloglevel=2, num_threads=1,
                                             **options)
    return context.scratch / f"{name}.model"


def judge(context):
    import importlib.metadata
    tests = own_tests(importlib.metadata.version("sentencepiece"))
    lines = [line for line in (tests / "botchan.txt").read_text().splitlines() if line.strip()]
    texts = list(dict.fromkeys(lines[::4] + ODD + ["\n".join(lines[1::4])]))  # prepare keeps one of equal documents
    for model in sorted(tests.glob("*.model")):
        yield judge_model(context, model.stem, model, texts)
    plain = dict(normalization_rule_name="identity", add_dummy_prefix=False, remove_extra_whitespaces=False, byte_fallback=True)
    kinds = {"bpe, text kept": dict(plain, model_type="bpe", vocab_size=1500, split_by_whitespace=True),
             "unigram, text kept": dict(plain, model_type="unigram", vocab_size=1500),
             "bpe, byte fallback, nmt_nfkc": dict(model_type="bpe", vocab_size=1500, byte_fallback=True),
             "bpe, split digits, user symbols": dict(plain, model_type="bpe", vocab_size=1500, split_digits=True,
                                                     user_defined_symbols=["<|x|>", "👩"])}
    for name, options in kinds.items():
        model = trained(context, "".join(c for c in name if c.isalnum()), lines + ODD, **options)
        yield judge_model(context, f"{name} (trained here)", model, texts)
    yield judge_bytes(context, texts)


def judge_bytes(context, texts):
    """A score counts the bytes of the held-out text twice; both must be those of the file."""
    run = context.run("small")
    result, text = read_json(run / "result.json"), (context.data / "validation.txt").stat().st_size
    return Row(f"bytes of {result['val_tokens']} scored tokens: what the score divides by, and the UTF-8 text",
               f"{abs(result['val_bytes'] - text)} bytes", "0", result["val_bytes"] == text)
