// The words and numbers of Markdown as a reader sees them, however they are written.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace mulligan::record {

struct ProseToken {
  enum class Kind { word, number, mark };
  Kind kind = Kind::mark;
  std::string text;     // of a word: small letters, without underscores; of a mark: the character
  double value = 0;     // of a number
  int decimals = 0;     // digits behind its point; 0: a whole number
  bool power = false;   // it is written with a power of ten
  bool spaced = false;  // white space stands before it
};

// By line. Entities of HTML, digits of other scripts and wide letters are what they look like; what
// emphasises, escapes or cannot be seen is left out, and so are tags, where `tags` is not set: their
// attributes may be shown, too. A number has a point or a comma; one with three digits behind a comma, or
// with two points, is none.
std::vector<std::vector<ProseToken>> prose_lines(std::string_view markdown, bool tags);

}  // namespace mulligan::record
