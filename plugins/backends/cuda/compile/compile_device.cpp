#include "plugins/backends/cuda/compile/compile_device.h"

#include <filesystem>
#include <fstream>
#include <mulligan/plugin.hpp>
#include <stdexcept>
#include <utility>

#include "plugins/backends/cuda/triton/compiled_kernel.h"

namespace mulligan::cuda {
namespace {

// What the file at `path` holds, where it goes with what is compiled now.
KernelFile begun_file(const std::string& path, const KernelFile::Origin& origin) {
  if (std::filesystem::exists(path)) {
    try {
      KernelFile file = KernelFile::read(path);
      if (file.origin() == origin) return file;
      sdk::log(sdk::LogLevel::info, path + " is made anew: it was of another version or architecture");
    } catch (const std::runtime_error& fault) {
      sdk::log(sdk::LogLevel::warning, std::string(fault.what()) + "; it is made anew");
    }
  }
  return KernelFile(origin);
}

}  // namespace

CompileDevice::CompileDevice(CompilerOptions options, std::string kernel_file, std::string cubins)
    : architecture_(options.architecture),
      kernel_file_(std::move(kernel_file)),
      compiler_(std::move(options)),
      cubins_(std::move(cubins)) {
  if (!cubins_.empty()) std::filesystem::create_directories(cubins_);
}

DeviceFacts CompileDevice::facts() const {
  return {"CUDA compiler for " + architecture_ + " (computes nothing)", 0, 0, false, architecture_};
}

void CompileDevice::expect(const FunctionRequest& request) {
  const FunctionSource source = function_source(request.source, *request.launch);
  const auto [known, is_new] = functions_.try_emplace(source);
  if (!is_new) return;
  known->second.kernel = request.kernel;
  compiler_.begin(request.kernel, source);
}

Function& CompileDevice::load(const FunctionRequest& request) {
  if (request.compiled) {
    sdk::log(sdk::LogLevel::info, std::string("kernel ") + request.kernel + " is taken from " +
                                      request.compiled->file() + ", entry point " + request.launch->function);
    return PlanDevice::load(request);
  }
  return compiled(request.kernel, function_source(request.source, *request.launch));
}

CompileDevice::CompiledOnly& CompileDevice::compiled(const char* kernel, const FunctionSource& source) {
  CompiledOnly& function = functions_[source];
  if (function.compiled) return function;
  try {
    function.code = compiler_.compile(kernel, source);
  } catch (...) {
    functions_.erase(source);  // refused to whoever asks for it again, and not to others
    throw;
  }
  function.compiled = unsaved_ = true;
  const FunctionResources& r = function.code.resources;
  sdk::log(sdk::LogLevel::info, std::string("compiled ") + kernel + ": " + source.function + " for " +
                                    architecture_ + ", registers " + std::to_string(r.registers) +
                                    ", shared bytes " + std::to_string(r.shared_bytes) + ", spilled bytes " +
                                    std::to_string(r.spill_stores + r.spill_loads) + ", stack bytes " +
                                    std::to_string(r.stack_bytes));
  if (!cubins_.empty()) write(kernel, source.function, function.code);
  return function;
}

void CompileDevice::synchronize() {
  for (auto next = functions_.begin(); next != functions_.end();) {
    const auto& [source, function] = *next++;
    compiled(function.kernel.c_str(), source);
  }
  if (kernel_file_.empty() || !std::exchange(unsaved_, false)) return;
  KernelFile file = begun_file(kernel_file_, compiler_.origin());
  for (const auto& [source, function] : functions_) file.add(source, function.code);
  file.write(kernel_file_);
}

// Functions that differ in constants alone have different numbers.
void CompileDevice::write(const std::string& kernel, const std::string& function,
                          const CompiledFunction& compiled) {
  const std::filesystem::path folder(cubins_);
  const std::string name = kernel + "." + std::to_string(++written_) + ".cubin";
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
