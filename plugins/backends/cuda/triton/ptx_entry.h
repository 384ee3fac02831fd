// The head of a PTX file: for which GPU it is, and the parameters of an entry point.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mulligan::cuda::triton {

struct PtxEntry {
  std::string target;                   // "sm_90a"
  std::vector<std::string> parameters;  // types as PTX writes them: "u64", "f32"; of an array "b8[64]"
  std::uint32_t threads = 0;            // per block, where the entry fixes it (.reqntid); 0: it does not
};

// Throws std::runtime_error, naming `file`, when `text` is not PTX or has no entry called `name` (the
// sentence lists those that it has).
PtxEntry read_ptx_entry(const std::string& text, const std::string& name, const std::string& file);

}  // namespace mulligan::cuda::triton
