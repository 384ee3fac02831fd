// Modules and launches of the driver's stub. A launch keeps the limits of an H100, and each pointer in the kernel's
// parameters leads into live memory. A function that was announced is executed.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <exception>
#include <string>
#include <utility>
#include <vector>

#include "tests/stub/driver_state.h"
#include "tests/stub/report.h"
#include "tests/stub/stub.h"

using namespace stub_driver;

namespace {

constexpr int kMaxDynamicShared = 8;
constexpr unsigned kThreads = 1024, kBlock[] = {1024, 1024, 64}, kGrid[] = {2147483647, 65535, 65535};
constexpr unsigned kShared = 48 << 10, kMostShared = 227 << 10;

struct Module {
  std::string text;
};
struct Function {
  std::string name;
  std::vector<std::string> parameters;  // as the source declares them; empty: not known
  unsigned most_threads = kThreads;     // of a block, for which the compiler left registers
  unsigned most_shared = kShared;
  StubKernel kernel = {};
};
thread_local StubKernel announced;

// Where `name`(...) of a __global__ function begins in `text`; npos: nowhere.
std::size_t definition_of(const std::string& name, const std::string& text) {
  constexpr std::size_t kBefore = 400;  // "__global__ void __launch_bounds__(...) "
  const std::string begin = " " + name + "(";
  for (std::size_t at = text.find(begin); at != std::string::npos; at = text.find(begin, at + 1)) {
    const std::size_t from = at < kBefore ? 0 : at - kBefore;
    const std::size_t global = text.substr(from, at - from).rfind("__global__");
    if (global != std::string::npos && text.find_first_of(";{}", from + global) > at)
      return at + begin.size();
  }
  return std::string::npos;
}

std::vector<std::string> parameters_in(const std::string& text, const std::string& name) {
  std::vector<std::string> found;
  const std::size_t at = definition_of(name, text);
  if (at == std::string::npos) return found;
  std::string one;
  int depth = 0;
  for (std::size_t i = at; i < text.size(); ++i) {
    const char c = text[i];
    if (c == ')' && depth == 0) break;
    depth += (c == '<' || c == '(') - (c == '>' || c == ')');
    if (c == ',' && depth == 0) {
      found.push_back(one);
      one.clear();
    } else if (c != '\n' && (c != ' ' || (!one.empty() && one.back() != ' '))) {
      one += c;
    }
  }
  if (!one.empty()) found.push_back(one);
  return found;
}

// The threads for which the launch bounds of `name` reserve registers: a number, or a constant that the options define.
unsigned threads_in(const std::string& text, const std::string& name) {
  const std::size_t end = definition_of(name, text);
  if (end == std::string::npos) return kThreads;
  const std::size_t begin = text.rfind("__global__", end);
  const std::string bounds = "__launch_bounds__(", head = text.substr(begin, end - begin);
  const std::size_t at = head.find(bounds);
  if (at == std::string::npos) return kThreads;
  std::string threads = head.substr(at + bounds.size());
  threads.resize(threads.find_first_of(",)"));
  const std::string option = "-DMLG_VALUE_" + threads + "=";
  if (const std::size_t value = text.find(option); value != std::string::npos) {
    threads = text.substr(value + option.size());
    threads.resize(threads.find_first_of(" \n"));
  }
  const bool is_number = threads.find_first_not_of("0123456789") == std::string::npos;
  return is_number ? static_cast<unsigned>(std::stoul(threads)) : kThreads;
}

bool is_pointer(const std::string& parameter) {
  return parameter.find('*') != std::string::npos || parameter.find("global<") != std::string::npos;
}

// What the function's arguments call a pointer leads into live memory.
bool judge_pointers(const Function& own, void* const* values) {
  for (std::size_t i = 0; i < own.parameters.size(); ++i) {
    if (!is_pointer(own.parameters[i])) continue;
    const void* address = nullptr;
    std::memcpy(&address, values[i], sizeof address);
    const std::string argument = std::to_string(i) + " (" + own.parameters[i] + ")";
    // An absent tensor is null.
    if (address && !stub_touches(("cuLaunchKernel of " + own.name).c_str(), argument.c_str(), address, 1))
      return false;
  }
  return true;
}

// A launch in the stream, with arguments of its own.
class Launch {
 public:
  Launch(const Function& function, StubLaunch launch) : function_(function), launch_(launch) {
    values_.resize(function.kernel.parameters);
    for (std::size_t i = 0; i < values_.size(); ++i) std::memcpy(&values_[i], launch.values[i], 8);
  }
  void operator()() {
    std::vector<void*> places;
    for (std::uint64_t& value : values_) places.push_back(&value);
    launch_.values = places.data();
    if (!judge_pointers(function_, places.data())) return;
    try {
      function_.kernel.run(launch_);
    } catch (const std::exception& error) {
      violate("cuLaunchKernel of " + function_.name + ": " + error.what());
    }
  }

 private:
  const Function& function_;
  StubLaunch launch_;
  std::vector<std::uint64_t> values_;
};

}  // namespace

EXPORTED void stub_announces(StubKernel kernel) {
  announced = std::move(kernel);
}
EXPORTED int cuModuleLoadData(void** module, const void* code) {
  if (stub_capturing()) return violate("cuModuleLoadData: within a capture of the stream");
  ++stub().modules_loaded;
  stub().loaded.emplace_back(static_cast<const char*>(code));
  *module = new Module{static_cast<const char*>(code)};
  return answer();
}
EXPORTED int cuModuleUnload(void* module) {
  ++stub().modules_unloaded;
  delete static_cast<Module*>(module);
  return answer();
}
EXPORTED int cuModuleGetFunction(void** function, void* module, const char* name) {
  const std::string whole = name, plain = whole.substr(0, whole.find('<'));
  const std::string& text = static_cast<Module*>(module)->text;
  *function = new Function{whole, parameters_in(text, plain), threads_in(text, plain), kShared,
                           std::exchange(announced, {})};
  return answer();
}
EXPORTED int cuFuncSetAttribute(void* function, int attribute, int value) {
  Function& own = *static_cast<Function*>(function);
  if (attribute != kMaxDynamicShared) return answer();
  if (value < 0 || static_cast<unsigned>(value) > kMostShared) {
    violate("cuFuncSetAttribute: argument value of " + own.name + " asks for " + std::to_string(value) +
            " bytes of shared memory, and a block has " + std::to_string(kMostShared));
    return kInvalidValue;
  }
  own.most_shared = static_cast<unsigned>(value);
  return answer();
}
EXPORTED int cuLaunchKernel(void* function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                            unsigned bz, unsigned shared, void* stream, void** values, void**) {
  const Function& own = *static_cast<Function*>(function);
  if (answer() != 0) return answer();
  const std::string call = "cuLaunchKernel of " + own.name + ": argument ";
  const unsigned grid[] = {gx, gy, gz}, block[] = {bx, by, bz};
  for (int axis = 0; axis < 3; ++axis) {
    const std::string name = std::string(1, static_cast<char>('X' + axis));
    if (grid[axis] == 0 || grid[axis] > kGrid[axis])
      return violate(call + "gridDim" + name + " is " + std::to_string(grid[axis]));
    if (block[axis] == 0 || block[axis] > kBlock[axis])
      return violate(call + "blockDim" + name + " is " + std::to_string(block[axis]));
  }
  if (bx * by * bz > kThreads)
    return violate(call + "blockDim makes " + std::to_string(bx * by * bz) + " threads, and a block has " +
                   std::to_string(kThreads));
  if (bx * by * bz > own.most_threads)
    return violate(call + "blockDim makes " + std::to_string(bx * by * bz) +
                   " threads, and the function has registers for " + std::to_string(own.most_threads));
  if (shared > own.most_shared)
    return violate(call + "sharedMemBytes is " + std::to_string(shared) + ", and " +
                   std::to_string(own.most_shared) + " were allowed");
  const auto pointer = std::ranges::find_if(own.parameters, is_pointer);
  if (stubs::is_planted("driver", stub().launches + 1) && pointer != own.parameters.end())
    *static_cast<std::uintptr_t*>(values[pointer - own.parameters.begin()]) += std::uintptr_t{1} << 40;
  if (!judge_pointers(own, values)) return answer();
  ++stub().launches;
  if (!own.kernel.run) {
    return stub().computes ? violate("cuLaunchKernel of " + own.name + ": nothing says what it computes")
                           : answer();
  }
  return enqueue(stream, Launch(own, {{gx, gy, gz}, {bx, by, bz}, shared, values}));
}
