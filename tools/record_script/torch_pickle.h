// The pickle of torch.save, read as data: a program for a machine with a stack, of which the instructions that tables
// of tensors need are understood.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace mulligan::record_script {

// Names that a tensor's pickle has. Besides them only those of storages are understood.
inline constexpr std::string_view rebuild_name = "torch._utils _rebuild_tensor_v2",
                                  ordered_name = "collections OrderedDict";

// "Half" of "torch HalfStorage"; empty: no storage.
std::string_view storage_type(std::string_view name);
// Bytes of a number of a type of storage_type.
std::size_t element_size(std::string_view type);

// What an instruction leaves on the stack.
struct Node {
  enum class Kind { nothing, number, text, tuple, table, name, storage, tensor, mark };
  Kind kind = Kind::nothing;
  std::int64_t number = 0;  // also a storage's elements
  std::string text;         // also a name, "module name"
  // Of a tuple; of a table keys and values in turn; of a storage its type and key; of a tensor what it was made of:
  // storage, offset, shape, strides.
  std::vector<Node*> items;
};

// The value that the program leaves; it lies in `nodes`, as all that it refers to. Nothing is looked up, imported or
// called. Throws std::runtime_error with a reason that reads on from the file's name: another instruction, another
// name, a damaged program, one longer than any table's.
const Node& read_pickle(std::string_view program, std::deque<Node>& nodes);

}  // namespace mulligan::record_script
