#include "framework/core/parse_json.h"

#include <cstddef>

namespace mulligan {

bool nested_within(std::string_view text, int levels) {
  int level = 0;
  bool quoted = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (quoted) {
      if (c == '\\') ++i;  // the next character is part of the string, a quote too
      if (c == '"') quoted = false;
    } else if (c == '"') {
      quoted = true;
    } else if (c == '[' || c == '{') {
      if (++level > levels) return false;
    } else if (c == ']' || c == '}') {
      --level;
    }
  }
  return true;
}

}  // namespace mulligan
