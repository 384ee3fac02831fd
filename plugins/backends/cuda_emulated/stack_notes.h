// What AddressSanitizer has to know of threads that run on stacks of their own: where the stack is that
// is switched to, and which stack of "fake" frames (detect_stack_use_after_return) belongs to it. Nothing
// in other builds.
#pragma once

#include <cstddef>

#if defined(__SANITIZE_ADDRESS__)
#define MULLIGAN_ADDRESS_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define MULLIGAN_ADDRESS_SANITIZER 1
#endif
#endif
#ifdef MULLIGAN_ADDRESS_SANITIZER
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#endif

namespace mulligan::cuda {

struct StackNotes {
  const void* bottom = nullptr;
  std::size_t bytes = 0;
  void* fake_frames = nullptr;
};

#ifdef MULLIGAN_ADDRESS_SANITIZER

// Just before the switch. Without `left` the stack that runs now is not returned to.
inline void note_leaving(StackNotes* left, const StackNotes& next) {
  __sanitizer_start_switch_fiber(left ? &left->fake_frames : nullptr, next.bottom, next.bytes);
}
// Just after it, on the stack `here`; `previous`, where it is wanted, learns where the stack left is.
inline void note_arrival(const StackNotes& here, StackNotes* previous) {
  __sanitizer_finish_switch_fiber(here.fake_frames, previous ? &previous->bottom : nullptr,
                                  previous ? &previous->bytes : nullptr);
}
// Frames that ended without returning are no more.
inline void forget_frames(const StackNotes& stack) {
  __asan_unpoison_memory_region(stack.bottom, stack.bytes);
}

#else

inline void note_leaving(StackNotes*, const StackNotes&) {}
inline void note_arrival(const StackNotes&, StackNotes*) {}
inline void forget_frames(const StackNotes&) {}

#endif

}  // namespace mulligan::cuda
