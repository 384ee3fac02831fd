#include "framework/graph/graph_recorder.h"

#include <fmt/format.h>

#include <exception>

namespace mulligan {

// Exceptions must not cross into the plugin: they become the sentence that the plugin hands back to us.
template <typename Body>
mlg_error GraphRecorder::guarded(void* self, Body&& body) {
  auto& recorder = *static_cast<GraphRecorder*>(self);
  try {
    body(recorder);
    return nullptr;
  } catch (const std::exception& error) {
    recorder.error_ = error.what();
    return recorder.error_.c_str();
  }
}

GraphRecorder::GraphRecorder(Graph& graph, std::string state_prefix)
    : graph_(graph), prefix_(std::move(state_prefix)) {
  table_.self = this;
  table_.describe = [](void* self, mlg_value value, mlg_tensor* out) {
    return guarded(self, [&](GraphRecorder& r) { *out = r.graph_.type(Value{value}).to_c(); });
  };
  table_.state = [](void* self, const char* name, const mlg_tensor* shape, mlg_value* out) {
    return guarded(self, [&](GraphRecorder& r) {
      r.states_.push_back(fmt::format("{}/{}", r.prefix_, name));
      *out = r.graph_.external(r.states_.back(), TensorType::from_c(*shape)).id;
    });
  };
  table_.scratch = [](void* self, const mlg_tensor* shape, mlg_value* out) {
    return guarded(self, [&](GraphRecorder& r) { *out = r.graph_.scratch(TensorType::from_c(*shape)).id; });
  };
  table_.view = [](void* self, mlg_value value, std::int64_t offset, const mlg_tensor* shape,
                   mlg_value* out) {
    return guarded(self, [&](GraphRecorder& r) {
      *out = r.graph_.view(Value{value}, offset, TensorType::from_c(*shape)).id;
    });
  };
  table_.launch = [](void* self, const char* kernel, const mlg_value* arguments, std::uint32_t argument_count,
                     const mlg_attribute* attributes, std::uint32_t attribute_count) {
    return guarded(self, [&](GraphRecorder& r) {
      std::vector<Value> values;
      for (std::uint32_t i = 0; i < argument_count; ++i) values.push_back(Value{arguments[i]});
      std::vector<Attribute> named;
      for (std::uint32_t i = 0; i < attribute_count; ++i)
        named.push_back({attributes[i].name, attributes[i].value});
      r.graph_.call(kernel, std::move(values), std::move(named));
    });
  };
}

}  // namespace mulligan
