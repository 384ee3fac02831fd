#include "framework/step/snapshot.h"

#include <fmt/format.h>

#include <algorithm>

#include "framework/core/sha256.h"

namespace mulligan {

StateSnapshot::StateSnapshot(TensorStore& store, std::vector<std::string> names)
    : store_(store), names_(std::move(names)) {
  for (const std::string& name : names_) {
    std::vector<std::byte> bytes(static_cast<std::size_t>(store_.type(name).bytes()));
    store_.download(name, bytes);
    const bool zero = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
    contents_.push_back(zero ? std::vector<std::byte>() : std::move(bytes));
  }
}

void StateSnapshot::restore_to(TensorStore& store) const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (contents_[i].empty()) {
      store.zero(names_[i]);
    } else {
      store.upload(names_[i], std::span<const std::byte>(contents_[i]));
    }
  }
}

std::string state_digest(const TensorStore& store, const std::vector<StateTensor>& tensors,
                         std::string_view counters) {
  Sha256 digest;
  digest.update(counters);
  for (const StateTensor& tensor : tensors) {
    const TensorType& type = store.type(tensor.source);
    std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
    store.download(tensor.source, bytes);
    digest.update(fmt::format("\n{} {}\n", tensor.name, type.text()));
    digest.update(std::span<const std::byte>(bytes));
  }
  return digest.hex();
}

}  // namespace mulligan
