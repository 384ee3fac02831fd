#include "framework/graph/graph_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "framework/core/error.h"

namespace mulligan {

template <typename Body>
mlg_error PluginRecorder::guarded(void* self, Body&& body) {
  auto& recorder = *static_cast<PluginRecorder*>(self);
  try {
    body(recorder);
    return nullptr;
  } catch (const std::exception& error) {
    recorder.error_ = error.what();
    return recorder.error_.c_str();
  }
}

PluginRecorder::PluginRecorder(std::string name, const char* hint) : name_(std::move(name)), hint_(hint) {
  table_.self = this;
  table_.describe = [](void* self, mlg_value value, mlg_tensor* out) {
    return guarded(self, [&](PluginRecorder& r) { *out = r.graph().type(r.known(value)).to_c(); });
  };
  table_.state = [](void* self, const char* name, const mlg_tensor* shape, std::int32_t survives_warmup,
                    mlg_value* out) {
    return guarded(self, [&](PluginRecorder& r) {
      *out = r.made(r.state(name, TensorType::from_c(*shape), survives_warmup != 0));
    });
  };
  table_.scratch = [](void* self, const mlg_tensor* shape, mlg_value* out) {
    return guarded(self, [&](PluginRecorder& r) {
      *out = r.made(r.graph().scratch(TensorType::from_c(*shape), r.hint_));
    });
  };
  table_.view = [](void* self, mlg_value value, std::int64_t offset, const mlg_tensor* shape,
                   mlg_value* out) {
    return guarded(self, [&](PluginRecorder& r) {
      const TensorType type = TensorType::from_c(*shape);
      const Value whole = r.known(value);
      r.check_view(whole, offset, type);
      *out = r.made(r.graph().view(whole, offset, type));
    });
  };
  table_.launch = [](void* self, const char* kernel, const mlg_value* arguments, std::uint32_t argument_count,
                     const mlg_attribute* attributes, std::uint32_t attribute_count) {
    return guarded(self, [&](PluginRecorder& r) {
      Call call{kernel, {}, {}};
      for (std::uint32_t i = 0; i < argument_count; ++i)
        call.arguments.push_back(arguments[i] == 0 ? Value{} : r.known(arguments[i]));
      for (std::uint32_t i = 0; i < attribute_count; ++i)
        call.attributes.push_back({attributes[i].name, attributes[i].value});
      r.record(std::move(call));
    });
  };
}

void PluginRecorder::restrict_to(std::span<const Value> values) {
  if (!allowed_) allowed_.emplace();
  for (const Value value : values) {
    if (value) allowed_->insert(value.id);
  }
}

Value PluginRecorder::known(mlg_value value) const {
  if (!allowed_ || allowed_->contains(value)) return Value{value};
  throw run_error("{}: value {} is not among those that it was handed or has made", name_, value);
}

mlg_value PluginRecorder::made(Value value) {
  if (allowed_) allowed_->insert(value.id);
  return value.id;
}

GraphRecorder::GraphRecorder(Graph& graph, std::string state_prefix, FusedKernels fused)
    : PluginRecorder(std::move(state_prefix)), graph_(graph), fused_(fused) {}

Value GraphRecorder::state(const char* name, const TensorType& type, bool survives_warmup) {
  states_.push_back(fmt::format("{}/{}", name_, name));
  const Value state = graph_.external(states_.back(), type);
  state_values_[state.id] = states_.back();
  if (survives_warmup) surviving_.insert(states_.back());
  return state;
}

const std::vector<std::string>& GraphRecorder::states() const {
  for (const auto& [value, name] : state_values_) {
    if (named_.contains(value)) continue;
    throw run_error("{}: no call names the state '{}'; the plugin must make it where it is used alone", name_,
                    name);
  }
  return states_;
}

void GraphRecorder::record(Call call) {
  for (const Value argument : call.arguments) {
    if (argument) named_.insert(graph_.root(argument).id);
  }
  if (call.kernel == "symmetric_matmul" && !fused_.have({call.kernel})) call.kernel = "matmul";
  if (copy_ && adds_to_copy(call)) {
    matmuls_.push_back(std::move(call));
    if (is_whole()) write_matmuls();
    return;
  }
  write_copy();
  if (is_copy(call)) {
    copy_ = std::move(call);
  } else {
    graph_.call(call.kernel, std::move(call.arguments), std::move(call.attributes));
  }
}

bool GraphRecorder::is_copy(const Call& call) const {
  if (call.kernel != "cast" || call.arguments.size() != 2 || !fused_.have({"matmul_add"})) return false;
  const Value from = call.arguments[0], to = call.arguments[1];
  return from && to && graph_.type(from) == graph_.type(to) && graph_.root(from) != graph_.root(to) &&
         graph_.info(to).storage == Graph::Storage::scratch;
}

bool GraphRecorder::adds_to_copy(const Call& matmul) const {
  if (matmul.kernel != "matmul" || matmul.arguments.size() != 3) return false;
  const Value copy = copy_->arguments[1];
  const Value a = matmul.arguments[0], b = matmul.arguments[1], c = matmul.arguments[2];
  if (!a || !b || !c || graph_.root(c) != copy || graph_.root(a) == copy || graph_.root(b) == copy ||
      matmul.attribute("beta") == 0)
    return false;
  const auto begin = [&](Value part) { return part == copy ? 0 : graph_.info(part).offset; };
  const auto end = [&](Value part) { return begin(part) + graph_.type(part).elements(); };
  return std::ranges::none_of(matmuls_, [&](const Call& before) {
    return begin(c) < end(before.arguments[2]) && begin(before.arguments[2]) < end(c);
  });
}

bool GraphRecorder::is_whole() const {
  std::int64_t elements = 0;  // of parts that do not overlap
  for (const Call& matmul : matmuls_) elements += graph_.type(matmul.arguments[2]).elements();
  return elements == graph_.type(copy_->arguments[1]).elements();
}

void GraphRecorder::write_matmuls() {
  const Value term = copy_->arguments[0], copy = copy_->arguments[1];
  for (Call& matmul : matmuls_) {
    const Value part = matmul.arguments[2];
    const std::int64_t offset = part == copy ? 0 : graph_.info(part).offset;
    matmul.arguments.insert(matmul.arguments.begin() + 2, graph_.view(term, offset, graph_.type(part)));
    graph_.call("matmul_add", std::move(matmul.arguments), std::move(matmul.attributes));
  }
  matmuls_.clear();
  copy_.reset();
}

void GraphRecorder::write_copy() {
  if (!copy_) return;
  graph_.call(copy_->kernel, copy_->arguments, copy_->attributes);
  for (const Call& matmul : matmuls_) graph_.call(matmul.kernel, matmul.arguments, matmul.attributes);
  matmuls_.clear();
  copy_.reset();
}

bool have_kernels_of(const FusedKernels& fused, const Graph& trial) {
  return std::ranges::all_of(trial.calls(), [&](const Call& call) { return fused.have({call.kernel}); });
}

bool can_fuse_update(const FusedKernels& fused, const Optimizer& optimizer, const TensorType& parameter) {
  if (!optimizer.has_fused_update()) return false;
  Graph trial;
  const mlg_parameter row{"w", trial.external("master", parameter).id,
                          trial.external("gradient", parameter.as(MLG_F32)).id, 1.0, 1.0};
  const mlg_value average = trial.external("average", parameter.as(MLG_F32)).id;
  const mlg_value copy = trial.external("copy", parameter.as(MLG_BF16)).id;
  const mlg_update update{trial.external("scale", TensorType(MLG_F32, {1})).id, &average, 0.5, &copy};
  Value scalars;
  if (const std::int64_t count = optimizer.scalar_count(); count > 0) {
    scalars = trial.external("scalars", TensorType(MLG_F32, {count}));
  }
  GraphRecorder recorder(trial, "state");
  try {
    optimizer.record(*recorder.table(), {&row, 1}, scalars.id, &update);
  } catch (const Error&) {
    return false;
  }
  return have_kernels_of(fused, trial);
}

}  // namespace mulligan
