#include "framework/core/parse_json.h"

#include <cstddef>
#include <set>
#include <string>
#include <vector>

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

std::string repeated_key(std::string_view text) {
  if (!nested_within(text, deepest_json)) return {};
  std::vector<std::set<std::string>> open;  // keys of each object that is being read
  std::string found;
  const auto look = [&](int, nlohmann::json::parse_event_t event, nlohmann::json& value) {
    using Event = nlohmann::json::parse_event_t;
    if (event == Event::object_start) open.emplace_back();
    if (event == Event::object_end && !open.empty()) open.pop_back();
    if (event == Event::key && !open.empty() && !open.back().insert(value.get<std::string>()).second &&
        found.empty())
      found = value.get<std::string>();
    return true;
  };
  [[maybe_unused]] const nlohmann::json read = nlohmann::json::parse(text, look, /*allow_exceptions=*/false);
  return found;
}

}  // namespace mulligan
