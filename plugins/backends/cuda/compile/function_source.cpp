#include "plugins/backends/cuda/compile/function_source.h"

#include <algorithm>
#include <cstdio>
#include <string_view>

#include "plugins/backends/cuda/compile/device_headers.h"

namespace mulligan::cuda {
namespace {

// -DMLG_VALUE_name=value of each constant; floats as hexadecimal literals, exact.
std::string define(const mlg_cuda_constant& constant) {
  char value[64];
  if (constant.is_float) {
    std::snprintf(value, sizeof value, "%af", static_cast<double>(static_cast<float>(constant.value)));
  } else {
    std::snprintf(value, sizeof value, "%lld", static_cast<long long>(constant.value));
  }
  return std::string("-DMLG_VALUE_") + constant.name + "=" + value;
}

// The header that states `function` as MLG_KERNEL(function), without constants; null: none.
const DeviceHeader* header_of(std::string_view function) {
  const std::string statement = "MLG_KERNEL(" + std::string(function.substr(0, function.find('<'))) + ")";
  for (const DeviceHeader& header : device_headers()) {
    if (std::string_view(header.text).find(statement) != std::string_view::npos) return &header;
  }
  return nullptr;
}

}  // namespace

FunctionSource function_source(const char* source, const mlg_cuda_launch& launch) {
  FunctionSource result{launch.function, {}, source};
  if (const DeviceHeader* header = header_of(launch.function)) {
    result.text = std::string("#include <") + header->name + ">\n";
    return result;
  }
  for (std::uint32_t i = 0; i < launch.constant_count; ++i) {
    result.definitions.push_back(define(launch.constants[i]));
  }
  std::sort(result.definitions.begin(), result.definitions.end());
  return result;
}

}  // namespace mulligan::cuda
