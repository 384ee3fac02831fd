#include "plugins/backends/cuda/attention/segment_rows.h"

namespace mulligan::cuda {
namespace {

constexpr std::size_t kAlignment = 256;

std::size_t bytes_of(SegmentRowsCall::Argument argument, const RowLayout& layout) {
  const std::int64_t count = argument == SegmentRowsCall::cu_seqlens ? layout.boundaries
                             : argument == SegmentRowsCall::lengths  ? layout.most_rows
                                                                     : layout.most_rows + 1;
  return static_cast<std::size_t>(count) * sizeof(std::int32_t);
}

// Of one of the four results in their memory.
std::size_t room(const RowLayout& layout) {
  const std::size_t bytes = bytes_of(SegmentRowsCall::query_starts, layout);
  return (bytes + kAlignment - 1) / kAlignment * kAlignment;
}

LaunchSteps steps_of(Device& device, const LaunchPlan& plan) {
  return LaunchSteps(device, SegmentRowsCall::name, attention_rows_source(), *plan);
}

}  // namespace

SegmentRows::SegmentRows(Device& device, const void* cu_seqlens, const RowLayout& layout)
    : device_(device),
      cu_seqlens_(cu_seqlens),
      layout_(layout),
      memory_(nullptr),
      plan_(plan_segment_rows(layout)),
      steps_(steps_of(device, plan_)) {
  memory_ = device_.allocate(4 * room(layout));
  steps_.place([this](std::uint32_t index) { return part(SegmentRowsCall::Argument{index}); }, nullptr);
}

DeviceArgument SegmentRows::part(SegmentRowsCall::Argument argument) const {
  DeviceArgument place;
  place.bytes = bytes_of(argument, layout_);
  if (argument == SegmentRowsCall::cu_seqlens) {
    place.address = const_cast<void*>(cu_seqlens_);
    place.name = "cu_seqlens";
    place.writable = false;
  } else {
    place.address = static_cast<char*>(memory_) + (argument - SegmentRowsCall::query_starts) * room(layout_);
    place.name = "the starts and lengths of rows";
  }
  return place;
}

void SegmentRows::load(Device& device, const RowLayout& layout) {
  const LaunchPlan plan = plan_segment_rows(layout);
  steps_of(device, plan);
}

std::shared_ptr<const SegmentRows> SegmentRowTables::rows(const void* cu_seqlens, const RowLayout& layout) {
  std::erase_if(rows_, [](const auto& entry) { return entry.second.expired(); });
  std::weak_ptr<SegmentRows>& known = rows_[{cu_seqlens, layout}];
  std::shared_ptr<SegmentRows> rows = known.lock();
  if (rows) return rows;
  rows = std::make_shared<SegmentRows>(device_, cu_seqlens, layout);
  rows->compute();
  known = rows;
  return rows;
}

void SegmentRowTables::written(const void* device, std::size_t bytes) {
  const char* begin = static_cast<const char*>(device);
  for (const auto& [key, known] : rows_) {
    const char* boundaries = static_cast<const char*>(key.first);
    const std::size_t size = bytes_of(SegmentRowsCall::cu_seqlens, key.second);
    if (begin >= boundaries + size || boundaries >= begin + bytes) continue;
    if (const std::shared_ptr<SegmentRows> rows = known.lock()) rows->compute();
  }
}

}  // namespace mulligan::cuda
