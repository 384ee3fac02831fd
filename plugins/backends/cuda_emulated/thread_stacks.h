// Stacks of the emulated device's threads, one per thread of a block, kept from block to block.
#pragma once

#include <cstddef>
#include <vector>

namespace mulligan::cuda {

class ThreadStacks {
 public:
  static constexpr std::size_t kBytes = std::size_t{128} << 10;

  ThreadStacks() = default;
  ThreadStacks(const ThreadStacks&) = delete;
  ThreadStacks& operator=(const ThreadStacks&) = delete;
  ~ThreadStacks();

  // The upper end of stack `index`; below its lower end lies a page that must not be
  // touched. Throws std::bad_alloc.
  void* top(std::size_t index);

 private:
  std::vector<void*> stacks_;
};

}  // namespace mulligan::cuda
