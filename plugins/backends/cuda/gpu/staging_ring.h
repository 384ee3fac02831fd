// Page-locked memory through which small uploads go: the host copies its data here and goes on, the GPU
// fetches them when its stream gets there. An upload waits only when its place, or one of the kMostUploads,
// is still taken by an upload that the GPU has not fetched; so this also bounds how far the host runs ahead.
#pragma once

#include <cstddef>
#include <deque>
#include <vector>

#include "plugins/backends/cuda/gpu/driver.h"

namespace mulligan::cuda {

class StagingRing {
 public:
  static constexpr std::size_t kBytes = std::size_t{32} << 20, kMostUploads = 64;
  static constexpr std::size_t kMostBytes = kBytes / 2;  // of one upload

  // Memory and events are taken with the first upload, in the context that is current then.
  explicit StagingRing(const Driver& driver) : driver_(driver) {}
  // The stream must have done its work.
  ~StagingRing();
  StagingRing(const StagingRing&) = delete;
  StagingRing& operator=(const StagingRing&) = delete;

  // Enqueues the copy of `bytes`, at most kMostBytes; has read `host` on return.
  void upload(CUdeviceptr device, const void* host, std::size_t bytes, CUstream stream);

 private:
  // Under way: bytes [begin, end), free once the event has come.
  struct Upload {
    std::size_t begin, end;
    CUevent fetched;
  };
  void prepare();
  void wait_for_oldest();

  const Driver& driver_;
  char* memory_ = nullptr;
  std::size_t next_ = 0;
  std::deque<Upload> under_way_;      // oldest first
  std::vector<CUevent> free_, made_;  // events
};

}  // namespace mulligan::cuda
