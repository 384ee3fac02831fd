#include "plugins/backends/cuda/compile/compile_device.h"

#include <mulligan/plugin.hpp>

#include "plugins/backends/cuda/compile/function_parameters.h"
#include "plugins/backends/cuda/triton/compiled_kernel.h"

namespace mulligan::cuda {

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
  return function.symbol;
}

}  // namespace mulligan::cuda
