// What the host knows of a row's segments, and the plans that this decides between.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <span>
#include <vector>

namespace mulligan::cuda {

// Of boundaries cu[0..n]: segment i is [cu[i], cu[i + 1]).
struct SegmentSummary {
  std::int64_t count = 0;    // segments up to the last one that is not empty
  std::int64_t longest = 0;  // tokens
  bool equal = false;        // all n segments have the same length

  bool operator==(const SegmentSummary&) const = default;
};

// Nothing where the boundaries do not rise (or stay) from 0 to `tokens`.
std::optional<SegmentSummary> summarise(std::span<const std::int32_t> boundaries, std::int64_t tokens);

// The batch that a library's attention is planned for, which holds the segments. A plan costs most of a
// second, a row or a length beyond the segments' own costs blocks that end at once. So
//   equal segments, up to 64: 16 or 64 rows of a power of two from 256 on: eight plans each way serve every
//                             window of test-time training of up to 2,048 tokens
//   equal segments, more:     exactly those, not packed, unless their length is 64 more than a multiple of 128
//   others, documents:        rows in quarter steps of a power of two from 16 on (..., 128, 160, 192, ...), from 2,048 on
//                             powers of two, their longest length a power of two from 2,048 on: so many plans serve
//                             all rows of documents that every one of them can be made before training begins
struct AttentionBucket {
  std::int64_t rows = 0, longest = 0;
  bool packed = false;

  auto operator<=>(const AttentionBucket&) const = default;
};
AttentionBucket bucket_of(const SegmentSummary& summary);

// The most rows of a bucket of at most `segments` segments over `tokens` tokens, up to 32,768, which cuDNN's grids hold.
// What has more is the own kernel's, or refused where the library is required.
std::int64_t most_rows(std::int64_t segments, std::int64_t tokens);

// The host's view of the boundaries (cu_seqlens) that attention calls read: the backend sees every upload, so
// it knows what a tensor holds without waiting for the device.
//
// Boundaries are inputs: a kernel that computed them would not be noticed, a copy or a fill is (the tensor is
// not known then until it is uploaded again).

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

  // Nothing where the contents are not known, or are not boundaries of that many tokens.
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
