#include "tests/ptx/ptx_device.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "tests/ptx/opcodes.h"

namespace mulligan::ptx {
namespace {

Order order_of(cuda::EmulatedOrder order) {
  return order == cuda::EmulatedOrder::forward   ? Order::forward
         : order == cuda::EmulatedOrder::reverse ? Order::reverse
                                                 : Order::interleaved;
}

std::vector<char> parameters_of(const Program& program, const std::vector<cuda::DeviceArgument>& arguments) {
  if (program.parameters.size() != arguments.size()) {
    throw std::runtime_error("PTX of " + program.name + ": " + std::to_string(arguments.size()) +
                             " arguments for " + std::to_string(program.parameters.size()) + " parameters");
  }
  std::vector<char> bytes;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const Program::Parameter& parameter = program.parameters[i];
    const cuda::DeviceArgument& argument = arguments[i];
    const auto place = [&](const auto& value) {
      if (parameter.bytes != sizeof value)
        throw std::runtime_error("PTX of " + program.name + ": argument " + std::to_string(i + 1) + " has " +
                                 std::to_string(sizeof value) + " bytes, its parameter " +
                                 std::to_string(parameter.bytes));
      bytes.resize(parameter.offset + sizeof value);
      std::memcpy(bytes.data() + parameter.offset, &value, sizeof value);
    };
    switch (argument.value.kind) {
      case MLG_CUDA_INT:
        place(static_cast<std::int32_t>(argument.value.integer));
        break;
      case MLG_CUDA_LONG:
        place(std::int64_t{argument.value.integer});
        break;
      case MLG_CUDA_FLOAT:
        place(static_cast<float>(argument.value.number));
        break;
      default:
        place(argument.address);
    }
  }
  return bytes;
}

}  // namespace

PtxDevice::PtxDevice(cuda::EmulatedOrder order, cuda::CompilerOptions options, const std::string& opcodes)
    : EmulatedDevice(order), order_(order_of(order)), compiler_(std::move(options)) {
  if (!opcodes.empty()) opcodes_.open(opcodes, std::ios::app);
}

cuda::DeviceFacts PtxDevice::facts() const {
  cuda::DeviceFacts facts = EmulatedDevice::facts();
  facts.description = "PTX executor (runs NVRTC's PTX on the processor, checks every access)";
  return facts;
}

void PtxDevice::expect(const cuda::FunctionRequest& request) {
  const cuda::FunctionSource source = cuda::function_source(request.source, *request.launch);
  if (!functions_.contains(source)) compiler_.begin(request.kernel, source);
}

cuda::Function& PtxDevice::load(const cuda::FunctionRequest& request) {
  refuse_in_capture("a function was loaded");
  if (request.compiled)
    throw std::runtime_error(std::string("kernel ") + request.kernel +
                             " is machine code, which this device cannot run");
  const cuda::FunctionSource source = cuda::function_source(request.source, *request.launch);
  const auto known = functions_.find(source);
  if (known != functions_.end()) return known->second;
  const cuda::CompiledFunction compiled = compiler_.compile(request.kernel, source);
  PtxFunction& function = functions_[source];
  try {
    function.program = parse(compiled.cubin, compiled.symbol);
    std::string lines;  // in one piece, for several devices write to the file
    for (const std::string& opcode : function.program->opcodes) lines += opcode + "\n";
    opcodes_ << lines << std::flush;
    if (!opcodes_.is_open()) require_listed(*function.program);
  } catch (...) {
    functions_.erase(source);
    throw;
  }
  return function;
}

void PtxDevice::launch(cuda::Function& function, const cuda::Grid& grid,
                       std::span<const cuda::DeviceArgument> arguments) {
  const auto& own = static_cast<const PtxFunction&>(function);
  enqueue(
      [this, &own, grid, kept = std::vector(arguments.begin(), arguments.end())] { run(own, grid, kept); });
}

void PtxDevice::run(const PtxFunction& function, const cuda::Grid& grid,
                    const std::vector<cuda::DeviceArgument>& arguments) {
  std::vector<Region> regions;
  for (const cuda::DeviceArgument& argument : arguments) {
    if (!argument.address) continue;
    regions.push_back({argument.name, static_cast<char*>(argument.address), argument.bytes,
                       memory().marks(argument.address, argument.bytes), argument.readable,
                       argument.writable});
  }
  LaunchShape shape{};
  std::copy_n(grid.blocks, 3, shape.blocks);
  std::copy_n(grid.threads, 3, shape.threads);
  clock_.begin_launch();
  LaunchMemory launch_memory(*function.program, std::move(regions), grid.shared_bytes, touches_, clock_);
  Execution(*function.program, shape, parameters_of(*function.program, arguments), launch_memory, clock_,
            order_)
      .run();
}

}  // namespace mulligan::ptx
