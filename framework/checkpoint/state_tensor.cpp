#include "framework/checkpoint/state_tensor.h"

#include <fmt/format.h>

#include <algorithm>
#include <stdexcept>

namespace mulligan {

void StateTensor::read(const TensorStore& store, std::span<std::byte> bytes) const {
  if (!host) return store.download(source, bytes);
  if (host->bytes.size() != bytes.size()) {
    throw std::logic_error(fmt::format("'{}' was not gathered on this rank", name));
  }
  std::ranges::copy(host->bytes, bytes.begin());
}

std::vector<std::byte> StateTensor::read(const TensorStore& store) const {
  std::vector<std::byte> bytes(static_cast<std::size_t>(type(store).bytes()));
  read(store, bytes);
  return bytes;
}

void StateTensor::write(TensorStore& store, std::span<const std::byte> bytes) const {
  if (!host) return store.upload(source, bytes);
  if (static_cast<std::int64_t>(bytes.size()) != host->type.bytes()) {
    throw std::logic_error(
        fmt::format("{} bytes for '{}', which is {}", bytes.size(), name, host->type.text()));
  }
  host->bytes.assign(bytes.begin(), bytes.end());
}

std::vector<StateTensor> state_tensors_of(const std::vector<std::string>& names) {
  std::vector<StateTensor> tensors;
  for (const std::string& name : names) tensors.push_back({name, name});
  return tensors;
}

}  // namespace mulligan
