// A compiled kernel's parameters against the arguments and attributes that the kernel declares.
#pragma once

#include <mulligan/tensor.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plugins/backends/common/kernel_signature.h"
#include "plugins/backends/cuda/triton/call_number.h"
#include "plugins/backends/cuda/triton/compiled_file.h"
#include "plugins/backends/cuda/triton/description.h"

namespace mulligan::cuda::triton {

// A parameter and what it is handed: a tensor's address, or a number.
struct Binding : DescribedParameter {
  std::uint32_t index = 0;           // of the tensor in the signature
  std::optional<CallNumber> number;  // none: the tensor
};

// One binding per described parameter, in order. Throws std::runtime_error, naming file and parameter, when a
// name is neither argument nor attribute, a type does not fit (a tensor without "*", an attribute with one),
// one is listed twice, a required argument is missing, or an attribute is neither taken nor fixed by "when".
std::vector<Binding> bind_parameters(const Description& description, const backends::Signature& signature);

// The entry has exactly the described parameters and the scratch pointers after them, of the right PTX
// types, and as many threads as described. Throws std::runtime_error, naming `file` and the parameter.
void check_entry(const PtxEntry& entry, const Description& description, const std::string& file);

// "*bf16" of MLG_BF16.
std::string pointer_type(std::int32_t dtype);

}  // namespace mulligan::cuda::triton
