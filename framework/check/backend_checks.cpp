// Checks of backend plugins: memory and description. Their kernels are compared with
// formulas by tests/kernels.
#include <cstdint>

#include "framework/check/kind_checks.h"
#include "framework/check/poisoned_run.h"

namespace mulligan {

void check_backend(const PluginHandle& plugin, const PluginConfig& config, CheckList& list) {
  Backend backend(plugin, config);
  list.add("describes its device", [&] {
    return *backend.info().description ? std::string() : std::string("its description is empty");
  });
  list.add("memory is aligned to 256 bytes and zero", [&] {
    for (const std::size_t bytes : {1u, 1000u, 100000u}) {
      const DeviceBuffer buffer = backend.allocate(bytes);
      if (reinterpret_cast<std::uintptr_t>(buffer.address()) % 256 != 0)
        return fmt::format("{} bytes lie at an address that 256 does not divide", bytes);
      if (!backend.info().computes) continue;
      std::vector<std::uint8_t> contents(bytes, 1);
      backend.download(contents.data(), buffer.address(), bytes);
      for (const std::uint8_t value : contents) {
        if (value != 0) return fmt::format("{} new bytes are not all zero", bytes);
      }
    }
    return std::string();
  });
  if (!backend.info().computes) return;
  list.add("what is uploaded and copied comes back", [&] {
    const std::vector<float> values = sample(1001, 5);
    const std::size_t bytes = values.size() * sizeof(float);
    const DeviceBuffer a = backend.allocate(bytes), b = backend.allocate(bytes);
    backend.upload(a.address(), values.data(), bytes);
    backend.copy(b.address(), a.address(), bytes);
    std::vector<float> back(values.size());
    backend.download(back.data(), b.address(), bytes);
    return first_difference("a copy", values, back);
  });
  list.add("lists its kernels",
           [&] { return backend.kernel_at(0) ? std::string() : std::string("it has no kernel at all"); });
}

}  // namespace mulligan
