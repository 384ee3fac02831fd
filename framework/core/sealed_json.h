// Results that say whether they were changed after they were written: a JSON object carries the sha256 of the rest
// of itself. That finds edits and damage. It is not a signature: whoever changes a result may compute the digest anew.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "framework/core/file.h"

namespace mulligan {

// Whether a result is as it was written.

enum class Seal {
  intact,
  absent,  // somebody took the digest away
  broken,
};

// What is wrong with it, as the rest of a sentence that begins with the file's name; "" of an intact one.
inline std::string seal_problem(Seal seal) {
  switch (seal) {
    case Seal::absent:
      return "carries no digest of itself: it was changed after it was written";
    case Seal::broken:
      return "was changed after it was written: its digest is of other figures";
    case Seal::intact:
      break;
  }
  return {};
}

inline constexpr const char* seal_key = "sha256_of_the_rest";

// The digest is of the object's compact text, whose numbers read back to the same values.
inline std::string digest_of_the_rest(nlohmann::ordered_json json) {
  json.erase(seal_key);
  return sha256_hex(json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace));
}

// Puts the digest behind the other members; nothing may be changed afterwards.
inline nlohmann::ordered_json sealed(nlohmann::ordered_json json) {
  json.erase(seal_key);
  const std::string digest = digest_of_the_rest(json);
  json[seal_key] = digest;
  return json;
}

inline Seal seal_of(const nlohmann::ordered_json& json) {
  const auto written = json.find(seal_key);
  if (written == json.end()) return Seal::absent;
  return *written == digest_of_the_rest(json) ? Seal::intact : Seal::broken;
}

}  // namespace mulligan
