#include "framework/artifact/evaluation_settings.h"

#include <algorithm>
#include <stdexcept>
#include <type_traits>

#include "framework/core/error.h"
#include "framework/core/parse_json.h"

namespace mulligan {
namespace {

// All fields in the order of the list, stated once for both directions.
template <typename Each>
void for_each_field(EvaluationSettings& s, Each& each) {
  ModelConfig& m = s.model;
  each(m.family, m.vocabulary, m.layers, m.width, m.heads, m.kv_heads, m.head_width, m.mlp_hidden,
       m.mlp_negative_slope, m.tied_head, m.softcap, m.attention_scale, m.norm_eps, m.ln_scale,
       m.residual_mix, m.qk_norm, m.q_gain, m.xsa_last_layers, m.attention_gate, m.skip_weights, m.skip_gates,
       m.rope.dims, m.rope.base, m.rope.form, m.rope.table, m.loop.first, m.loop.last, m.loop.extra_passes,
       m.lanes.parallel_start, m.lanes.final_lane, s.elements, s.active);
  EvalConfig& e = s.eval;
  each(e.mode, e.sequence_length, e.stride, e.packed_sequences, e.drop_remainder, e.tokens, e.shares);
  each(s.seed, s.fused_kernels, s.joined, s.activations, s.projections, s.backend);
  TttConfig& t = s.ttt;
  each(t.batch_documents, t.order, t.context_tokens, t.chunk_tokens, t.chunk_limits, t.chunk_sizes,
       t.document_fraction, t.document_seed, t.prefix_documents, t.phases, t.lanes);
  each(s.lr, s.transform_order, s.masters, s.adapters, s.optimizer, s.transform, s.base, s.base_optimizer);
}

template <typename Each>
void for_each_field(EvaluationSettings::Master& master, Each& each) {
  each(master.dtype, master.trained);
}
template <typename Each>
void for_each_field(EvaluationPlugin& plugin, Each& each) {
  each(plugin.section, plugin.name, plugin.keys);
}
template <typename Each>
void for_each_field(std::pair<std::string, ConfigValue>& key, Each& each) {
  each(key.first, key.second);
}

// Writes a list of JSON, or reads the one that it is given.
class FieldList {
 public:
  FieldList() = default;
  explicit FieldList(nlohmann::json list) : list_(std::move(list)), reads_(true) {}
  template <typename... T>
  void operator()(T&... values) {
    (field(values), ...);
  }
  std::string text() const { return list_.dump(); }

 private:
  template <typename T>
  void field(T& value) {
    if constexpr (requires { for_each_field(value, *this); }) {
      for_each_field(value, *this);
    } else if (reads_) {
      const nlohmann::json& held = list_.at(at_++);
      if (std::is_floating_point_v<T> || !held.is_number_float()) held.get_to(value);
    } else {
      list_.push_back(value);
    }
  }
  template <typename T>
  void field(std::vector<T>& list) {
    std::size_t count = list.size();
    field(count);
    list.resize(std::min(count, list_.size() + 1));  // each entry is one of the list
    for (T& entry : list) field(entry);
  }
  void field(ConfigValue& value) {
    if (!reads_) return value.visit([this](const auto& held) { list_.push_back(held); });
    const nlohmann::json& held = list_.at(at_++);
    if (held.is_boolean()) value = ConfigValue(held.get<bool>());
    if (held.is_number_integer()) value = ConfigValue(held.get<std::int64_t>());
    if (held.is_number_float()) value = ConfigValue(held.get<double>());
    if (held.is_string()) value = ConfigValue(held.get<std::string>());
    if (held.is_array()) value = ConfigValue(held.get<ConfigValue::Reals>());
  }

  nlohmann::json list_ = nlohmann::json::array();
  bool reads_ = false;
  std::size_t at_ = 0;
};

}  // namespace

std::string write_evaluation_settings(const EvaluationSettings& settings) {
  EvaluationSettings copy = settings;
  FieldList fields;
  for_each_field(copy, fields);
  return fields.text();
}

EvaluationSettings read_evaluation_settings(std::string_view text) {
  EvaluationSettings settings;
  try {
    FieldList fields(parse_json(text));
    for_each_field(settings, fields);
    // Numbers of another type were cut, and further fields were not read.
    if (write_evaluation_settings(settings) != text) throw std::invalid_argument("other fields");
  } catch (const std::exception&) {
    throw data_error("the artifact's settings of its evaluation are damaged; make it again");
  }
  for (const auto& [name, value] : settings.elements) settings.model.elements[name] = value;
  return settings;
}

}  // namespace mulligan
