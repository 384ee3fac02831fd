#include "plugins/backends/cuda_emulated/thread_stacks.h"

#include <sys/mman.h>

#include <new>

#include "plugins/backends/cuda_emulated/stack_notes.h"

namespace mulligan::cuda {
namespace {
constexpr std::size_t kGuard = 4096;
// Tops at the same offset in their pages would share a few sets of the first-level cache, which then holds
// the live lines of some ten threads only.
constexpr std::size_t kColours = 16, kColourBytes = 256;
constexpr std::size_t kWhole = kGuard + ThreadStacks::kBytes + kColours * kColourBytes;
}  // namespace

ThreadStacks::~ThreadStacks() {
  for (void* stack : stacks_) {
    forget_frames({stack, kWhole});  // whoever is given these addresses next
    munmap(stack, kWhole);
  }
}

void* ThreadStacks::top(std::size_t index) {
  while (stacks_.size() <= index) {
    void* memory = mmap(nullptr, kWhole, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_STACK, -1, 0);
    if (memory == MAP_FAILED) throw std::bad_alloc();
    mprotect(memory, kGuard, PROT_NONE);
    stacks_.push_back(memory);
  }
  return static_cast<char*>(stacks_[index]) + kWhole - index % kColours * kColourBytes;
}

}  // namespace mulligan::cuda
