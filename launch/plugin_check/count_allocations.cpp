// malloc and its kin of this program, in front of the C library's: plugins are loaded into this process and
// resolve the names here, so the checks see whether one allocates on the step path. Not in builds with
// sanitizers, which bring a malloc of their own.
#include <cstddef>

#include "framework/check/allocation_count.h"

#if defined(__GLIBC__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)

// The C library's own, under the names it keeps for such purposes.
extern "C" {
void* __libc_malloc(std::size_t bytes);
void* __libc_calloc(std::size_t count, std::size_t bytes);
void* __libc_realloc(void* memory, std::size_t bytes);
void* __libc_memalign(std::size_t alignment, std::size_t bytes);
}

namespace {

[[maybe_unused]] const bool linked = mulligan::allocation_count().linked = true;

void count() {
  mulligan::AllocationCount& counter = mulligan::allocation_count();
  if (!counter.counting.load(std::memory_order_relaxed)) return;
  if (bool (*counts)() = counter.counts.load(std::memory_order_relaxed); counts && !counts()) return;
  counter.allocations.fetch_add(1, std::memory_order_relaxed);
}

}  // namespace

extern "C" {

__attribute__((visibility("default"))) void* malloc(std::size_t bytes) noexcept {
  count();
  return __libc_malloc(bytes);
}
__attribute__((visibility("default"))) void* calloc(std::size_t number, std::size_t bytes) noexcept {
  count();
  return __libc_calloc(number, bytes);
}
__attribute__((visibility("default"))) void* realloc(void* memory, std::size_t bytes) noexcept {
  count();
  return __libc_realloc(memory, bytes);
}
__attribute__((visibility("default"))) void* memalign(std::size_t alignment, std::size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}
__attribute__((visibility("default"))) void* aligned_alloc(std::size_t alignment,
                                                           std::size_t bytes) noexcept {
  count();
  return __libc_memalign(alignment, bytes);
}
__attribute__((visibility("default"))) int posix_memalign(void** memory, std::size_t alignment,
                                                          std::size_t bytes) noexcept {
  count();
  void* result = __libc_memalign(alignment, bytes);
  if (!result) return ENOMEM;
  *memory = result;
  return 0;
}

}  // extern "C"

#endif
