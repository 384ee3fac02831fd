"""The SentencePiece model tokenizer.model for transformers (trust_remote_code; needs the package sentencepiece).

Ids are those that SentencePiece itself gives. A text begins with the BOS piece, as every document does in training.
"""
import sentencepiece
from transformers import PreTrainedTokenizer


class MulliganTokenizer(PreTrainedTokenizer):
    vocab_files_names = {"vocab_file": "tokenizer.model"}
    model_input_names = ["input_ids", "attention_mask"]

    def __init__(self, vocab_file, **options):
        self.vocab_file = vocab_file
        self.model = sentencepiece.SentencePieceProcessor(model_file=vocab_file)
        for name, id in (("bos_token", self.model.bos_id()), ("unk_token", self.model.unk_id()), ("eos_token", self.model.eos_id())):
            if id >= 0:
                options.setdefault(name, self.model.id_to_piece(id))
        super().__init__(**options)

    @property
    def vocab_size(self):
        return self.model.get_piece_size()

    def get_vocab(self):
        return {self.model.id_to_piece(i): i for i in range(self.vocab_size)} | self.added_tokens_encoder

    def _tokenize(self, text, **_):
        return self.model.encode(text, out_type=str)

    def _convert_token_to_id(self, token):
        return self.model.piece_to_id(token)

    def _convert_id_to_token(self, index):
        return self.model.id_to_piece(index)

    def convert_tokens_to_string(self, tokens):
        """Special tokens stay as their text: decode(skip_special_tokens=True) has taken them out before."""
        text, pieces = "", []
        for token in [*tokens, None]:
            if token is not None and token not in self.all_special_tokens:
                pieces.append(token)
            else:
                text += (self.model.decode(pieces) if pieces else "") + (token or "")
                pieces = []
        return text

    def build_inputs_with_special_tokens(self, first, second=None):
        start = [self.bos_token_id] if self.bos_token_id is not None else []
        return start + first + (start + second if second else [])

    def save_vocabulary(self, folder, filename_prefix=None):
        import os
        import shutil
        path = os.path.join(folder, (filename_prefix + "-" if filename_prefix else "") + "tokenizer.model")
        if os.path.abspath(path) != os.path.abspath(self.vocab_file):
            shutil.copyfile(self.vocab_file, path)
        return (path,)
