#include "plugins/backends/cuda/compile/compiled_function.h"

#include <cstdint>
#include <cstring>
#include <stdexcept>

namespace mulligan::cuda {

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
