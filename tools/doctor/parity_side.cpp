#include "tools/doctor/parity_side.h"

#include <fmt/format.h>
#include <algorithm>
#include <numeric>
#include <set>

#include "framework/checkpoint/float_formats.h"
#include "framework/graph/passes.h"
#include "framework/model/elements/stages.h"
#include "framework/model/forward.h"
#include "framework/model/packed_inputs.h"
#include "plugins/kernels/cross_entropy/op.h"

namespace mulligan::doctor {
namespace {

const char* point_of(TapKind kind) {
  switch (kind) {
    case TapKind::q:
      return "q";
    case TapKind::k:
      return "k";
    case TapKind::v:
      return "v";
    case TapKind::attention_output:
      return "o_proj";
    case TapKind::mlp_up:
      return "up";
    case TapKind::mlp_down:
      return "down";
    case TapKind::head:
      return "logits";
  }
  return "";
}

std::string full_name(std::string_view name, std::int64_t slot) {
  return slot < 0 ? std::string(name) : fmt::format("layers.{}.{}", slot, name);
}

// Gives the results of the linear layers their names; changes nothing.
class NamingTaps : public Taps {
 public:
  explicit NamingTaps(std::map<std::uint32_t, std::string>& names) : names_(names) {}
  Value at(Tape&, const TapSite& site) override {
    if (site.output) names_.try_emplace(site.output.id, full_name(point_of(site.kind), site.slot));
    return site.output;
  }
  bool changes(const Graph&, const TapSite&, const TensorType&) const override { return false; }

 private:
  std::map<std::uint32_t, std::string>& names_;
};

}  // namespace

ParityGraph::ParityGraph(const ModelConfig& model, const std::vector<ParameterLayout>& layouts,
                         std::int64_t tokens, FusedKernels fused, const std::string& prefix) {
  Graph built;
  Tape tape(built, false, fused);
  const PackedInputs inputs = declare_packed_inputs(built, parity_inputs, model, tokens, tokens);
  NamingTaps taps(names_);
  std::vector<std::uint32_t> block_ends;
  ForwardOptions options;
  options.layer_order = scored_order(model);
  options.row_length = tokens;
  options.taps = &taps;
  options.point = [this](std::string_view name, std::int64_t slot, Value value) {
    names_[value.id] = full_name(name, slot);
  };
  options.after_block = [&](std::int64_t slot, Value stream, Value) {
    names_.try_emplace(stream.id, full_name("block", slot));
    block_ends.push_back(built.value_count());
  };
  const ParameterValues parameters(tape, layouts, false);
  const Value raw = build_forward(tape, model, parameters, inputs.forward, options);
  const Value logits = transform_head(tape, model, parameters, raw, HeadUse::scoring);
  names_.try_emplace(logits.id, "softcapped_logits");
  token_loss_ = built.scratch(TensorType(MLG_F32, {tokens}), "token_loss");
  names_[token_loss_.id] = "nll";
  ops::cross_entropy(tape, logits, inputs.targets, token_loss_);
  fuse_calls(built, fused);
  keep_values(built, prefix);
  label_calls(block_ends);
}

// Externals and views are as they were, and so are all ids.
void ParityGraph::keep_values(const Graph& built, const std::string& prefix) {
  prefix_ = prefix + "/";
  for (std::uint32_t id = 1; id <= built.value_count(); ++id) {
    const Graph::ValueInfo& info = built.info(Value{id});
    if (info.storage == Graph::Storage::view) {
      graph_.view(info.base, info.offset, info.type);
    } else {
      const bool external = info.storage == Graph::Storage::external;
      graph_.external(external ? info.name : fmt::format("{}{}", prefix_, id), info.type);
    }
  }
  for (const Call& call : built.calls()) graph_.call(call.kernel, call.arguments, call.attributes);
}

void ParityGraph::label_calls(const std::vector<std::uint32_t>& block_ends) {
  std::map<std::string, int> seen;
  std::set<std::uint32_t> mentioned;
  for (const Call& call : graph_.calls()) {
    if (call.kernel == "cross_entropy_fwd") loss_call_ = labels_.size();
    std::string label;
    std::uint32_t newest = 0;
    for (const Value argument : call.arguments) {
      if (!argument || !computed(argument)) continue;
      const std::uint32_t root = graph_.root(argument).id;
      newest = std::max(newest, root);
      // A computed value is first mentioned by the call that writes it.
      const auto name = names_.find(root);
      if (mentioned.insert(root).second && label.empty() && name != names_.end()) label = name->second;
    }
    if (label.empty() || seen.contains(label)) {
      const auto block = std::ranges::lower_bound(block_ends, newest) - block_ends.begin();
      const bool outside = block == static_cast<std::ptrdiff_t>(block_ends.size());
      label = full_name(call.kernel, outside ? -1 : block);
    }
    const int number = ++seen[label];
    labels_.push_back(number == 1 ? label : fmt::format("{} {}", label, number));
  }
}

Value ParityGraph::named(const std::string& name) const {
  for (const auto& [id, known] : names_) {
    if (known == name) return Value{id};
  }
  return {};
}

bool ParityGraph::computed(Value value) const {
  return graph_.info(graph_.root(value)).name.starts_with(prefix_);
}

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
