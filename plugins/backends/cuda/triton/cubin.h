// Machine code for a GPU (a .cubin file, which is an ELF file).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plugins/backends/cuda/triton/description.h"

namespace mulligan::cuda::triton {

// Sizes in bytes of the parameters of the entry point `name`, in order. Throws std::runtime_error, naming
// `file`, when `code` is no such file, is cut off, or has no entry of that name.
std::vector<std::uint32_t> read_cubin_parameters(const std::string& code, const std::string& name,
                                                 const std::string& file);

// As many parameters as described, each of the described type's size (all that machine code shows).
void check_cubin(const std::string& code, const Description& description, const std::string& file);

}  // namespace mulligan::cuda::triton
