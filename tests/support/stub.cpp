#include "tests/support/stub.h"

#include <dlfcn.h>

#include <future>
#include <stdexcept>
#include <string>

#include "tests/stub/stub.h"
#include "tests/support/built.h"
#include "tests/support/plugins.h"

namespace mulligan {
namespace {

const std::string kFolder = test_support::built("stub");

// Opens a library, so that later requests for its name get this one.
void* opened(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  return library;
}

void* nccl() {
  static void* const driver = opened(stub_driver());
  static void* const library = opened(stub_nccl_library());
  return driver ? library : nullptr;
}

void set(const StubNccl& wanted) {
  reinterpret_cast<decltype(&stub_nccl)>(dlsym(nccl(), "stub_nccl"))(wanted);
}

}  // namespace

std::string stub_driver() {
  return kFolder + "/libcuda.so.1";
}

std::string stub_nccl_library() {
  return kFolder + "/libnccl.so.2";
}

std::unique_ptr<Backend> make_stub_backend() {
  nccl();
  const PluginHandle plugin =
      PluginHost({}).load(MLG_BACKEND, "stub_device", kFolder + "/mulligan_stub_device.so");
  return std::make_unique<Backend>(plugin, test_plugin_config(plugin));
}

struct StubGate::State {
  std::promise<void> opened;
  // What the stream holds of it while it waits.
  static void wait(void* data) {
    const std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(data));
    (*state)->opened.get_future().wait();
  }
};

StubGate::StubGate(Backend& backend) : state_(std::make_shared<State>()) {
  using Launch = int (*)(void* stream, void (*function)(void*), void* data);
  static const auto launch = reinterpret_cast<Launch>(dlsym(opened(stub_driver()), "cuLaunchHostFunc"));
  launch(backend.queue().stream, State::wait, new std::shared_ptr<State>(state_));
}
StubGate::~StubGate() {
  state_->opened.set_value();
}

namespace {

Stub& driver_state() {
  return reinterpret_cast<decltype(&stub)>(dlsym(opened(stub_driver()), "stub"))();
}

}  // namespace

StubSharedCard::StubSharedCard() {
  driver_state().own_cards = false;
}
StubSharedCard::~StubSharedCard() {
  driver_state().own_cards = true;
}

StubFaults::StubFaults(const StubNccl& wanted) {
  set(wanted);
}
StubFaults::~StubFaults() {
  set({});
}

}  // namespace mulligan
