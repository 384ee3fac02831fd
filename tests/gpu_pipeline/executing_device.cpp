#include "tests/gpu_pipeline/executing_device.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <string_view>

namespace mulligan::cuda {

Function& ExecutingDevice::load(const FunctionRequest& request) {
  if (!request.launch->emulated) {
    throw std::runtime_error(std::string("kernel ") + request.kernel +
                             " exists as GPU code only, which is not run here");
  }
  stub_announces(kernel_of(*request.launch));
  Function& function = gpu_.load(request);
  stub_announces({});  // it was loaded before
  return function;
}

// A pointer may lead as far as its allocation: what else a kernel may touch is the emulated device's to check.
StubKernel ExecutingDevice::kernel_of(const mlg_cuda_launch& launch) {
  std::vector<std::pair<mlg_emulated_constant, double>> constants;
  for (const auto& constant : std::span(launch.constants, launch.constant_count)) {
    for (const auto& place : std::span(launch.emulated->constants, launch.emulated->constant_count)) {
      if (std::string_view(place.name) == constant.name) constants.emplace_back(place, constant.value);
    }
  }
  std::vector<std::int32_t> kinds;
  for (const auto& argument : std::span(launch.arguments, launch.argument_count))
    kinds.push_back(argument.kind);
  const std::size_t count = kinds.size();
  return {count, [this, code = *launch.emulated, constants, kinds](const StubLaunch& asked) {
            for (const auto& [place, value] : constants) {
              if (place.integer) *place.integer = static_cast<int>(value);
              if (place.number) *place.number = static_cast<float>(value);
            }
            std::vector<mlg_emulated_region> regions(kinds.size());
            std::vector<mlg_emulated_argument> values(kinds.size());
            std::size_t longest = 0;
            const auto read = [&](std::size_t i, auto value) {
              std::memcpy(&value, asked.values[i], sizeof value);
              return value;
            };
            for (std::size_t i = 0; i < kinds.size(); ++i) {
              if (kinds[i] == MLG_CUDA_INT) {
                values[i].integer = read(i, int{});
              } else if (kinds[i] == MLG_CUDA_LONG) {
                values[i].integer = read(i, 0LL);
              } else if (kinds[i] == MLG_CUDA_FLOAT) {
                values[i].number = read(i, 0.0f);
              } else if (char* begin = read(i, static_cast<char*>(nullptr))) {
                const std::size_t bytes = stub_bytes_from(begin);
                longest = std::max(longest, bytes);
                regions[i] = {"an argument", begin, begin + bytes, nullptr, 1, 1};
                values[i].region = &regions[i];
              }
            }
            if (written_.size() < longest) written_.resize(longest, 1);
            for (mlg_emulated_region& region : regions) region.known = written_.data();
            const auto& [gx, gy, gz] = asked.grid;
            const auto& [bx, by, bz] = asked.block;
            runner_.run(code, values.data(), {{gx, gy, gz}, {bx, by, bz}, asked.shared_bytes});
          }};
}

}  // namespace mulligan::cuda
