#include "plugins/backends/cuda/compile/nvrtc.h"

#include <algorithm>
#include <memory>
#include <stdexcept>

#include "plugins/backends/cuda/compile/device_headers.h"

namespace mulligan::cuda {
namespace {

constexpr const char* kVirtual = "--gpu-architecture=compute_";

}  // namespace

Nvrtc::Nvrtc(const LibrarySearch& search)
    : library_(
          "NVRTC, CUDA's run-time compiler,",
          cuda_library_files(search, "cuda_nvrtc", cuda_library_names("libnvrtc", search.driver_version)),
          cuda_library_remedy(search.driver_version)) {}

std::string Nvrtc::version() const {
  int major = 0, minor = 0;
  version_(&major, &minor);
  return std::to_string(major) + "." + std::to_string(minor);
}

NvrtcResult Nvrtc::compile(const char* name, const char* source, const std::vector<std::string>& options,
                           const char* expression) const {
  const auto check = [&](nvrtcResult result, const char* call) {
    if (result != NVRTC_SUCCESS) {
      throw std::runtime_error(std::string(call) + " failed for " + name + ": " + get_error_string_(result));
    }
  };
  std::vector<const char*> texts, names, arguments;
  for (const DeviceHeader& header : device_headers()) {
    texts.push_back(header.text);
    names.push_back(header.name);
  }
  for (const std::string& option : options) arguments.push_back(option.c_str());

  nvrtcProgram program = nullptr;
  check(create_program_(&program, source, name, static_cast<int>(texts.size()), texts.data(), names.data()),
        "nvrtcCreateProgram");
  const auto destroy = [this](nvrtcProgram* p) { destroy_program_(p); };
  const std::unique_ptr<nvrtcProgram, decltype(destroy)> owner(&program, destroy);
  check(add_name_expression_(program, expression), "nvrtcAddNameExpression");
  const nvrtcResult outcome = compile_program_(program, static_cast<int>(arguments.size()), arguments.data());
  NvrtcResult result;
  std::size_t size = 0;
  if (get_log_size_(program, &size) == NVRTC_SUCCESS && size > 1) {
    result.log.resize(size - 1);
    get_log_(program, result.log.data());
  }
  if (outcome != NVRTC_SUCCESS) {
    throw std::runtime_error("NVRTC " + version() + " does not compile " + expression + ":\n" + result.log);
  }
  const char* symbol = nullptr;
  check(get_lowered_name_(program, expression, &symbol), "nvrtcGetLoweredName");
  result.symbol = symbol;
  if (std::ranges::any_of(options, [](const std::string& option) { return option.starts_with(kVirtual); })) {
    const decltype(&nvrtcGetPTXSize) get_ptx_size = library_["nvrtcGetPTXSize"];
    const decltype(&nvrtcGetPTX) get_ptx = library_["nvrtcGetPTX"];
    check(get_ptx_size(program, &size), "nvrtcGetPTXSize");
    result.cubin.resize(size);
    check(get_ptx(program, result.cubin.data()), "nvrtcGetPTX");
    return result;
  }
  check(get_cubin_size_(program, &size), "nvrtcGetCUBINSize");
  result.cubin.resize(size);
  check(get_cubin_(program, result.cubin.data()), "nvrtcGetCUBIN");
  return result;
}

}  // namespace mulligan::cuda
