#include "plugins/backends/cuda_emulated/emulated_device.h"

#include <unistd.h>
#include <mulligan/plugin.hpp>

#include <cstring>
#include <stdexcept>
#include <string_view>
#include <utility>

namespace mulligan::cuda {
namespace {

struct EmulatedFunction final : Function {
  std::string name;
  mlg_emulated_function code;
  // Where the source's constants lie, and what they are for this function.
  std::vector<std::pair<mlg_emulated_constant, double>> constants;
};

struct EmulatedGraph final : CapturedGraph {
  std::shared_ptr<const std::vector<std::function<void()>>> work;  // also of launches that outlive the graph
};

}  // namespace

EmulatedDevice::EmulatedDevice(EmulatedOrder order, const std::string& driver, bool log_launches)
    : runner_(order), log_launches_(log_launches) {
  if (!driver.empty()) stream_ = std::make_unique<EmulatedStream>(driver);
}

DeviceFacts EmulatedDevice::facts() const {
  const auto bytes = static_cast<std::uint64_t>(sysconf(_SC_PHYS_PAGES)) * sysconf(_SC_PAGESIZE);
  return {"emulated CUDA device (runs the kernels on the CPU, checks every access)", bytes, 1, true};
}

void EmulatedDevice::refuse_in_capture(const char* what) const {
  if (capturing_)
    throw std::runtime_error(std::string(what) + " while a graph is captured, which breaks the capture");
}

void* EmulatedDevice::allocate(std::size_t bytes) {
  refuse_in_capture("memory was asked for");
  void* address = memory_.allocate(bytes);
  if (stream_) stream_->register_memory(address, bytes);
  return address;
}

void EmulatedDevice::free(void* address) noexcept {
  freed_in_capture_ = freed_in_capture_ || capturing_;
  try {
    if (stream_) stream_->synchronize();
  } catch (const std::exception&) {  // whoever waits for the work is told
  }
  if (stream_ && address) stream_->forget_memory(address);
  memory_.free(address);
}

void EmulatedDevice::perform(std::function<void()> work) {
  if (stream_) {
    stream_->add(std::move(work));
  } else {
    work();
  }
}

void EmulatedDevice::note(const std::string& what) const {
  if (log_launches_) sdk::log(sdk::LogLevel::info, "emulated " + what);
}

void EmulatedDevice::enqueue(std::function<void()> work) {
  if (capturing_) {
    captured_.push_back(std::move(work));
  } else {
    perform(std::move(work));
  }
}

void EmulatedDevice::to_device(void* device, const void* host, std::size_t bytes) {
  refuse_in_capture("an upload came");
  const char* begin = static_cast<const char*>(host);
  perform([this, device, kept = std::vector<char>(begin, begin + bytes)] {
    std::memset(memory_.marks(device, kept.size()), 1, kept.size());
    std::memcpy(device, kept.data(), kept.size());
  });
}

void EmulatedDevice::from_device(void* host, const void* device, std::size_t bytes) {
  refuse_in_capture("a download came");
  perform([=, this] {
    memory_.require_known(device, bytes, "a download reads");
    std::memcpy(host, device, bytes);
  });
  synchronize();
}

void EmulatedDevice::copy(void* to, const void* from, std::size_t bytes) {
  enqueue([=, this] {
    memory_.require_known(from, bytes, "a copy reads");
    std::memset(memory_.marks(to, bytes), 1, bytes);
    std::memmove(to, from, bytes);
  });
}

void EmulatedDevice::fill(void* device, int byte, std::size_t bytes) {
  enqueue([=, this] {
    std::memset(memory_.marks(device, bytes), 1, bytes);
    std::memset(device, byte, bytes);
  });
}

Function& EmulatedDevice::load(const FunctionRequest& request) {
  refuse_in_capture("a function was loaded");
  const mlg_cuda_launch& launch = *request.launch;
  if (!launch.emulated) {
    throw std::runtime_error(std::string("kernel ") + request.kernel +
                             " exists as GPU code only, which the emulated device cannot run");
  }
  LoadedFunction key{launch.emulated->body, {}};
  auto function = std::make_unique<EmulatedFunction>();
  function->name = launch.function;
  function->code = *launch.emulated;
  for (std::uint32_t i = 0; i < launch.constant_count; ++i) {
    for (std::uint32_t j = 0; j < launch.emulated->constant_count; ++j) {
      const mlg_emulated_constant& place = launch.emulated->constants[j];
      if (std::string_view(place.name) != launch.constants[i].name) continue;
      function->constants.emplace_back(place, launch.constants[i].value);
      key.second.emplace_back(place.integer ? static_cast<const void*>(place.integer) : place.number,
                              launch.constants[i].value);
    }
  }
  return *functions_.emplace(std::move(key), std::move(function)).first->second;
}

void EmulatedDevice::launch(Function& function, const Grid& grid, std::span<const DeviceArgument> arguments) {
  const auto& emulated = static_cast<const EmulatedFunction&>(function);
  enqueue([this, &emulated, grid, kept = std::vector(arguments.begin(), arguments.end())] {
    note("launch of " + emulated.name);
    for (const auto& [place, value] : emulated.constants) {
      if (place.integer) *place.integer = static_cast<int>(value);
      if (place.number) *place.number = static_cast<float>(value);
    }
    std::vector<mlg_emulated_region> regions(kept.size());
    std::vector<mlg_emulated_argument> values(kept.size());
    for (std::size_t i = 0; i < kept.size(); ++i) {
      const DeviceArgument& argument = kept[i];
      values[i] = {nullptr, argument.value.integer, argument.value.number};
      if (!argument.address) continue;
      char* begin = static_cast<char*>(argument.address);
      regions[i] = {argument.name,          begin,
                    begin + argument.bytes, memory_.marks(argument.address, argument.bytes),
                    argument.readable,      argument.writable};
      values[i].region = &regions[i];
    }
    try {
      runner_.run(emulated.code, values.data(), grid);
    } catch (const std::runtime_error& error) {
      throw std::runtime_error("emulated " + emulated.name + ": " + error.what());
    }
  });
}

std::unique_ptr<Gemm> EmulatedDevice::gemm(const GemmShape& shape) {
  refuse_in_capture("a matmul was prepared");
  return std::make_unique<EmulatedGemm>(*this, shape);
}

std::optional<std::size_t> EmulatedDevice::attention_workspace_bytes(const AttentionShape& shape,
                                                                     std::string&) {
  return EmulatedAttention(*this, shape).workspace_bytes();
}

std::unique_ptr<Attention> EmulatedDevice::attention(const AttentionShape& shape, std::string&) {
  refuse_in_capture("attention was prepared");
  return std::make_unique<EmulatedAttention>(*this, shape);
}

void EmulatedDevice::mark_unwritten(const DeviceArgument& argument) {
  enqueue([=, this] { std::memset(memory_.marks(argument.address, argument.bytes), 0, argument.bytes); });
}

void EmulatedDevice::mark_written(const DeviceArgument& argument) {
  enqueue([=, this] { std::memset(memory_.marks(argument.address, argument.bytes), 1, argument.bytes); });
}

void EmulatedDevice::require_written(const DeviceArgument& argument) {
  enqueue([=, this] {
    const std::string what = std::string("the kernel left out of its output ") + argument.name;
    memory_.require_known(argument.address, argument.bytes, what.c_str());
  });
}

void EmulatedDevice::begin_capture() {
  refuse_in_capture("a second capture began");
  captured_.clear();
  capturing_ = true;
  freed_in_capture_ = false;
}

std::unique_ptr<CapturedGraph> EmulatedDevice::end_capture() {
  if (!capturing_) throw std::runtime_error("a capture ended that had not begun");
  capturing_ = false;
  if (freed_in_capture_) throw std::runtime_error("memory was freed while a graph was captured");
  auto graph = std::make_unique<EmulatedGraph>();
  graph->work = std::make_shared<const std::vector<std::function<void()>>>(std::exchange(captured_, {}));
  return graph;
}

void EmulatedDevice::abandon_capture() noexcept {
  capturing_ = false;
  captured_.clear();
}

void EmulatedDevice::launch(CapturedGraph& graph) {
  refuse_in_capture("a graph was launched");
  perform([work = static_cast<EmulatedGraph&>(graph).work] {
    for (const auto& one : *work) one();
  });
}

void EmulatedDevice::synchronize() {
  refuse_in_capture("waiting for the device");
  if (stream_) stream_->synchronize();
}

void EmulatedDevice::mark(std::uint32_t slot) {
  refuse_in_capture("a mark was made");
  if (stream_) stream_->mark(slot);
}

void EmulatedDevice::await(std::uint32_t slot) {
  refuse_in_capture("waiting for the device");
  if (stream_) stream_->await(slot);
}

mlg_queue EmulatedDevice::queue() {
  return stream_ ? stream_->queue() : Device::queue();
}

}  // namespace mulligan::cuda
