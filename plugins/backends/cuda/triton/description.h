// The JSON file next to a kernel that Triton compiled: Triton's own metadata and, in its member "mulligan",
// what a launch needs besides (docs/triton.md).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace mulligan::cuda::triton {

// Memory that Triton asks for per block, aligned to at most 256 bytes, and is handed after the described
// parameters; none: 0 bytes.
struct Scratch {
  const char* name;
  std::size_t bytes = 0;
};

struct DescribedParameter {
  std::string name;               // of the kernel's argument or attribute; any name where `extent` is set
  std::string type;               // as Triton writes it: "*bf16", "fp32", "i32"
  std::string extent;             // "logits.shape[1]": what it is when it is neither argument nor attribute
  std::int64_t divisible_by = 1;  // what the compiler was told of the number, or of the address in bytes
};

struct Description {
  std::string file;  // the JSON file, for messages
  std::string kernel;
  std::string entry;
  std::uint32_t threads = 0, shared_bytes = 0;
  std::vector<Scratch> scratch;  // hidden parameters, in order: global scratch, profile scratch
  std::vector<DescribedParameter> parameters;
  std::vector<std::pair<std::string, double>> when;  // attribute or extent, and its only allowed value
  std::vector<std::string> grid;                     // one to three extents or numbers
};

// Throws std::runtime_error, one sentence with the file's name, when it is missing, is no JSON, lacks a
// member or has one of a wrong type, or asks for something that the cuda backend does not launch (clusters,
// cooperative grids, tensor descriptors, tensor memory).
Description read_description(const std::string& file);

}  // namespace mulligan::cuda::triton
