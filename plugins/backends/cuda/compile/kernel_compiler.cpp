#include "plugins/backends/cuda/compile/kernel_compiler.h"

#include <mulligan/plugin.hpp>

#include <regex>
#include <string_view>
#include <utility>
#include <vector>

#include "plugins/backends/cuda/compile/device_headers.h"
#include "plugins/backends/cuda/compile/nvrtc.h"

namespace mulligan::cuda {
namespace {

constexpr const char* kOptions[] = {"--std=c++17", "--ptxas-options=-v"};

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

}  // namespace

const std::string& compile_context() {
  static const std::string context = [] {
    std::string text;
    for (const char* option : kOptions) text += std::string(option) + "\n";
    for (const DeviceHeader& header : device_headers())
      text += std::string(header.name) + "\n" + header.text + "\n";
    return text;
  }();
  return context;
}

KernelCompiler::KernelCompiler(CompilerOptions options, std::optional<KernelFile> ahead)
    : options_(std::move(options)),
      ahead_(std::move(ahead)),
      cache_(options_.cache_directory),
      jobs_(options_.threads) {
  if (!ahead_) nvrtc();
}

KernelCompiler::~KernelCompiler() = default;

Nvrtc& KernelCompiler::nvrtc() {
  std::call_once(opened_, [this] { nvrtc_ = std::make_unique<Nvrtc>(options_.libraries); });
  return *nvrtc_;
}

KernelFile::Origin KernelCompiler::origin() {
  return {options_.architecture, nvrtc().version(), compile_context()};
}

void KernelCompiler::begin(const char* kernel, const FunctionSource& source) {
  if (begun_.contains(source) || (ahead_ && ahead_->find(source))) return;
  if (ahead_ && !std::exchange(told_, true)) {
    sdk::log(sdk::LogLevel::info, std::string("kernel ") + kernel + ": " + source.function +
                                      " is not among the functions compiled ahead of time; what is not is "
                                      "taken from the cache, or compiled");
  }
  const auto promise = std::make_shared<std::promise<CompiledFunction>>();
  begun_.emplace(source, promise->get_future());
  jobs_.add([this, name = std::string(kernel), source, promise] { make(name, source, promise, false); });
}

CompiledFunction KernelCompiler::compile(const char* kernel, const FunctionSource& source) {
  if (const CompiledFunction* known = ahead_ ? ahead_->find(source) : nullptr) return *known;
  begin(kernel, source);
  const auto begun = begun_.find(source);
  std::future<CompiledFunction> result = std::move(begun->second);
  begun_.erase(begun);
  return result.get();
}

// On a thread of jobs_. What another process compiles just now is left for later unless `wait`: ranks that
// start together share the work.
void KernelCompiler::make(const std::string& kernel, const FunctionSource& source, const Promise& promise,
                          bool wait) {
  try {
    std::vector<std::string> options = {"--gpu-architecture=" + options_.architecture};
    options.insert(options.end(), std::begin(kOptions), std::end(kOptions));
    options.insert(options.end(), source.definitions.begin(), source.definitions.end());
    std::string key = "nvrtc " + nvrtc().version() + "\n" + source.function + "\n";
    for (const std::string& option : options) key += option + "\n";
    key += compile_context() + source.text;
    const auto compiled = [&] {
      ++compilations_;
      const NvrtcResult result =
          nvrtc().compile((kernel + ".cu").c_str(), source.text.c_str(), options, source.function.c_str());
      return pack({result.cubin, result.symbol, parse_resources(result.log, result.symbol)});
    };
    const std::optional<std::string> bytes = cache_.get(key, compiled, wait);
    if (bytes) return promise->set_value(unpack(*bytes));
  } catch (...) {
    return promise->set_exception(std::current_exception());
  }
  jobs_.add([=, this] { make(kernel, source, promise, true); });
}

}  // namespace mulligan::cuda
