// The host's view of the boundaries (cu_seqlens) that attention calls read: the backend sees every upload, so
// it knows what a tensor holds without waiting for the device.
//
// Boundaries are inputs: a kernel that computed them would not be noticed, a copy or a fill is (the tensor is
// not known then until it is uploaded again).
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "plugins/backends/cuda/attention/segments.h"

namespace mulligan::cuda {

class SegmentTables {
 public:
  // Watches the int32 at `address`, which hold `contents` now, for rows of `tokens` tokens. Several may watch
  // one address, an owner at most once; each ends with unwatch(). `written` is called when the contents were
  // overwritten, by anyone.
  void watch(const void* address, std::int64_t tokens, std::vector<std::int32_t> contents, const void* owner,
             std::function<void()> written);
  void unwatch(const void* address, const void* owner) noexcept;

  // Bytes of the device were overwritten: from the host, or (`host` null) with what the host does not know.
  void written(const void* device, const void* host, std::size_t bytes);

  // Nothing where the contents are not known, or are no boundaries of that many tokens.
  std::optional<SegmentSummary> summary(const void* address) const;

 private:
  struct Table {
    std::map<const void*, std::function<void()>> watchers;  // by owner
    std::int64_t tokens = 0;
    std::vector<std::int32_t> contents;
    std::optional<SegmentSummary> summary;
  };
  std::map<const char*, Table> tables_;
};

}  // namespace mulligan::cuda
