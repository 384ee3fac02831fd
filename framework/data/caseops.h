// The text transform `caseops`: capital letters as symbols in front of words in lower case, so that a
// tokenizer learns each word once.
//
// Four control characters: U+E001 TITLE, U+E002 ALLCAPS, U+E003 CAPNEXT, U+E004 ESC. From left to right:
//   a control character c of the text       ESC c
//   a run of ASCII letters, all lower       as it is
//   two or more, all upper                  ALLCAPS, the run in lower case
//   first upper, a rest that is all lower   TITLE, the run in lower case
//   any other run                           TITLE if its first letter is upper; then each letter in lower
//                                           case, behind CAPNEXT if it is upper and not the first
//   everything else                         as it is
// Text need not be UTF-8: other bytes pass through. The same mapping as lossless_caps_caseops_v1 of the
// published data sets (fixture `caseops`).
#pragma once

#include "framework/data/text_transform.h"

namespace mulligan {

class CaseOps : public TextTransform {
 public:
  std::string_view name() const override { return "caseops"; }
  std::string_view published_name() const override { return "lossless_caps_caseops_v1"; }
  std::vector<std::string> symbols() const override;
  std::string apply(std::string_view text) const override;
  std::string undo(std::string_view transformed) const override;
  // Symbols count 0, an escaped control character its 3 bytes where its last one is, any other byte 1.
  std::vector<std::uint64_t> original_bytes(std::span<const std::string> slices) const override;
};

}  // namespace mulligan
