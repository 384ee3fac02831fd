#include "launch/built_from.h"

#include "mulligan_source_digest.h"

namespace mulligan {

std::string built_from() {
  return MULLIGAN_SOURCE_DIGEST;
}

}  // namespace mulligan
