// Reads the PTX that Triton compiled.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace mulligan::cuda::triton {

// `target`: of a PTX file ("sm_80": that and everything newer; "sm_90a": that alone; "sm_100f": its family,
// from there on). `device`: "sm_90a".
bool ptx_runs_on(const std::string& target, const std::string& device);

struct PtxEntry {
  std::string target;                   // "sm_90a"
  std::vector<std::string> parameters;  // types as PTX writes them: "u64", "f32"; of an array "b8[64]"
  std::uint32_t threads = 0;            // per block, where the entry fixes it (.reqntid); 0: it does not
};

// Throws std::runtime_error, naming `file`, when `text` is not PTX or has no entry called `name` (the
// sentence lists those that it has).
PtxEntry read_ptx_entry(const std::string& text, const std::string& name, const std::string& file);

}  // namespace mulligan::cuda::triton
