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

std::optional<std::string> StateSnapshot::first_difference() const {
  for (std::size_t i = 0; i < names_.size(); ++i) {
    std::vector<std::byte> now(static_cast<std::size_t>(store_.type(names_[i]).bytes()));
    store_.download(names_[i], now);
    const bool same = contents_[i].empty()
                          ? std::ranges::all_of(now, [](std::byte b) { return b == std::byte{0}; })
                          : now == contents_[i];
    if (!same) return names_[i];
  }
  return {};
}

StateDigest state_digest(const TensorStore& store, const std::vector<StateTensor>& tensors,
                         std::string_view counters) {
  StateDigest digest;
  Sha256 all;
  all.update(counters);
  for (const StateTensor& tensor : tensors) {
    const std::vector<std::byte> bytes = tensor.read(store);
    Sha256 one;
    one.update(fmt::format("{} {}\n", tensor.name, tensor.type(store).text()));
    one.update(std::span<const std::byte>(bytes));
    digest.tensors.push_back(one.hex());
    all.update(fmt::format("\n{}", digest.tensors.back()));
  }
  digest.sha256 = all.hex();
  return digest;
}

}  // namespace mulligan
