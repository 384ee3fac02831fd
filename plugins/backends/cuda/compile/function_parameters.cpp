#include "plugins/backends/cuda/compile/function_parameters.h"

#include <cxxabi.h>

#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string_view>
#include <vector>

namespace mulligan::cuda {
namespace {

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : "";
}

struct Prototype {
  std::string name;  // "rms_norm_fwd", without namespaces and template arguments
  std::vector<std::string> parameters;
};

// Of "void rms_norm_fwd<float, 4>(float const*, float*, long long)".
Prototype parse(std::string_view text) {
  Prototype prototype;
  std::size_t begin = text.size() - 1;  // of the parameter list: the '(' of the last ')'
  for (int depth = 0; begin > 0; --begin) {
    if (text[begin] == ')') ++depth;
    if (text[begin] == '(' && --depth == 0) break;
  }
  int depth = 0;
  for (const char c : text.substr(begin + 1, text.size() - begin - 2)) {
    if (c == '<' || c == '(') ++depth;
    if (c == '>' || c == ')') --depth;
    if (prototype.parameters.empty()) prototype.parameters.emplace_back();
    if (c == ',' && depth == 0) {
      prototype.parameters.emplace_back();
    } else if (c != ' ' || !prototype.parameters.back().empty()) {
      prototype.parameters.back() += c;
    }
  }
  std::string_view name = text.substr(0, begin);
  if (!name.empty() && name.back() == '>') {
    std::size_t open = name.size() - 1;
    for (depth = 0; open > 0; --open) {
      if (name[open] == '>') ++depth;
      if (name[open] == '<' && --depth == 0) break;
    }
    name = name.substr(0, open);
  }
  prototype.name = name.substr(name.find_last_of(" :") + 1);
  return prototype;
}

const char* kind_text(std::int32_t kind) {
  switch (kind) {
    case MLG_CUDA_INT:
      return "int";
    case MLG_CUDA_LONG:
      return "long long";
    case MLG_CUDA_FLOAT:
      return "float";
    default:
      return "a pointer";
  }
}

bool takes(const std::string& parameter, std::int32_t kind) {
  if (kind == MLG_CUDA_TENSOR || kind == MLG_CUDA_WORKSPACE) return parameter.ends_with('*');
  return parameter == kind_text(kind);
}

}  // namespace

void require_parameters(const char* kernel, const std::string& symbol, const mlg_cuda_launch& launch) {
  const std::string text = demangled(symbol);
  if (text.empty() || !text.ends_with(')')) return;
  const Prototype prototype = parse(text);
  const std::string where = std::string("kernel ") + kernel + ": the launch of " + launch.function;
  const std::string_view function = launch.function;
  const std::string_view named = function.substr(0, function.find('<'));
  if (named.substr(named.find_last_of(':') + 1) != prototype.name)
    throw std::runtime_error(where + " was compiled as " + text);
  if (launch.argument_count != prototype.parameters.size()) {
    throw std::runtime_error(where + " gives " + std::to_string(launch.argument_count) + " arguments to " +
                             text);
  }
  for (std::uint32_t i = 0; i < launch.argument_count; ++i) {
    if (takes(prototype.parameters[i], launch.arguments[i].kind)) continue;
    throw std::runtime_error(where + " gives " + kind_text(launch.arguments[i].kind) + " as argument " +
                             std::to_string(i + 1) + " of " + text);
  }
}

}  // namespace mulligan::cuda
