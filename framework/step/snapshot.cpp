#include "framework/step/snapshot.h"

#include <algorithm>

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

void StateSnapshot::restore() const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    if (contents_[i].empty()) {
      store_.zero(names_[i]);
    } else {
      store_.upload(names_[i], std::span<const std::byte>(contents_[i]));
    }
  }
}

}  // namespace mulligan
