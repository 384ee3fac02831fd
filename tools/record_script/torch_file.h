// Files of PyTorch's torch.save that hold tables of tensors and texts, read as data: the pickle in them is a
// program, of which the few instructions that make such tables are understood and all others refused.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace mulligan::record_script {

struct TorchTensor {
  std::string type;  // as PyTorch calls its storages: "Half", "BFloat16", "Float", "Char", "Short", ...
  std::vector<std::int64_t> shape;  // empty: a scalar
  std::string bytes;                // row-major, little-endian
  std::int64_t elements() const;
  bool operator==(const TorchTensor&) const = default;
};

// Table by its name, then tensor or text by its name.
using TorchTables = std::map<std::string, std::map<std::string, std::variant<std::string, TorchTensor>>>;

// Whatever the bytes are, tables come out or a std::runtime_error with a reason that reads on from the file's
// name: a damaged archive, another pickle instruction, a name (of a function or class) that is not one of a
// tensor's parts, a tensor beyond its storage. Nothing that the file names is looked up, imported or called.
TorchTables read_torch_file(std::string_view archive);

// What torch.load(weights_only=True) reads as these tables. Precondition: types as above.
std::string write_torch_file(const TorchTables& tables);

}  // namespace mulligan::record_script
