// The emulated device's work on a stream: in order, asynchronously, with libraries that are ordered by the
// driver's streams and events, as NCCL is. The driver's functions come from a library that works on the
// CPU, as that of the tests does.
#pragma once

#include <mulligan/backend.h>

#include <array>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>

#include "plugins/common/shared_library.h"

namespace mulligan::cuda {

class EmulatedStream {
 public:
  // Throws std::runtime_error in one sentence where the library `path` is missing, or makes no stream.
  explicit EmulatedStream(const std::string& path);
  // Waits for the work.
  ~EmulatedStream();
  EmulatedStream(const EmulatedStream&) = delete;

  // Enqueues `work`. Throws std::runtime_error where earlier work has failed: nothing is done after that, as
  // on a GPU.
  void add(std::function<void()> work);
  // Waits for the work so far; throws as add().
  void synchronize();
  // A place in the order of the work, and waiting for it (mlg_backend_table); await() throws as add().
  void mark(std::uint32_t slot);
  void await(std::uint32_t slot);

  // Tells the driver of memory that other libraries on the stream are given, and that it is gone.
  void register_memory(void* address, std::size_t bytes);
  void forget_memory(void* address) noexcept;

  mlg_queue queue() const { return {MLG_QUEUE_CUDA, stream_, nullptr}; }

 private:
  // Enqueues `work`, whatever happened before.
  void launch(std::function<void()> work);
  // Of a slot: how often it was marked, and how often that was reached.
  struct Mark {
    std::uint64_t made = 0, reached = 0;
  };
  void check(int result, const char* call) const;
  void require_sound();

  plugins::SharedLibrary library_;
  int (*create_)(void** stream, unsigned flags) = library_["cuStreamCreate"];
  int (*destroy_)(void* stream) = library_["cuStreamDestroy_v2"];
  int (*synchronize_)(void* stream) = library_["cuStreamSynchronize"];
  int (*launch_)(void* stream, void (*function)(void*), void* data) = library_["cuLaunchHostFunc"];
  int (*register_)(void* address, std::size_t bytes, unsigned flags) = library_["cuMemHostRegister_v2"];
  int (*unregister_)(void* address) = library_["cuMemHostUnregister"];
  int (*error_text_)(int result, const char** text) = library_["cuGetErrorString"];
  void* stream_ = nullptr;
  std::size_t added_ = 0;
  std::mutex mutex_;
  std::string failure_;  // of the first work that threw
  std::array<Mark, MLG_MARKS> marks_;
  std::condition_variable reached_;
};

}  // namespace mulligan::cuda
