// A SentencePiece model: text to token ids and back.
#pragma once

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// Immutable after construction; const functions may be called from several threads. Cheap to copy.
class Tokenizer {
 public:
  // Throws data_error naming the file when it is no SentencePiece model.
  static Tokenizer load(const std::filesystem::path& path);
  // `origin` names the model in messages.
  static Tokenizer from_bytes(const std::string& model, const std::string& origin);

  // Of the model file: what tells one tokenizer from another.
  const std::string& sha256() const;
  int vocab_size() const;
  int bos_id() const;  // -1 when the model has none
  // The id of a piece's text, or -1.
  int find(std::string_view piece) const;
  const std::string& piece(int id) const;
  float score(int id) const;
  bool is_byte(int id) const;
  // Control, unknown and unused ids: they carry no text.
  bool is_textless(int id) const;

  // Whether encode() loses nothing: the model takes text as it is and has the byte pieces. Otherwise its own
  // normalisation may change text.
  bool keeps_text() const;

  // Ids of a document's text, without BOS. Where keeps_text(), document_text() of them is `text` to the byte,
  // whatever `text` holds. Throws data_error when SentencePiece fails.
  std::vector<int> encode(std::string_view text) const;
  // The same in parts: the ids of text[0, cut) as a start, then those of the rest. cut_after() gives
  // the first such cut at or after `position`; text.size() where there is none, so always where the
  // model changes text.
  std::vector<int> encode_part(std::string_view part, bool at_start) const;
  std::size_t cut_after(std::string_view text, std::size_t position) const;
  // The ids of a whole document with the slices of `text` that they stand for. What the model's own rules
  // leave out at both ends belongs to none. Of bytes that together are one character the last has all of it.
  struct Slice {
    int id = 0;
    std::size_t begin = 0, end = 0;  // in the whole; a slice begins where the one before it ends
  };
  std::vector<Slice> encode_slices(std::string_view text) const;
  // SentencePiece's own decoder.
  std::string decode(const std::vector<int>& ids) const;
  // The text that a token stands for after others, each "▁" as a space; nothing of textless ids.
  std::string text_of(int id) const;
  // The text that a document's tokens stand for, byte tokens as raw bytes: exactly the bytes that byte
  // counting counts after a BOS. Textless ids are left out.
  std::string document_text(std::span<const std::uint16_t> ids) const;

 private:
  struct Model;
  explicit Tokenizer(std::shared_ptr<const Model> model) : model_(std::move(model)) {}
  std::shared_ptr<const Model> model_;
};

// Throws data_error unless the tokenizer can write shards whose bytes can be counted: at most kMaxVocabulary
// ids, a BOS, and a standalone "▁" piece (without it a lone space would be lost).
void require_usable(const Tokenizer& tokenizer, const std::string& origin);

// What a file is that was given as a SentencePiece model and is none: "a Hugging Face tokenizer.json; ..." with what to
// do, or "" for a format that is not known.
std::string foreign_tokenizer_format(std::string_view bytes);

// The space mark of SentencePiece pieces, U+2581.
inline constexpr std::string_view kSpaceMark = "\xE2\x96\x81";

}  // namespace mulligan
