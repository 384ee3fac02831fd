// An order of bytes that compresses well.
#pragma once

#include <string>
#include <string_view>

namespace mulligan {

// "BSHF", the stride as a byte, then the bytes at 0, s, 2s, ..., those at 1, s+1, ..., and so on: equal
// places of neighbouring elements come together. What is shorter than the stride stays as it is, without the
// mark. (The format of the record's script.) stride: 1 to 255.
std::string shuffle_bytes(std::string_view bytes, int stride);
// The reverse. Throws std::runtime_error with a reason that reads on from the name of what was read.
std::string unshuffle_bytes(std::string_view shuffled, int stride);

}  // namespace mulligan
