#include "framework/core/alternate_stack.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

namespace mulligan {
namespace {

class AlternateStack {
 public:
  AlternateStack() {
    // The registers alone take 11 KB on a processor with AMX; the system tells the least size.
    constexpr long comfortable = 64 * 1024;
    bytes_ = static_cast<std::size_t>(std::max(sysconf(_SC_SIGSTKSZ), comfortable));
    memory_ = mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_STACK, -1, 0);
    if (memory_ == MAP_FAILED) return;
    stack_t stack{};
    stack.ss_sp = memory_;
    stack.ss_size = bytes_;
    sigaltstack(&stack, nullptr);
  }
  AlternateStack(const AlternateStack&) = delete;
  AlternateStack& operator=(const AlternateStack&) = delete;
  ~AlternateStack() {
    if (memory_ == MAP_FAILED) return;
    stack_t none{};
    none.ss_flags = SS_DISABLE;
    sigaltstack(&none, nullptr);
    munmap(memory_, bytes_);
  }

 private:
  void* memory_ = MAP_FAILED;
  std::size_t bytes_ = 0;
};

}  // namespace

void install_alternate_stack() {
  thread_local const AlternateStack stack;
  static_cast<void>(stack);
}

}  // namespace mulligan
