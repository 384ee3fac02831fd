#include "tests/support/stand_in.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

#include "tests/support/plugins.h"

namespace mulligan {
namespace {

const std::string kFolder = MULLIGAN_STAND_IN_DIRECTORY;

// Whoever asks for a library of that name later gets this one.
void* opened(const std::string& name) {
  void* library = dlopen((kFolder + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!library) throw std::runtime_error(dlerror());
  return library;
}

void* nccl() {
  static void* const driver = opened("libcuda.so.1");
  static void* const library = opened("libnccl.so.2");
  return driver ? library : nullptr;
}

void set(const StandInNccl& wanted) {
  reinterpret_cast<decltype(&stand_in_nccl)>(dlsym(nccl(), "stand_in_nccl"))(wanted);
}

}  // namespace

std::unique_ptr<Backend> make_stand_in_backend() {
  nccl();
  const PluginHandle plugin =
      PluginHost({}).load(PluginKind::backend, "stand_in_device", kFolder + "/mulligan_stand_in_device.so");
  return std::make_unique<Backend>(plugin, test_plugin_config(plugin));
}

StandInFaults::StandInFaults(const StandInNccl& wanted) {
  set(wanted);
}
StandInFaults::~StandInFaults() {
  set({});
}

}  // namespace mulligan
