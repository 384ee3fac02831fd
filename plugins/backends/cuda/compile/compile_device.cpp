#include "plugins/backends/cuda/compile/compile_device.h"

#include <filesystem>
#include <fstream>
#include <mulligan/plugin.hpp>
#include <stdexcept>
#include <utility>

#include "plugins/backends/cuda/compile/function_parameters.h"
#include "plugins/backends/cuda/triton/compiled_kernel.h"

namespace mulligan::cuda {

CompileDevice::CompileDevice(const std::string& architecture, const std::string& cache_directory,
                             std::string cubins)
    : architecture_(architecture), compiler_(architecture, cache_directory, 0), cubins_(std::move(cubins)) {
  if (!cubins_.empty()) std::filesystem::create_directories(cubins_);
}

DeviceFacts CompileDevice::facts() const {
  return {"CUDA compiler for " + architecture_ + " (computes nothing)", 0, 0, false, architecture_};
}

Function& CompileDevice::load(const FunctionRequest& request) {
  if (request.compiled) {
    sdk::log(sdk::LogLevel::info, std::string("kernel ") + request.kernel + " is taken from " +
                                      request.compiled->file() + ", entry point " + request.launch->function);
    return functions_[{request.launch->function, {}, request.compiled->code()}];
  }
  const FunctionSource source = function_source(request.source, *request.launch);
  const auto [known, is_new] = functions_.try_emplace(source);
  if (is_new) known->second.symbol = compile(request.kernel, source);
  require_parameters(request.kernel, known->second.symbol, *request.launch);
  return known->second;
}

std::string CompileDevice::compile(const char* kernel, const FunctionSource& source) {
  const CompiledFunction function = compiler_.compile(kernel, source);
  const FunctionResources& r = function.resources;
  sdk::log(sdk::LogLevel::info, std::string("compiled ") + kernel + ": " + source.function + " for " +
                                    architecture_ + ", registers " + std::to_string(r.registers) +
                                    ", shared bytes " + std::to_string(r.shared_bytes) + ", spilled bytes " +
                                    std::to_string(r.spill_stores + r.spill_loads) + ", stack bytes " +
                                    std::to_string(r.stack_bytes));
  if (!cubins_.empty()) write(kernel, source.function, function);
  return function.symbol;
}

// Functions that differ in constants alone have different numbers.
void CompileDevice::write(const char* kernel, const std::string& function, const CompiledFunction& compiled) {
  const std::filesystem::path folder(cubins_);
  const std::string name = std::string(kernel) + "." + std::to_string(++written_) + ".cubin";
  std::ofstream code(folder / name, std::ios::binary);
  code << compiled.cubin;
  std::ofstream table(folder / "functions.tsv", written_ == 1 ? std::ios::trunc : std::ios::app);
  const FunctionResources& r = compiled.resources;
  table << kernel << '\t' << function << '\t' << r.registers << '\t' << r.shared_bytes << '\t'
        << r.spill_stores + r.spill_loads << '\t' << r.stack_bytes << '\t' << name << '\t' << compiled.symbol
        << '\n';
  if (!code.flush() || !table.flush())
    throw std::runtime_error("machine code cannot be written to the folder '" + cubins_ + "'");
}

}  // namespace mulligan::cuda
