// Persistent tensors of a run by name: parameters, gradients, optimiser state, batches, tables.
#pragma once

#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/core/tensor_type.h"
#include "framework/graph/graph.h"
#include "framework/plugin/backend.h"

namespace mulligan {

class TensorStore {
 public:
  explicit TensorStore(Backend& backend) : backend_(backend) {}
  TensorStore(const TensorStore&) = delete;
  TensorStore& operator=(const TensorStore&) = delete;

  // Makes a zeroed tensor. Its memory is allocated at the first use or bind, so that total_bytes() can be checked before. A
  // second call with the same type changes nothing; another type is a std::logic_error.
  void create(std::string_view name, const TensorType& type);
  // Adds zeroed room after the elements of a tensor, for transfers that cut it into equal shares. The room belongs to no
  // element. Throws std::logic_error if the memory is allocated already.
  void reserve(std::string_view name, std::int64_t bytes);
  // Makes `name` a part of the tensor `whole` and the room after it, from element `offset` on: one memory under two names.
  // May follow create() of the same type, if that has no memory yet. Throws std::logic_error if it does not fit.
  void create_part(std::string_view name, const TensorType& type, std::string_view whole,
                   std::int64_t offset);
  // Makes the externals of `graph` that do not exist yet.
  void create_externals(const Graph& graph);

  bool contains(std::string_view name) const;
  const TensorType& type(std::string_view name) const;
  void* address(std::string_view name) const;
  std::int64_t reserved_bytes(std::string_view name) const { return entry(name).reserved_bytes; }
  // All names except those of parts, sorted.
  std::vector<std::string> names() const;
  std::int64_t total_bytes() const;

  // Transfers of whole tensors. The byte count must match exactly (std::logic_error). upload() is ordered with the kernels;
  // download() waits for them.
  void upload(std::string_view name, std::span<const std::byte> bytes);
  void download(std::string_view name, std::span<std::byte> bytes) const;
  void zero(std::string_view name);
  void copy(std::string_view to, std::string_view from);

  template <typename T>
  void upload(std::string_view name, const std::vector<T>& values) {
    upload(name, std::as_bytes(std::span(values)));
  }
  // The tensor's elements as T, whose size must be the dtype's.
  template <typename T>
  std::vector<T> download_as(std::string_view name) const {
    std::vector<T> values(static_cast<std::size_t>(type(name).elements()));
    download(name, std::as_writable_bytes(std::span(values)));
    return values;
  }

  Backend& backend() const { return backend_; }

 private:
  struct Entry {
    TensorType type;
    std::int64_t reserved_bytes = 0;  // includes the elements
    mutable DeviceBuffer buffer;      // unused for parts
    std::string whole = {};           // parts: the tensor that owns the memory, and the offset in it
    std::int64_t begin_bytes = 0;
  };
  const Entry& entry(std::string_view name) const;
  void* memory(const Entry& entry) const;

  Backend& backend_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace mulligan
