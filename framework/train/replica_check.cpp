#include "framework/train/replica_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <span>

#include "framework/core/error.h"

namespace mulligan {
namespace {

// Tells contents apart that differ by accident, at the speed of memory: four chains, which a processor works on at once.
std::uint64_t digest_of(std::span<const std::byte> bytes) {
  constexpr std::uint64_t odd = 0x9e3779b97f4a7c15;
  std::array<std::uint64_t, 4> chains = {bytes.size(), 1, 2, 3};
  std::array<std::uint64_t, 4> words{};
  const auto mix = [&] {
    for (std::size_t i = 0; i < chains.size(); ++i) {
      chains[i] = std::rotl((chains[i] ^ words[i]) * odd, 29);
    }
  };
  std::size_t done = 0;
  for (; done + sizeof words <= bytes.size(); done += sizeof words) {
    std::memcpy(words.data(), bytes.data() + done, sizeof words);
    mix();
  }
  words = {};
  if (done < bytes.size()) std::memcpy(words.data(), bytes.data() + done, bytes.size() - done);
  mix();
  std::uint64_t digest = 0;
  for (const std::uint64_t chain : chains) digest = std::rotl((digest ^ chain) * odd, 31);
  return digest ^ (digest >> 32);
}

std::string digests_of(const TensorStore& store, const std::vector<std::string>& names) {
  std::string digests;
  std::vector<std::byte> bytes;
  for (const std::string& name : names) {
    bytes.resize(static_cast<std::size_t>(store.type(name).bytes()));
    store.download(name, bytes);
    const std::uint64_t digest = digest_of(bytes);
    digests.append(reinterpret_cast<const char*>(&digest), sizeof digest);
  }
  return digests;
}

// Which of them differ.
std::vector<std::string> differing(const std::vector<std::string>& names, const std::string& a,
                                   const std::string& b) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    constexpr std::size_t size = sizeof(std::uint64_t);
    if (a.compare(i * size, size, b, i * size, size) != 0) found.push_back(names[i]);
  }
  return found;
}

}  // namespace

void require_equal_replicas(const TensorStore& store, const std::vector<std::string>& names, HostGroup& group,
                            std::int64_t step) {
  if (group.world_size() == 1) return;
  const std::vector<std::string> all = group.all_gather(digests_of(store, names));
  // The first of those that are equally common.
  const std::string& common = *std::ranges::max_element(
      all, {}, [&](const std::string& digests) { return std::ranges::count(all, digests); });
  std::vector<std::size_t> drifted;
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    if (all[rank] != common) drifted.push_back(rank);
  }
  if (drifted.empty()) return;
  if (group.rank() != static_cast<int>(drifted.front())) {
    group.barrier();  // where the verdict comes
    throw run_error("after step {} rank {} holds other weights than the other ranks.", step, drifted.front());
  }
  const std::vector<std::string> tensors = differing(names, all[drifted.front()], common);
  throw run_error(
      "after step {} rank{} {} of {} hold{} other weights than the others: the first tensor that differs is "
      "'{}', one of {} of {}; what all ranks compute alike has drifted apart, through a device's fault or a "
      "plugin "
      "that is not deterministic; continue from the last checkpoint with --resume once that is mended.",
      step, drifted.size() == 1 ? "" : "s", fmt::join(drifted, ", "), all.size(),
      drifted.size() == 1 ? "s" : "", tensors.front(), tensors.size(), names.size());
}

}  // namespace mulligan
