// Codes of quantised matrices in fewer bytes: an adaptive arithmetic coder whose model knows rows, columns
// and roles. The format of the artifact's layout "matrices" (docs/artifact.md).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan {

// One matrix of several that lie one after the other, each in row-major order. Matrices of one role share
// what the model learns of them.
struct CodeMatrix {
  std::int64_t rows = 0, columns = 0;  // at least 1
  int role = 0;
};

// Any codes; their number must be that of the matrices. Depends on the codes alone, not on the machine.
std::string encode_codes(std::span<const std::int8_t> codes, std::span<const CodeMatrix> matrices);

// The reverse for matrices of the same shapes and roles. Throws std::runtime_error with a reason ("is
// corrupt", "is truncated") that reads on from the name of what was read.
std::vector<std::int8_t> decode_codes(std::string_view bytes, std::span<const CodeMatrix> matrices);

}  // namespace mulligan
