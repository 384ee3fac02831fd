#include "framework/artifact/evaluation_settings.h"

#include <fmt/format.h>

#include <charconv>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include "framework/core/error.h"

namespace mulligan {
namespace {

// All fields in the order of the text, stated once for both directions: Writer and Reader.
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
  ConfigValue& value = key.second;
  ValueType type = value.type();
  each(key.first, type);
  const bool written = type == value.type();
  const auto as = [&](auto held) {
    each(held);
    value = ConfigValue(std::move(held));
  };
  switch (type) {
    case ValueType::boolean:
      return as(written ? value.boolean() : false);
    case ValueType::integer:
      return as(written ? value.integer() : std::int64_t{0});
    case ValueType::real:
      return as(written ? value.real() : 0.0);
    case ValueType::string:
      return as(written ? value.string() : std::string());
    case ValueType::real_list:
      return as(written ? value.reals() : ConfigValue::Reals());
    default:
      each.refuse_type();
  }
}

class Writer {
 public:
  template <typename... T>
  void operator()(T&... values) {
    (put(values), ...);
  }
  static void refuse_type() {
    throw std::logic_error("evaluation settings: no plugin has a list of strings");
  }
  std::string text;

 private:
  template <typename T>
  void put(T& value) {
    if constexpr (std::is_enum_v<T> || std::is_same_v<T, bool>) {
      text += fmt::format("{}\n", static_cast<int>(value));
    } else if constexpr (std::is_arithmetic_v<T> || std::is_same_v<T, std::string>) {
      text += fmt::format("{}\n", value);
    } else {
      for_each_field(value, *this);
    }
  }
  template <typename T>
  void put(std::vector<T>& list) {
    text += fmt::format("{}\n", list.size());
    for (T& entry : list) put(entry);
  }
};

class Reader {
 public:
  explicit Reader(std::string_view text) : rest_(text) {}
  template <typename... T>
  void operator()(T&... values) {
    (take(values), ...);
  }
  static void refuse_type() { throw bad(); }
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
    } else if constexpr (std::is_arithmetic_v<T>) {
      const std::string_view text = line();
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
      if (error != std::errc() || end != text.data() + text.size()) throw bad();
    } else {
      for_each_field(value, *this);
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

  std::string_view rest_;
};

}  // namespace

std::string write_evaluation_settings(const EvaluationSettings& settings) {
  EvaluationSettings copy = settings;
  Writer writer;
  for_each_field(copy, writer);
  return writer.text;
}

EvaluationSettings read_evaluation_settings(std::string_view text) {
  EvaluationSettings settings;
  Reader reader(text);
  for_each_field(settings, reader);
  reader.finish();
  for (const auto& [name, value] : settings.elements) settings.model.elements[name] = value;
  return settings;
}

}  // namespace mulligan
