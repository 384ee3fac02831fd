// Replacement for an evaluation of an artifact that zlib has not compressed.
#include <stdexcept>

#include "framework/artifact/compression.h"

namespace mulligan {

std::string decompress_zlib(std::string_view, std::uint64_t) {
  throw std::runtime_error("is by zlib, which this evaluator lacks");
}

}  // namespace mulligan
