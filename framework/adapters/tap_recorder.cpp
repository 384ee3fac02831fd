#include "framework/adapters/tap_recorder.h"

#include <exception>

#include "framework/core/error.h"

namespace mulligan {

// Exceptions must not cross into the plugin: they become the sentence that the plugin hands back to us.
template <typename Body>
mlg_error TapRecorder::guarded(void* self, Body&& body) {
  auto& recorder = *static_cast<TapRecorder*>(self);
  try {
    body(recorder);
    return nullptr;
  } catch (const std::exception& error) {
    recorder.error_ = error.what();
    return recorder.error_.c_str();
  }
}

TapRecorder::TapRecorder(std::string tap) : tap_(std::move(tap)) {
  table_.self = this;
  table_.describe = [](void* self, mlg_value value, mlg_tensor* out) {
    return guarded(self, [&](TapRecorder& r) { *out = r.graph().type(r.known(value)).to_c(); });
  };
  table_.state = [](void* self, const char*, const mlg_tensor*, mlg_value*) {
    return guarded(self, [](TapRecorder& r) {
      throw run_error("the tap {}: a test-time-training plugin keeps nothing but its declared adapters",
                      r.tap_);
    });
  };
  table_.survives_warmup = [](void* self, mlg_value) {
    return guarded(self, [](TapRecorder& r) {
      throw run_error("the tap {}: a test-time-training plugin has no state that could survive warm-up",
                      r.tap_);
    });
  };
  table_.scratch = [](void* self, const mlg_tensor* shape, mlg_value* out) {
    return guarded(self, [&](TapRecorder& r) {
      const Value made = r.graph().scratch(TensorType::from_c(*shape), "adapter");
      r.allowed_.insert(made.id);
      *out = made.id;
    });
  };
  table_.view = [](void* self, mlg_value value, std::int64_t offset, const mlg_tensor* shape,
                   mlg_value* out) {
    return guarded(self, [&](TapRecorder& r) {
      const TensorType type = TensorType::from_c(*shape);
      const Value whole = r.known(value);
      if (r.rows_) r.rows_->view(r.graph(), whole, offset, type);
      const Value made = r.graph().view(whole, offset, type);
      r.allowed_.insert(made.id);
      *out = made.id;
    });
  };
  table_.launch = [](void* self, const char* kernel, const mlg_value* arguments, std::uint32_t argument_count,
                     const mlg_attribute* attributes, std::uint32_t attribute_count) {
    return guarded(self, [&](TapRecorder& r) {
      std::vector<Value> values;
      for (std::uint32_t i = 0; i < argument_count; ++i) {
        values.push_back(arguments[i] == 0 ? Value{} : r.known(arguments[i]));
      }
      std::vector<Attribute> named;
      for (std::uint32_t i = 0; i < attribute_count; ++i)
        named.push_back({attributes[i].name, attributes[i].value});
      if (r.rows_) r.rows_->call(r.graph(), kernel, values, named);
      r.graph().call(kernel, std::move(values), std::move(named));
    });
  };
}

void TapRecorder::allow(std::span<const Value> values) {
  for (const Value value : values) {
    if (value) allowed_.insert(value.id);
  }
}

const mlg_recorder& TapRecorder::open(Graph& graph, RowGuard* rows) {
  graph_ = &graph;
  rows_ = rows;
  return table_;
}

Graph& TapRecorder::graph() const {
  if (!graph_) {
    throw run_error("the tap {}: the recording is over; a plugin may record only while it is asked to", tap_);
  }
  return *graph_;
}

Value TapRecorder::known(mlg_value value) const {
  if (!allowed_.contains(value)) {
    throw run_error("the tap {}: value {} is not among those that it was handed or has made", tap_, value);
  }
  return Value{value};
}

}  // namespace mulligan
