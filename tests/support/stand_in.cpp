#include "tests/support/stand_in.h"

#include <dlfcn.h>

#include <future>
#include <stdexcept>
#include <string>

#include "tests/stand_in/stand_in.h"
#include "tests/support/built.h"
#include "tests/support/plugins.h"

namespace mulligan {
namespace {

const std::string kFolder = test_support::built("stand_in");

// Opens a library, so that later requests for its name get this one.
void* opened(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  return library;
}

void* nccl() {
  static void* const driver = opened(stand_in_driver());
  static void* const library = opened(stand_in_nccl_library());
  return driver ? library : nullptr;
}

void set(const StandInNccl& wanted) {
  reinterpret_cast<decltype(&stand_in_nccl)>(dlsym(nccl(), "stand_in_nccl"))(wanted);
}

}  // namespace

std::string stand_in_driver() {
  return kFolder + "/libcuda.so.1";
}

std::string stand_in_nccl_library() {
  return kFolder + "/libnccl.so.2";
}

std::unique_ptr<Backend> make_stand_in_backend() {
  nccl();
  const PluginHandle plugin =
      PluginHost({}).load(PluginKind::backend, "stand_in_device", kFolder + "/mulligan_stand_in_device.so");
  return std::make_unique<Backend>(plugin, test_plugin_config(plugin));
}

struct StandInGate::State {
  std::promise<void> opened;
  // What the stream holds of it while it waits.
  static void wait(void* data) {
    const std::unique_ptr<std::shared_ptr<State>> state(static_cast<std::shared_ptr<State>*>(data));
    (*state)->opened.get_future().wait();
  }
};

StandInGate::StandInGate(Backend& backend) : state_(std::make_shared<State>()) {
  using Launch = int (*)(void* stream, void (*function)(void*), void* data);
  static const auto launch = reinterpret_cast<Launch>(dlsym(opened(stand_in_driver()), "cuLaunchHostFunc"));
  launch(backend.queue().stream, State::wait, new std::shared_ptr<State>(state_));
}
StandInGate::~StandInGate() {
  state_->opened.set_value();
}

namespace {

StandIn& driver_state() {
  return reinterpret_cast<decltype(&stand_in)>(dlsym(opened(stand_in_driver()), "stand_in"))();
}

}  // namespace

StandInSharedCard::StandInSharedCard() {
  driver_state().own_cards = false;
}
StandInSharedCard::~StandInSharedCard() {
  driver_state().own_cards = true;
}

StandInFaults::StandInFaults(const StandInNccl& wanted) {
  set(wanted);
}
StandInFaults::~StandInFaults() {
  set({});
}

}  // namespace mulligan
