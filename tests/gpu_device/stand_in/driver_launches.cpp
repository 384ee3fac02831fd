// The stand-in driver's modules and launches: a launch keeps the limits of an H100, and what its kernel's source
// calls a pointer leads into live memory.
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include "tests/gpu_device/stand_in/stand_in.h"

#define EXPORTED extern "C" __attribute__((visibility("default")))

namespace {

constexpr int kInvalidValue = 1, kIllegalAddress = 700, kMaxDynamicShared = 8;
constexpr unsigned kThreads = 1024, kBlock[] = {1024, 1024, 64}, kGrid[] = {2147483647, 65535, 65535};
constexpr unsigned kShared = 48 << 10, kMostShared = 227 << 10;

struct Module {
  std::string text;
};
struct Function {
  std::string name;
  std::vector<std::string> parameters;  // as the source declares them; empty: not known
  unsigned most_shared = kShared;
};

int answer() {
  return stand_in().violation.empty() ? 0 : kIllegalAddress;
}
int violate(const std::string& sentence) {
  stand_in_violates(sentence.c_str());
  return answer();
}

// Where `name`(...) of a __global__ function begins in `text`; npos: nowhere.
std::size_t definition_of(const std::string& name, const std::string& text) {
  constexpr std::size_t kBefore = 100;  // "__global__ void __launch_bounds__(...) "
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

bool is_pointer(const std::string& parameter) {
  return parameter.find('*') != std::string::npos || parameter.find("global<") != std::string::npos;
}

}  // namespace

EXPORTED int cuModuleLoadData(void** module, const void* code) {
  if (stand_in_capturing()) return violate("cuModuleLoadData: within a capture of the stream");
  ++stand_in().modules_loaded;
  stand_in().loaded.emplace_back(static_cast<const char*>(code));
  *module = new Module{static_cast<const char*>(code)};
  return answer();
}
EXPORTED int cuModuleUnload(void* module) {
  ++stand_in().modules_unloaded;
  delete static_cast<Module*>(module);
  return answer();
}
EXPORTED int cuModuleGetFunction(void** function, void* module, const char* name) {
  const std::string whole = name, plain = whole.substr(0, whole.find('<'));
  *function = new Function{whole, parameters_in(static_cast<Module*>(module)->text, plain)};
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
                            unsigned bz, unsigned shared, void*, void** values, void**) {
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
  if (shared > own.most_shared)
    return violate(call + "sharedMemBytes is " + std::to_string(shared) + ", and " +
                   std::to_string(own.most_shared) + " were allowed");
  for (std::size_t i = 0; i < own.parameters.size(); ++i) {
    if (!is_pointer(own.parameters[i])) continue;
    const void* address = nullptr;
    std::memcpy(&address, values[i], sizeof address);
    const std::string argument = std::to_string(i) + " (" + own.parameters[i] + ")";
    // An absent tensor is null.
    if (address && !stand_in_touches(("cuLaunchKernel of " + own.name).c_str(), argument.c_str(), address, 1))
      return answer();
  }
  ++stand_in().launches;
  return answer();
}
