// How a text is handed to SentencePiece so that its bytes come back exactly, and where it may be cut.
//
// SentencePiece replaces invalid UTF-8 by U+FFFD, shows a space as U+2581 (so that a U+2581 of the text would
// come back as a space), and leaves out a space at a text's start when it decodes. Such bytes are therefore
// written as byte pieces, one each, and everything between them is handed over as it is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

namespace mulligan {

// Goes over the fields of a serialised protocol buffer message, such as a SentencePiece model, one after another. Bytes
// that are not a message end it early.
class MessageFields {
 public:
  explicit MessageFields(std::string_view bytes) : rest_(bytes) {}

  std::uint64_t number = 0;  // of the current field
  std::uint64_t value = 0;   // of an integer
  std::string_view bytes;    // of a string or an embedded message

  // Moves to the next field; false at the end or where the bytes are not a message.
  bool next();
  // After next() has returned false: whether that was the end. Groups, which no model has, count
  // as no message.
  bool ended() const { return rest_.empty() && !broken_; }

 private:
  std::optional<std::uint64_t> integer();
  bool take(std::uint64_t length);

  std::string_view rest_;
  bool broken_ = false;
};

// A SentencePiece model may carry a compiled map of how it changes characters before it cuts a text. What keeps
// SentencePiece from reading beyond the maps of a serialised model, in words, or "" where nothing does. It follows a
// map's places and texts without looking whether they exist. So a damaged model, or a stranger's, would read (and perhaps
// reveal) memory that is not its own, or end the process.
std::string character_map_problem(std::string_view model);

// What a serialised SentencePiece model says about itself.
struct ModelRules {
  // No normalisation, no space put in front, none taken away: what goes in is what the pieces spell.
  bool keeps_text = false;
  bool pair_merges = false;  // byte pair encoding: pieces grow by merging neighbours
};

// Reads them from the model's protocol buffer. What is missing or malformed has the format's defaults, by
// which text is not kept.
ModelRules model_rules(std::string_view model);

// One stretch of a text: handed over as it is, or written byte by byte.
struct TextStretch {
  std::string_view text;
  bool as_bytes = false;
};

// The stretch that `text` begins with; `text` must not be empty. `at_start`: nothing of the
// document precedes it.
TextStretch first_stretch(std::string_view text, bool at_start);

// Where a text may be cut so that the parts' ids, one after another, are the ids of the whole: between two
// characters that stand side by side in no piece. A merge across the cut would make such a piece, so there is
// none, and merges on one side do not depend on the other.
class SafeCuts {
 public:
  void add_piece(std::string_view piece);
  // The first safe cut at or after `position`, at most text.size(). Without pieces of several characters no cut is safe.
  std::size_t at_or_after(std::string_view text, std::size_t position) const;

 private:
  std::unordered_set<std::uint64_t> pairs_;  // of code points that are neighbours in a piece
};

}  // namespace mulligan
