// parse_json: the one way to read JSON of unknown origin.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace mulligan {

// Whether objects and lists are nested at most `levels` deep. For text that is no JSON the answer means
// nothing, but it is always given.
bool nested_within(std::string_view text, int levels);

// The first key that an object of valid JSON holds twice; empty where there is none. Readers differ in which of
// both values they take, so that such a file says two things.
std::string repeated_key(std::string_view text);

// Nothing that is read here is nested deeper. The library parses any depth, but copies, compares and prints
// values by recursion, so that 100 KB of "[" would end the process by a stack overflow.
inline constexpr int deepest_json = 64;

// The value; a discarded one (is_discarded(), no object, no list) for text that is not JSON or
// nested too deep.
template <typename Json = nlohmann::json>
Json parse_json(std::string_view text) {
  if (!nested_within(text, deepest_json)) return Json(Json::value_t::discarded);
  return Json::parse(text, nullptr, /*allow_exceptions=*/false);
}

}  // namespace mulligan
