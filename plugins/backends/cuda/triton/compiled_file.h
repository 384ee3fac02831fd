// Reads what Triton compiled: PTX, and machine code (a .cubin file, which is an ELF file).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/backends/cuda/triton/description.h"

namespace mulligan::cuda::triton {

// `target`: of a PTX file ("sm_80": that and everything newer; "sm_90a": that alone; "sm_100f": its family,
// from there on). `device`: "sm_90a".
bool ptx_runs_on(const std::string& target, const std::string& device);

// `architecture`: of machine code: 86 runs on 8.6 and 8.9. Triton compiles from 9.0 on for one
// GPU alone (sm_90a).
bool cubin_runs_on(int architecture, const std::string& device);

struct PtxEntry {
  std::string target;                   // "sm_90a"
  std::vector<std::string> parameters;  // types as PTX writes them: "u64", "f32"; of an array "b8[64]"
  std::uint32_t threads = 0;            // per block, where the entry fixes it (.reqntid); 0: it does not
};

// Throws std::runtime_error, naming `file`, when `text` is not PTX or has no entry called `name` (the
// sentence lists those that it has).
PtxEntry read_ptx_entry(const std::string& text, const std::string& name, const std::string& file);

// Sizes in bytes of the parameters of the entry point `name`, in order. Throws std::runtime_error, naming
// `file`, when `code` is no such file, is cut off, or has no entry of that name.
std::vector<std::uint32_t> read_cubin_parameters(const std::string& code, const std::string& name,
                                                 const std::string& file);

// As many parameters as described, each of the described type's size (all that machine code shows).
void check_cubin(const std::string& code, const Description& description, const std::string& file);

}  // namespace mulligan::cuda::triton
