#include "framework/train/replica_check.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <utility>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/sha256.h"

namespace mulligan {
namespace {

constexpr std::size_t digest_size = 64;  // hexadecimal digits of a sha256

// One digest per tensor, one behind the other.
std::string digests_of(const TensorStore& store, const std::vector<std::string>& names) {
  std::string digests;
  std::vector<std::byte> bytes;
  for (const std::string& name : names) {
    bytes.resize(static_cast<std::size_t>(store.type(name).bytes()));
    store.download(name, bytes);
    Sha256 digest;
    digest.update(std::span<const std::byte>(bytes));
    digests += digest.hex();
  }
  return digests;
}

// Which of them differ.
std::vector<std::string> differing(const std::vector<std::string>& names, const std::string& a,
                                   const std::string& b) {
  std::vector<std::string> found;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const std::size_t at = i * digest_size;
    if (a.compare(at, digest_size, b, at, digest_size) != 0) found.push_back(names[i]);
  }
  return found;
}

}  // namespace

ReplicaCheck::ReplicaCheck(const std::vector<PlannedParameter>& parameters) {
  for (const PlannedParameter& parameter : parameters) masters_.push_back(master_name(parameter.name()));
}

void ReplicaCheck::require_equal(const TensorStore& store, HostGroup& group, std::int64_t step) {
  if (std::exchange(compared_step_, step) == step || group.world_size() == 1) return;
  // Of all tensors first, which is short; of each only where a rank differs.
  const std::string digests = digests_of(store, masters_);
  const auto says_same = [](const std::vector<std::string>& all) {
    return std::string(std::ranges::count(all, all.front()) == std::ssize(all) ? "same" : "");
  };
  if (!group.consult(sha256_hex(digests), says_same).empty()) return;
  const std::vector<std::string> all = group.gather_texts(digests);
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
  const std::vector<std::string> tensors = differing(masters_, all[drifted.front()], common);
  throw run_error(
      "after step {} rank{} {} of {} hold{} other weights than the others: the first tensor that differs is "
      "'{}', one of {} of {}; what all ranks compute alike has drifted apart, through a device's fault or a "
      "plugin that is not deterministic; continue from the last checkpoint with --resume once that is fixed.",
      step, drifted.size() == 1 ? "" : "s", fmt::join(drifted, ", "), all.size(),
      drifted.size() == 1 ? "s" : "", tensors.front(), tensors.size(), masters_.size());
}

}  // namespace mulligan
