#include "framework/plugin/plugin_call.h"

#include <atomic>
#include <cstring>

namespace mulligan {
namespace {

struct Owner {
  const char* kernel = nullptr;
  const char* owner = nullptr;
};
// Filled from the front and never changed: a signal handler may read it at any time. Kernels beyond its end
// are named without their owner.
constexpr std::size_t capacity = 512;
Owner owners[capacity];
std::atomic<std::size_t> owner_count{0};

// Copies that live until the process ends.
const char* kept(const std::string& text) {
  char* copy = new char[text.size() + 1];
  std::memcpy(copy, text.c_str(), text.size() + 1);
  return copy;
}

Owner* find(const char* kernel) {
  const std::size_t count = owner_count.load();
  for (std::size_t i = 0; i < count; ++i) {
    if (std::strcmp(owners[i].kernel, kernel) == 0) return &owners[i];
  }
  return nullptr;
}

}  // namespace

mlg_running* plugin_running() {
  static mlg_running running{};
  return &running;
}

void note_kernel_owner(const char* kernel, const std::string& owner) {
  if (Owner* known = find(kernel)) {
    if (owner != known->owner) known->owner = kept(owner);
    return;
  }
  const std::size_t count = owner_count.load();
  if (count == capacity) return;
  owners[count] = {kept(kernel), kept(owner)};
  owner_count.store(count + 1);
}

const char* kernel_owner(const char* kernel) {
  const Owner* known = find(kernel);
  return known ? known->owner : nullptr;
}

}  // namespace mulligan
