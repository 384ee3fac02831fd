// Where the rows of a library's attention (attention.h) start, on the device: computed once each time that
// boundaries are written, for all calls that read them with tensors of one layout.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>

#include "kernels/attention/cuda_rows.h"
#include "plugins/backends/cuda/device.h"
#include "plugins/backends/cuda/launch_steps.h"

namespace mulligan::cuda {

// Of the boundaries at one address; rows beyond the segments are empty ones at the end.
class SegmentRows {
 public:
  SegmentRows(Device& device, const void* cu_seqlens, const RowLayout& layout);
  ~SegmentRows() { device_.free(memory_); }
  SegmentRows(const SegmentRows&) = delete;
  SegmentRows& operator=(const SegmentRows&) = delete;

  // Enqueues the launch; not while a graph is captured.
  void compute() { steps_.run(); }

  // int32, as AttentionArguments wants them: [most_rows + 1] starts, [most_rows] lengths.
  DeviceArgument part(SegmentRowsCall::Argument argument) const;

  // Loads the function, for a device that only compiles.
  static void load(Device& device, const RowLayout& layout);

 private:
  Device& device_;
  const void* cu_seqlens_;
  RowLayout layout_;
  void* memory_;
  LaunchPlan plan_;
  LaunchSteps steps_;
};

// The rows in use.
class SegmentRowTables {
 public:
  explicit SegmentRowTables(Device& device) : device_(device) {}

  // Those of boundaries at `cu_seqlens`, computed from what they are now when nobody had asked for them yet.
  std::shared_ptr<const SegmentRows> rows(const void* cu_seqlens, const RowLayout& layout);
  // Bytes of the device were overwritten: computes anew what was made from them.
  void written(const void* device, std::size_t bytes);

 private:
  Device& device_;
  std::map<std::pair<const void*, RowLayout>, std::weak_ptr<SegmentRows>> rows_;
};

}  // namespace mulligan::cuda
