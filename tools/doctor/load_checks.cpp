#include "tools/doctor/load_checks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "framework/checkpoint/compare.h"
#include "framework/checkpoint/float_formats.h"
#include "framework/model/qwen2/parameters.h"

namespace mulligan::doctor {
namespace {

// "3 missing (a, b, ...)", or nothing.
void add_list(std::vector<std::string>& parts, const std::vector<std::string>& names, const char* what) {
  if (names.empty()) return;
  const std::size_t shown = std::min<std::size_t>(names.size(), 4);
  parts.push_back(
      fmt::format("{} {} ({}{})", names.size(), what,
                  fmt::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
                  shown < names.size() ? ", ..." : ""));
}

}  // namespace

Finding check_coverage(const SafetensorsFile& file, const std::vector<ParameterSpec>& model) {
  std::vector<std::string> missing, shaped, transposed, extra;
  std::size_t filled = 0;
  for (const ParameterSpec& spec : model) {
    const StoredTensor* tensor = file.find(spec.name);
    const std::vector<std::int64_t> shape(spec.type.dims.begin(), spec.type.dims.begin() + spec.type.rank);
    if (!tensor) {
      missing.push_back(spec.name);
    } else if (tensor->shape == shape) {
      ++filled;
    } else if (shape.size() == 2 && tensor->shape == std::vector{shape[1], shape[0]}) {
      transposed.push_back(fmt::format("{} [{}]", spec.name, fmt::join(tensor->shape, ", ")));
    } else {
      shaped.push_back(
          fmt::format("{} [{}] for [{}]", spec.name, fmt::join(tensor->shape, ", "), fmt::join(shape, ", ")));
    }
  }
  bool biases = false;
  for (const StoredTensor& tensor : file.tensors()) {
    if (std::ranges::find(model, tensor.name, &ParameterSpec::name) != model.end()) continue;
    extra.push_back(tensor.name);
    biases = biases || tensor.name.ends_with(".bias");
  }
  std::vector<std::string> parts;
  add_list(parts, missing, "missing");
  add_list(parts, extra, "that the model has not");
  add_list(parts, shaped, "of another shape");
  add_list(parts, transposed, "transposed");
  Finding f = begin_finding("D03", "tensors of the weights file",
                            "any missing, extra, transposed or of another shape fails");
  f.measured = fmt::format("{} of {} parameters filled, {} tensors in the file", filled, model.size(),
                           file.tensors().size());
  if (parts.empty()) return f;
  return failed(
      f,
      fmt::format("{}/{} tensors populated: {}{}", filled, model.size(), fmt::join(parts, "; "),
                  biases ? "; bias tensors are present, but the model has no such bias" : ""),
      "make [model] that of the file (mulligan config model FOLDER prints it for config.json), or import the "
      "file with a name map");
}

namespace {

// The layers that the tensors' names count.
std::int64_t layers_of(const SafetensorsFile& file) {
  std::set<std::string> seen;
  constexpr std::string_view prefix = "model.layers.";
  for (const StoredTensor& tensor : file.tensors()) {
    if (tensor.name.starts_with(prefix))
      seen.insert(tensor.name.substr(prefix.size(), tensor.name.find('.', prefix.size()) - prefix.size()));
  }
  return static_cast<std::int64_t>(seen.size());
}
// What the tensors' names say against the family of [model]; "" where they say nothing.
std::string other_family(const SafetensorsFile& file, bool own, bool published) {
  const auto any_ends_with = [&](std::string_view end) {
    return std::ranges::any_of(file.tensors(), [end](const auto& t) { return t.name.ends_with(end); });
  };
  const bool biases = any_ends_with("self_attn.q_proj.bias"), banks = file.find("qo_bank") != nullptr;
  if (any_ends_with("self_attn.q_norm.weight")) return "its tensors are qwen3-shaped (q_norm)";
  if (published && biases && !own) return "its tensors are qwen2-shaped (q_proj.bias)";
  if (published && !biases) return "its tensors are llama-shaped (no q_proj.bias)";
  return banks && own ? "its tensors are those of the record (qo_bank)" : "";
}

// Facts of the tensors, and of config.json where there is one, that contradict [model].
std::vector<std::string> contradictions(const SafetensorsFile& file, const ModelConfig& model,
                                        const ModelConfig* config_json) {
  std::vector<std::string> said;
  const bool own = model.family == ModelFamily::qwen2;
  const bool published = std::ranges::any_of(
      file.tensors(), [](const auto& t) { return t.name.ends_with("self_attn.q_proj.weight"); });
  if (const std::string seen = other_family(file, own, published); !seen.empty()) {
    said.push_back(fmt::format("model.family is {}, but {}", word_of(model.family), seen));
  } else if (!published && !file.find("qo_bank")) {
    said.push_back("its tensors are of no family that is known here");
  }
  const auto size = [&](const char* what, std::int64_t ours, std::int64_t of_file) {
    if (ours != of_file)
      said.push_back(fmt::format("[model] has {} = {}, the file's tensors {}", what, ours, of_file));
  };
  const auto rows = [&](const char* what, const std::string& tensor, std::int64_t ours) {
    const StoredTensor* found = file.find(tensor);
    if (found && found->shape.size() == 2) size(what, ours, found->shape[0]);
  };
  if (own && published) {
    const bool head = file.find(qwen2::head_parameter) != nullptr;
    if (model.tied_head && head) said.push_back("[model] ties the head, but the file has an lm_head.weight");
    if (!model.tied_head && !head)
      said.push_back("[model] has a head of its own, but the file has no lm_head.weight");
    size("layers", model.layers, layers_of(file));
    rows("vocabulary", qwen2::embedding_parameter, model.vocabulary);
    const auto of_layer = [](const char* name) { return qwen2::layer_parameter(0, name); };
    rows("heads * head_width", of_layer("self_attn.q_proj.weight"), model.heads * model.head_width);
    rows("kv_heads * head_width", of_layer("self_attn.k_proj.weight"), model.kv_heads * model.head_width);
    rows("mlp_hidden", of_layer("mlp.gate_proj.weight"), model.mlp_hidden);
  }
  if (!config_json) return said;
  const auto number = [&](const char* key, auto ours, auto of_file) {
    if (ours != of_file) said.push_back(fmt::format("{} is {}, config.json says {}", key, ours, of_file));
  };
  const ModelConfig& theirs = *config_json;
  number("model.vocabulary", model.vocabulary, theirs.vocabulary);
  number("model.layers", model.layers, theirs.layers);
  number("model.width", model.width, theirs.width);
  number("model.heads", model.heads, theirs.heads);
  number("model.kv_heads", model.kv_heads, theirs.kv_heads);
  number("model.head_width", model.head_width, theirs.head_width);
  number("model.mlp_hidden", model.mlp_hidden, theirs.mlp_hidden);
  number("model.tied_head", model.tied_head, theirs.tied_head);
  number("model.norm_eps", model.norm_eps, theirs.norm_eps);
  number("model.rope.base", model.rope.base, theirs.rope.base);
  number("model.rope.dims", model.rope.dims, theirs.rope.dims);
  return said;
}

}  // namespace

Finding check_architecture(const SafetensorsFile& file, const ModelConfig& model,
                           const std::optional<PublishedModel>& published) {
  const auto said = contradictions(file, model, published ? &published->model : nullptr);
  Finding f =
      begin_finding("D08", "architecture",
                    "any contradiction to [model] fails; a 16-bit dtype that is not config.json's warns");
  f.measured = fmt::format("{}: {} contradictions",
                           published ? "tensors and config.json" : "tensors (no config.json)", said.size());
  if (!said.empty()) {
    f.note(CheckOutcome::fail, fmt::format("{}", fmt::join(said, "; ")),
           "make [model] that of the weights: mulligan config model FOLDER prints it");
  }
  for (const StoredTensor& tensor : file.tensors()) {
    const std::string dtype = published ? published->stored_dtype : "";
    if ((tensor.type == MLG_F16 && dtype == "bfloat16") || (tensor.type == MLG_BF16 && dtype == "float16"))
      f.note(
          CheckOutcome::warn,
          fmt::format("config.json says {}, but '{}' is stored as {}", dtype, tensor.name,
                      stored_name(tensor.type)),
          "one of the two mislabels the weights, unless they were converted; D04 and D05 look at the numbers");
  }
  return f;
}

namespace {

constexpr const char* convert_again =
    "convert the file again from its source, with the right dtype in its header";
// Elements of a matrix that its dtype is judged by, and the fewest of all matrices that are enough.
constexpr std::size_t judged_elements = 4096, fewest_judged = 128;

bool is_half(DType type) {
  return type == MLG_BF16 || type == MLG_F16;
}
DType other_half(DType type) {
  return type == MLG_BF16 ? MLG_F16 : MLG_BF16;
}

// A sentence where the 16-bit matrices look like weights under the other dtype alone, else "".
std::string mislabelled(const SafetensorsFile& source, DType type) {
  std::vector<float> as_said, as_other;
  for (const StoredTensor& tensor : source.tensors()) {
    if (tensor.type != type || tensor.shape.size() < 2) continue;
    const std::vector<float> said = decode_weights(tensor.bytes, type),
                             other = decode_weights(tensor.bytes, other_half(type));
    for (std::size_t i = 0; i < said.size(); i += std::max<std::size_t>(1, said.size() / judged_elements)) {
      as_said.push_back(said[i]);
      as_other.push_back(other[i]);
    }
  }
  const MagnitudeReport said = test_magnitudes(as_said), other = test_magnitudes(as_other);
  if (std::min(said.count, other.count) < fewest_judged) return {};
  const bool impossible = said.log2_spread < 0.5 || said.log2_spread > 6;
  if (!impossible || other.log2_spread <= 0.9 || other.log2_spread >= 3) return {};
  return fmt::format(
      "decoded as {} (the header's dtype) the matrices have a spread of log2|x| of {:.2f}, "
      "re-decoded as {} one of {:.2f}, which weights have: the header mislabels the dtype",
      stored_name(type), said.log2_spread, stored_name(other_half(type)), other.log2_spread);
}

// How the source would have to be read for all elements to match, in words.
std::string explanation(const StoredTensor& source, const LoadedTensor& loaded,
                        const std::vector<float>& values) {
  const auto matches = [&](const std::vector<float>& read) {
    return encode_weights(read, loaded.type) == loaded.bytes;
  };
  if (is_half(source.type) && matches(decode_weights(source.bytes, other_half(source.type)))) {
    return fmt::format("re-decoding the source as {} matches: a header mislabels the dtype",
                       stored_name(other_half(source.type)));
  }
  if (source.shape.size() == 2) {
    const auto rows = static_cast<std::size_t>(source.shape[0]),
               columns = static_cast<std::size_t>(source.shape[1]);
    std::vector<float> turned(values.size());
    for (std::size_t i = 0; i < turned.size(); ++i) turned[i] = values[(i % rows) * columns + i / rows];
    if (matches(turned)) return "it is the source's transpose";
  }
  return "no decoding of the source matches: another checkpoint or layout";
}

}  // namespace

Finding check_source_bits(const SafetensorsFile& source, std::span<const LoadedTensor> loaded) {
  Finding f = begin_finding("D04", "bits of the source",
                            "any element of other bits fails, and a header's dtype that no weights have");
  std::size_t tensors = 0, elements_compared = 0, differing = 0;
  for (const LoadedTensor& tensor : loaded) {
    const StoredTensor* from = source.find(tensor.name);
    const std::size_t size = sdk::dtype_bytes(tensor.type), count = tensor.bytes.size() / size;
    if (!from || !is_weight_format(from->type) || count != from->element_count()) continue;
    ++tensors;
    elements_compared += count;
    const std::vector<float> values = decode_weights(from->bytes, from->type);
    const std::vector<std::byte> expected = encode_weights(values, tensor.type);
    if (expected == tensor.bytes) continue;
    ++differing;
    if (f.verdict == CheckOutcome::fail) continue;
    const auto place = std::ranges::mismatch(expected, tensor.bytes).in1 - expected.begin();
    const std::size_t i = static_cast<std::size_t>(place) / size;
    f.note(CheckOutcome::fail,
           fmt::format("{}[{}] loaded {} source {}; {}", tensor.name, i,
                       decode_weights(tensor.bytes, tensor.type)[i], values[i],
                       explanation(*from, tensor, values)),
           convert_again);
  }
  f.measured = fmt::format("{} elements of {} tensors compared, {} tensors differ", elements_compared,
                           tensors, differing);
  for (const DType type : {MLG_BF16, MLG_F16}) {
    if (const std::string sentence = mislabelled(source, type); !sentence.empty())
      f.note(CheckOutcome::fail, sentence, convert_again);
  }
  if (tensors > 0 || f.verdict == CheckOutcome::fail) return f;
  return judged(f, CheckOutcome::skip, "no tensor of the file was loaded", "see D03");
}

}  // namespace mulligan::doctor
