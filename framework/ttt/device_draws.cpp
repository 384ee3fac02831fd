#include "framework/ttt/device_draws.h"

namespace mulligan {

DeviceDraws::DeviceDraws(TensorStore& store, const std::string& name, std::span<const Range> ranges)
    : store_(store), key_name_(name + "/key") {
  Graph graph;
  const Value key = graph.external(key_name_, TensorType(MLG_I32, {4}));
  for (const auto& [tensor, bound] : ranges) {
    calls_[{tensor->master, bound}] = graph.calls().size();
    graph.call("uniform_draws", {key, graph.external(tensor->master, tensor->type)}, {{"bound", bound}});
  }
  store.create_externals(graph);
  program_ = std::make_unique<Program>(store.backend(), std::move(graph), name);
}

void DeviceDraws::fill(const Range& range, const PhiloxStream& stream) {
  const std::array<std::int32_t, 4> key = stream.key();
  store_.upload(key_name_, std::as_bytes(std::span(key)));
  const std::size_t call = calls_.at({range.tensor->master, range.bound});
  program_->run_range(call, call + 1);
}

}  // namespace mulligan
