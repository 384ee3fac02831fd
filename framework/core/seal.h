// Whether a result is as it was written (sealed_json.h).
#pragma once

#include <string>

namespace mulligan {

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

}  // namespace mulligan
