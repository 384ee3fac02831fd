#include "tools/doctor/parity_side.h"

#include <numeric>

#include "framework/checkpoint/float_formats.h"
#include "framework/model/packed_inputs.h"

namespace mulligan::doctor {
namespace {

StoredType stored(DType dtype) {
  return dtype == MLG_BF16 ? StoredType::bf16 : dtype == MLG_F16 ? StoredType::f16 : StoredType::f32;
}

}  // namespace

std::vector<float> numbers_of(const TensorStore& store, const std::string& name) {
  const TensorType& type = store.type(name);
  if (type.dtype != MLG_F32 && type.dtype != MLG_BF16 && type.dtype != MLG_F16) return {};
  std::vector<std::byte> bytes(static_cast<std::size_t>(type.bytes()));
  store.download(name, bytes);
  return decode_weights(bytes, stored(type.dtype));
}

void ParityMemory::fill(const ParityGraph& graph, const ModelConfig& model,
                        const std::vector<ParameterLayout>& layouts, const ParityWeights& weights,
                        const ParityInputs& inputs, DType rounding) {
  store_.create_externals(graph.graph());
  for (const ParameterLayout& layout : layouts) {
    if (!store_.contains(layout.read_name())) continue;  // the pass does not read it
    std::vector<float> values = weights(layout.spec);
    if (layout.spec.matrix)
      values = decode_weights(encode_weights(values, stored(rounding)), stored(rounding));
    store_.upload(layout.read_name(), encode_weights(values, stored(layout.compute)));
  }
  const auto tokens = static_cast<std::int64_t>(inputs.tokens.size());
  PackedInputWriter writer(parity_inputs, tokens);
  if (model.rope.dims > 0) writer.upload_rope(store_, model, tokens);
  writer.upload(store_, inputs.tokens, inputs.targets, inputs.cu_seqlens);
}

ParitySide::ParitySide(ParityMemory& memory, const ParityGraph& graph, const std::string& name)
    : parity_(graph),
      store_(memory.store()),
      program_(std::make_unique<Program>(memory.store().backend(), graph.graph(), name)),
      arena_(memory.store().backend()) {
  arena_.bind({program_.get()}, store_);
}

std::vector<float> ParitySide::whole(Value value) {
  const Graph& graph = parity_.graph();
  return numbers_of(store_, graph.info(graph.root(value)).name);
}

std::vector<float> ParitySide::numbers(Value value) {
  const Graph::ValueInfo& info = parity_.graph().info(value);
  std::vector<float> all = whole(value);
  if (all.empty() || info.storage != Graph::Storage::view) return all;
  const auto begin = all.begin() + info.offset;
  return {begin, begin + info.type.elements()};
}

void ParitySide::put(Value value, const std::vector<float>& numbers) {
  if (numbers.empty()) return;
  const Graph& graph = parity_.graph();
  const Graph::ValueInfo& info = graph.info(graph.root(value));
  store_.upload(info.name, encode_weights(numbers, stored(info.type.dtype)));
}

double ParitySide::mean_loss() {
  const std::vector<float> losses = numbers(parity_.token_loss());
  return std::accumulate(losses.begin(), losses.end(), 0.0) / static_cast<double>(losses.size());
}

}  // namespace mulligan::doctor
