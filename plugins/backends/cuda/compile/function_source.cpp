#include "plugins/backends/cuda/compile/function_source.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <stdexcept>
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

// The symbol's length, the resources, the symbol, the cubin.
std::string pack(const CompiledFunction& function) {
  const auto length = static_cast<std::uint64_t>(function.symbol.size());
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes.append(reinterpret_cast<const char*>(&function.resources), sizeof function.resources);
  return bytes + function.symbol + function.cubin;
}

CompiledFunction unpack(const std::string& bytes) {
  CompiledFunction function;
  std::uint64_t length = 0;
  constexpr std::size_t kHeader = sizeof length + sizeof function.resources;
  if (bytes.size() >= kHeader) std::memcpy(&length, bytes.data(), sizeof length);
  if (bytes.size() < kHeader || bytes.size() - kHeader < length)
    throw std::runtime_error("compiled code on disk is too short; delete the cache");
  std::memcpy(&function.resources, bytes.data() + sizeof length, sizeof function.resources);
  function.symbol = bytes.substr(kHeader, length);
  function.cubin = bytes.substr(kHeader + length);
  return function;
}

}  // namespace mulligan::cuda
