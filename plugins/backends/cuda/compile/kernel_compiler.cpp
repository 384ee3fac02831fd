#include "plugins/backends/cuda/compile/kernel_compiler.h"

#include <cstring>
#include <regex>
#include <stdexcept>
#include <string_view>
#include <utility>

#include "plugins/backends/cuda/compile/device_headers.h"
#include "plugins/backends/cuda/compile/nvrtc.h"

namespace mulligan::cuda {
namespace {

// What ptxas says of `symbol`: "Compiling entry function 'symbol' ...", "0 bytes stack frame, 0 bytes spill
// stores, 0 bytes spill loads", "Used 30 registers, 128 bytes smem". The log may speak of other functions of
// the source, too.
FunctionResources parse_resources(const std::string& log, const std::string& symbol) {
  const std::string_view heading = "Compiling entry function";
  const std::size_t begin = log.find("'" + symbol + "'");
  if (begin == log.npos) return {};
  const std::string part = log.substr(begin, log.find(heading, begin) - begin);
  const auto number = [&part](const char* pattern) {
    std::smatch match;
    return std::regex_search(part, match, std::regex(pattern)) ? std::stoi(match[1]) : 0;
  };
  return {number(R"(Used (\d+) registers)"), number(R"((\d+) bytes smem)"),
          number(R"((\d+) bytes spill stores)"), number(R"((\d+) bytes spill loads)"),
          number(R"((\d+) bytes stack frame)")};
}

// What the cache keeps: the symbol's length, the resources, the symbol, the cubin.
std::string pack(const NvrtcResult& result) {
  const FunctionResources resources = parse_resources(result.log, result.symbol);
  const auto length = static_cast<std::uint64_t>(result.symbol.size());
  std::string bytes(reinterpret_cast<const char*>(&length), sizeof length);
  bytes.append(reinterpret_cast<const char*>(&resources), sizeof resources);
  return bytes + result.symbol + result.cubin;
}

CompiledFunction unpack(const std::string& bytes) {
  CompiledFunction function;
  std::uint64_t length = 0;
  constexpr std::size_t kHeader = sizeof length + sizeof function.resources;
  if (bytes.size() < kHeader)
    throw std::runtime_error("a file of the compile cache is too short; delete the cache");
  std::memcpy(&length, bytes.data(), sizeof length);
  std::memcpy(&function.resources, bytes.data() + sizeof length, sizeof function.resources);
  function.symbol = bytes.substr(kHeader, length);
  function.cubin = bytes.substr(kHeader + length);
  return function;
}

}  // namespace

KernelCompiler::KernelCompiler(std::string architecture, const std::string& cache_directory,
                               int driver_version)
    : architecture_(std::move(architecture)),
      nvrtc_(std::make_unique<Nvrtc>(driver_version)),
      cache_(cache_directory) {}

KernelCompiler::~KernelCompiler() = default;

CompiledFunction KernelCompiler::compile(const char* kernel, const FunctionSource& source) {
  std::vector<std::string> options = {"--gpu-architecture=" + architecture_, "--std=c++17",
                                      "--ptxas-options=-v"};
  options.insert(options.end(), source.definitions.begin(), source.definitions.end());

  std::string key = "nvrtc " + nvrtc_->version() + "\n" + source.function + "\n";
  for (const std::string& option : options) key += option + "\n";
  for (const DeviceHeader& header : device_headers())
    key += std::string(header.name) + "\n" + header.text + "\n";
  key += source.text;
  return unpack(cache_.get(key, [&] {
    ++compilations_;
    const std::string name = std::string(kernel) + ".cu";
    return pack(nvrtc_->compile(name.c_str(), source.text.c_str(), options, source.function.c_str()));
  }));
}

}  // namespace mulligan::cuda
