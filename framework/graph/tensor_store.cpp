#include "framework/graph/tensor_store.h"

#include <fmt/format.h>

#include <stdexcept>

namespace mulligan {

void TensorStore::create(std::string_view name, const TensorType& type) {
  if (const auto known = entries_.find(name); known != entries_.end()) {
    if (known->second.type == type) return;
    throw std::logic_error(
        fmt::format("tensor '{}' is {}, asked for as {}", name, known->second.type.text(), type.text()));
  }
  entries_.emplace(std::string(name), Entry{type, type.bytes(), {}, {}, 0});
}

void TensorStore::reserve(std::string_view name, std::int64_t bytes) {
  auto& known = const_cast<Entry&>(entry(name));
  if (bytes <= known.reserved_bytes) return;
  if (known.buffer.address() || !known.whole.empty())
    throw std::logic_error(fmt::format("tensor '{}' has its memory already", name));
  known.reserved_bytes = bytes;
}

void TensorStore::create_part(std::string_view name, const TensorType& type, std::string_view whole,
                              std::int64_t offset) {
  const Entry& around = entry(whole);
  if (type.dtype != around.type.dtype || offset < 0 || !around.whole.empty() ||
      offset * dtype_size(type.dtype) + type.bytes() > around.reserved_bytes) {
    throw std::logic_error(fmt::format("'{}', {}, is not part of '{}', {}, from element {} on", name,
                                       type.text(), whole, around.type.text(), offset));
  }
  create(name, type);
  auto& part = const_cast<Entry&>(entry(name));
  const std::int64_t begin = offset * dtype_size(type.dtype);
  if (part.whole == whole && part.begin_bytes == begin) return;
  if (!part.whole.empty() || part.buffer.address() || part.reserved_bytes > type.bytes()) {
    throw std::logic_error(fmt::format("tensor '{}' lies elsewhere than in '{}'", name, whole));
  }
  part.whole = whole;
  part.begin_bytes = begin;
}

void TensorStore::create_externals(const Graph& graph) {
  for (std::uint32_t id = 1; id <= graph.value_count(); ++id) {
    const Graph::ValueInfo& info = graph.info(Value{id});
    if (info.storage == Graph::Storage::external) create(info.name, info.type);
  }
}

const TensorStore::Entry& TensorStore::entry(std::string_view name) const {
  const auto found = entries_.find(name);
  if (found == entries_.end()) throw std::logic_error(fmt::format("there is no tensor '{}'", name));
  return found->second;
}

void* TensorStore::memory(const Entry& entry) const {
  if (!entry.whole.empty()) {
    return static_cast<std::byte*>(memory(this->entry(entry.whole))) + entry.begin_bytes;
  }
  if (!entry.buffer.address()) {
    entry.buffer = backend_.allocate(static_cast<std::size_t>(entry.reserved_bytes));
  }
  return entry.buffer.address();
}

bool TensorStore::contains(std::string_view name) const {
  return entries_.contains(name);
}
const TensorType& TensorStore::type(std::string_view name) const {
  return entry(name).type;
}
void* TensorStore::address(std::string_view name) const {
  return memory(entry(name));
}

std::vector<std::string> TensorStore::names() const {
  std::vector<std::string> names;
  for (const auto& [name, entry] : entries_) {
    if (entry.whole.empty()) names.push_back(name);
  }
  return names;
}

std::int64_t TensorStore::total_bytes() const {
  std::int64_t total = 0;
  for (const auto& [name, entry] : entries_) {
    if (entry.whole.empty()) total += entry.reserved_bytes;
  }
  return total;
}

void TensorStore::upload(std::string_view name, std::span<const std::byte> bytes) {
  const Entry& target = entry(name);
  if (static_cast<std::int64_t>(bytes.size()) != target.type.bytes()) {
    throw std::logic_error(
        fmt::format("upload of {} bytes into '{}', which is {}", bytes.size(), name, target.type.text()));
  }
  backend_.upload(memory(target), bytes.data(), bytes.size());
}

void TensorStore::download(std::string_view name, std::span<std::byte> bytes) const {
  const Entry& source = entry(name);
  if (static_cast<std::int64_t>(bytes.size()) != source.type.bytes()) {
    throw std::logic_error(
        fmt::format("download of {} bytes from '{}', which is {}", bytes.size(), name, source.type.text()));
  }
  backend_.download(bytes.data(), memory(source), bytes.size());
}

void TensorStore::zero(std::string_view name) {
  const Entry& target = entry(name);
  backend_.zero(memory(target), static_cast<std::size_t>(target.type.bytes()));
}

void TensorStore::copy(std::string_view to, std::string_view from) {
  const Entry& target = entry(to);
  const Entry& source = entry(from);
  if (target.type != source.type) {
    throw std::logic_error(
        fmt::format("copy from '{}', {}, to '{}', {}", from, source.type.text(), to, target.type.text()));
  }
  backend_.copy(memory(target), memory(source), static_cast<std::size_t>(target.type.bytes()));
}

}  // namespace mulligan
