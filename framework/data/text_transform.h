// The text transform of `mulligan prepare`: an invertible change of a document before it is tokenised.
//
// Scores stay those of the original text: each token counts the original bytes that it stands for
// (transformed_encoding.h, side_table.h).
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// `caseops`: capital letters as symbols in front of words in lower case, so that a tokenizer learns each word once.
//
// Four control characters: U+E001 TITLE, U+E002 ALLCAPS, U+E003 CAPNEXT, U+E004 ESC. From left to right:
//   a control character c of the text       ESC c
//   a run of ASCII letters, all lower       as it is
//   two or more, all upper                  ALLCAPS, the run in lower case
//   first upper, a rest that is all lower   TITLE, the run in lower case
//   any other run                           TITLE if its first letter is upper; then each letter in lower
//                                           case, after CAPNEXT if it is upper and not the first
//   everything else                         as it is
// Text need not be UTF-8: other bytes pass through. The same mapping as lossless_caps_caseops_v1 of the
// published data sets (fixture `caseops`).
class TextTransform {
 public:
  std::string_view name() const { return "caseops"; }  // the word of --text-transform and of manifests
  // Symbols that it writes into text: a tokenizer trained for it has each as a piece of its own.
  std::vector<std::string> symbols() const;

  // `ends`, if given, becomes what TextOrigin needs: symbols stand for no byte of the text, and an escaped control
  // character for its 3 bytes where its last one is.
  std::string apply(std::string_view text, std::vector<std::uint64_t>* ends = nullptr) const;
  // The original of what apply() gave. Throws data_error for what it cannot have given. Text that ends with a space or a line's
  // end can be undone apart from what follows.
  std::string undo(std::string_view transformed) const;
};

// The transform of that name. Throws config_error for another name.
const TextTransform& text_transform(std::string_view name);

}  // namespace mulligan
