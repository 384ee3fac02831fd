#include "plugins/backends/cuda/gpu/staging_ring.h"

#include <algorithm>
#include <cstring>

namespace mulligan::cuda {

StagingRing::~StagingRing() {
  for (const CUevent event : made_) driver_.EventDestroy(event);
  if (memory_) driver_.MemFreeHost(memory_);
}

void StagingRing::prepare() {
  if (memory_) return;
  while (made_.size() < kMostUploads) {
    CUevent event = nullptr;
    MLG_CU(driver_, EventCreate, &event, CU_EVENT_DISABLE_TIMING);
    made_.push_back(event);
  }
  free_ = made_;
  void* memory = nullptr;
  MLG_CU(driver_, MemAllocHost, &memory, kBytes);
  memory_ = static_cast<char*>(memory);
}

void StagingRing::wait_for_oldest() {
  MLG_CU(driver_, EventSynchronize, under_way_.front().fetched);
  free_.push_back(under_way_.front().fetched);
  under_way_.pop_front();
}

void StagingRing::upload(CUdeviceptr device, const void* host, std::size_t bytes, CUstream stream) {
  prepare();
  const std::size_t begin = next_ + bytes > kBytes ? 0 : next_, end = begin + bytes;
  const auto in_the_way = [&](const Upload& upload) { return upload.begin < end && begin < upload.end; };
  while (free_.empty() || std::ranges::any_of(under_way_, in_the_way)) wait_for_oldest();
  std::memcpy(memory_ + begin, host, bytes);
  MLG_CU(driver_, MemcpyHtoDAsync, device, memory_ + begin, bytes, stream);
  MLG_CU(driver_, EventRecord, free_.back(), stream);
  under_way_.push_back({begin, end, free_.back()});
  free_.pop_back();
  next_ = end;
}

}  // namespace mulligan::cuda
