// A separate stack for the signal handlers of one thread. POSIX keeps alternate stacks per thread. The host's threads have
// one; a plugin that starts threads makes one in each, so that the host can report a crash there.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstddef>

#pragma GCC visibility push(hidden)

namespace mulligan::sdk {

// Belongs to the thread that makes it, for as long as it lives. With it, handlers with SA_ONSTACK work even if generated
// code uses the stack register for data, or if the stack has overflowed. If memory is lacking, the thread has none.
class AlternateStack {
 public:
  AlternateStack() {
    // On a CPU with AMX the registers alone take 11 KB; the system gives the least size.
    constexpr long comfortable = 64 * 1024;
    bytes_ = static_cast<std::size_t>(std::max(sysconf(_SC_SIGSTKSZ), comfortable));
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory_ == MAP_FAILED) return;
    stack_t stack{};
    stack.ss_sp = memory_;
    stack.ss_size = bytes_;
    sigaltstack(&stack, nullptr);
  }
  ~AlternateStack() {
    if (memory_ == MAP_FAILED) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    munmap(memory_, bytes_);
  }
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;

 private:
  void* memory_ = MAP_FAILED;
  std::size_t bytes_ = 0;
};

// Gives the calling thread such a stack until it ends. Calling again changes nothing.
inline void install_alternate_stack() {
  thread_local const AlternateStack stack;
  static_cast<void>(stack);
}

}  // namespace mulligan::sdk

#pragma GCC visibility pop
