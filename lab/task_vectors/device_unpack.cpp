#include "lab/task_vectors/device_unpack.h"

#include <algorithm>

#include "framework/core/error.h"
#include "framework/graph/program.h"
#include "framework/run/weights.h"

namespace mulligan::task_vectors {
namespace {

constexpr const char* codes_tensor = "task_vectors/codes";
constexpr const char* grid_tensor = "task_vectors/grid";

// A parameter that the device unpacks: its place in the file, and its calls in the program.
struct OnDevice {
  std::size_t index = 0;
  std::vector<const Codes*> parts;  // the mean where there is one, then the task's own
};

std::size_t index_of(const TaskVectors& vectors, const std::string& name) {
  const auto found = std::ranges::find(vectors.parameters, name, &Parameter::name);
  return static_cast<std::size_t>(found - vectors.parameters.begin());
}

void require_model(const TaskVectors& vectors, const std::string& source,
                   const std::vector<ParameterLayout>& layouts) {
  std::vector<Parameter> parameters;
  for (const ParameterLayout& layout : layouts) {
    const TensorType& type = layout.spec.type;
    parameters.push_back({layout.spec.name, {type.dims.begin(), type.dims.begin() + type.rank}});
  }
  std::ranges::sort(parameters, {}, &Parameter::name);
  if (parameters == vectors.parameters) return;
  throw data_error("the configured model has other parameters than '{}'; use the configuration of its runs.",
                   source);
}

}  // namespace

void load_task(const TaskVectors& vectors, const std::string& source, const Model& base, std::size_t task,
               TensorStore& store, const std::vector<ParameterLayout>& layouts) {
  require_model(vectors, source, layouts);
  const Model host = unpacked(vectors, source, base, task);  // also requires the base
  std::size_t longest = 1;
  const auto parts_of = [&](std::size_t index) {
    std::vector<std::pair<const Codes*, int>> parts;
    if (vectors.base_bits > 0) parts.emplace_back(&vectors.mean.at(index), vectors.base_bits);
    parts.emplace_back(&vectors.tasks.at(task).tensors.at(index), vectors.bits);
    for (const auto& [codes, bits] : parts) longest = std::max(longest, codes->packed.size());
    return parts;
  };
  for (std::size_t index = 0; index < vectors.parameters.size(); ++index) parts_of(index);
  // One place for the codes of all tensors, one after the other: uploads are ordered with the kernels.
  const TensorType room(MLG_U8, {static_cast<std::int64_t>(longest)});
  Graph graph;
  std::vector<OnDevice> on_device;
  for (const ParameterLayout& layout : layouts) {
    const std::size_t index = index_of(vectors, layout.spec.name);
    if (layout.master != MLG_F32) {
      upload_master(store, layout, host.values(index));
      continue;
    }
    upload_master(store, layout, base.values(index));
    on_device.push_back({index, {}});
    for (const auto& [codes, bits] : parts_of(index)) {
      const TensorType packed(MLG_U8, {static_cast<std::int64_t>(codes->packed.size())});
      graph.call("add_codes",
                 {graph.view(graph.external(codes_tensor, room), 0, packed),
                  graph.external(grid_tensor, TensorType(MLG_F64, {2})),
                  graph.external(master_name(layout.spec.name), layout.spec.type.as(MLG_F32))},
                 {{"bits", static_cast<double>(bits)}});
      on_device.back().parts.push_back(codes);
    }
  }
  if (on_device.empty()) return;
  store.create_externals(graph);
  Program program(store.backend(), std::move(graph), "unpack");
  SharedArena arena(store.backend());
  arena.bind({&program}, store);
  std::vector<std::byte> codes_bytes(longest);
  std::size_t call = 0;
  for (const OnDevice& parameter : on_device) {
    for (const Codes* codes : parameter.parts) {
      std::ranges::copy(codes->packed, codes_bytes.begin());
      store.upload(codes_tensor, codes_bytes);
      store.upload(grid_tensor, std::vector<double>{codes->grid.step, codes->grid.zero});
      program.run_range(call, call + 1);
      ++call;
    }
  }
  store.backend().synchronize();
}

}  // namespace mulligan::task_vectors
