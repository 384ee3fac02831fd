#include "framework/artifact/evaluation_settings.h"

#include <fmt/format.h>

#include <charconv>
#include <functional>
#include <stdexcept>
#include <type_traits>

#include "framework/core/error.h"

namespace mulligan {
namespace {

// All fields in the order of the text, stated once for both directions.
template <typename Each>
void for_each_field(EvaluationSettings& s, Each each) {
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

class Writer {
 public:
  template <typename... T>
  void operator()(T&... values) {
    (put(values), ...);
  }
  std::string text;

 private:
  template <typename T>
  void put(const T& value) {
    if constexpr (std::is_enum_v<T>) {
      put(static_cast<int>(value));
    } else if constexpr (std::is_same_v<T, bool>) {
      put(static_cast<int>(value));
    } else {
      text += fmt::format("{}\n", value);
    }
  }
  template <typename T>
  void put(const std::vector<T>& list) {
    put(list.size());
    for (const T& entry : list) put(entry);
  }
  void put(const EvaluationSettings::Master& master) {
    put(master.dtype);
    put(master.trained);
  }
  void put(const EvaluationPlugin& plugin) {
    put(plugin.section);
    put(plugin.name);
    put(plugin.keys);
  }
  void put(const std::pair<std::string, ConfigValue>& key) {
    put(key.first);
    put(key.second.type());
    key.second.visit([this](const auto& value) { put(value); });
  }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  template <typename... T>
  void operator()(T&... values) {
    (take(values), ...);
  }
  void finish() const {
    if (!rest_.empty()) throw bad();
  }

 private:
  static Error bad() {
    return data_error("the artifact's settings of its evaluation are damaged; make it again");
  }

  std::string_view line() {
    const std::size_t end = rest_.find('\n');
    if (end == rest_.npos) throw bad();
    const std::string_view found = rest_.substr(0, end);
    rest_.remove_prefix(end + 1);
    return found;
  }
  template <typename T>
  void take(T& value) {
    if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
      unsigned char number = 0;  // no enumeration has more
      take(number);
      if (std::is_same_v<T, bool> && number > 1) throw bad();
      value = static_cast<T>(number);
    } else {
      const std::string_view text = line();
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size()) throw bad();
    }
  }
  void take(std::string& value) { value = line(); }
  template <typename T>
  void take(std::vector<T>& list) {
    std::size_t count = 0;
    take(count);
    if (count > rest_.size()) throw bad();  // each entry takes a line
    list.resize(count);
    for (T& entry : list) take(entry);
  }
  void take(EvaluationSettings::Master& master) {
    take(master.dtype);
    take(master.trained);
  }
  void take(EvaluationPlugin& plugin) {
    take(plugin.section);
    take(plugin.name);
    take(plugin.keys);
  }
  template <typename T>
  void take_as(ConfigValue& value) {
    T taken{};
    take(taken);
    value = ConfigValue(std::move(taken));
  }
  void take(std::pair<std::string, ConfigValue>& key) {
    take(key.first);
    ValueType type{};
    take(type);
    switch (type) {
      case ValueType::boolean:
        return take_as<bool>(key.second);
      case ValueType::integer:
        return take_as<std::int64_t>(key.second);
      case ValueType::real:
        return take_as<double>(key.second);
      case ValueType::string:
        return take_as<std::string>(key.second);
      case ValueType::real_list:
        return take_as<ConfigValue::Reals>(key.second);
      default:
        throw bad();
    }
  }

  std::string_view rest_;
};

}  // namespace

std::string write_evaluation_settings(const EvaluationSettings& settings) {
  EvaluationSettings copy = settings;
  Writer writer;
  for_each_field(copy, std::ref(writer));
  return writer.text;
}

EvaluationSettings read_evaluation_settings(std::string_view text) {
  EvaluationSettings settings;
  Reader reader(text);
  for_each_field(settings, std::ref(reader));
  reader.finish();
  for (const auto& [name, value] : settings.elements) settings.model.elements[name] = value;
  return settings;
}

}  // namespace mulligan
