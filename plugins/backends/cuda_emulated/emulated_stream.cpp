#include "plugins/backends/cuda_emulated/emulated_stream.h"

#include <memory>
#include <stdexcept>
#include <utility>

namespace mulligan::cuda {
namespace {

constexpr unsigned kNonBlockingStream = 1;  // CU_STREAM_NON_BLOCKING
constexpr std::size_t kRunAhead = 4096;     // pieces of work between two waits: what waits takes memory

}  // namespace

EmulatedStream::EmulatedStream(const std::string& path)
    : library_("the emulated device's driver", {path},
               "correct backend.emulated_driver, or leave it out to do the work at once") {
  check(create_(&stream_, kNonBlockingStream), "cuStreamCreate");
}

EmulatedStream::~EmulatedStream() {
  synchronize_(stream_);
  destroy_(stream_);
}

void EmulatedStream::check(int result, const char* call) const {
  if (result == 0) return;
  const char* text = nullptr;
  error_text_(result, &text);
  throw std::runtime_error(std::string(call) + " failed: " + (text ? text : "unknown error"));
}

void EmulatedStream::require_sound() {
  const std::lock_guard lock(mutex_);
  if (!failure_.empty()) throw std::runtime_error(failure_);
}

void EmulatedStream::launch(std::function<void()> work) {
  using Work = std::function<void()>;
  auto kept = std::make_unique<Work>(std::move(work));
  const auto run = [](void* data) {
    const std::unique_ptr<Work> own(static_cast<Work*>(data));
    (*own)();
  };
  check(launch_(stream_, run, kept.get()), "cuLaunchHostFunc");
  kept.release();
}

// The stream knows no exceptions.
void EmulatedStream::add(std::function<void()> work) {
  require_sound();
  launch([this, work = std::move(work)] {
    try {
      require_sound();
      work();
    } catch (const std::exception& error) {
      const std::lock_guard lock(mutex_);
      if (failure_.empty()) failure_ = error.what();
    }
  });
  if (++added_ % kRunAhead == 0) synchronize();
}

// Also reached after work has failed: a waiting thread then gets the failure.
void EmulatedStream::mark(std::uint32_t slot) {
  require_sound();
  std::unique_lock lock(mutex_);
  const std::uint64_t number = ++marks_.at(slot).made;
  lock.unlock();
  launch([this, slot, number] {
    const std::lock_guard guard(mutex_);
    marks_[slot].reached = number;
    reached_.notify_all();
  });
}

void EmulatedStream::await(std::uint32_t slot) {
  {
    std::unique_lock lock(mutex_);
    const Mark& mark = marks_.at(slot);
    reached_.wait(lock, [&] { return mark.reached >= mark.made; });
  }
  require_sound();
}

void EmulatedStream::register_memory(void* address, std::size_t bytes) {
  check(register_(address, bytes, 0), "cuMemHostRegister");
}

void EmulatedStream::forget_memory(void* address) noexcept {
  unregister_(address);
}

void EmulatedStream::synchronize() {
  check(synchronize_(stream_), "cuStreamSynchronize");
  require_sound();
}

}  // namespace mulligan::cuda
