#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "framework/model/qwen2/parameters.h"
#include "tools/doctor/load_checks.h"

namespace mulligan::doctor {
namespace {

class Evidence {
 public:
  Evidence(const SafetensorsFile& file, const ModelConfig& model) : file_(file), model_(model) {}

  void collect() {
    const bool biases = any_ends_with("self_attn.q_proj.bias"),
               head_norms = any_ends_with("self_attn.q_norm.weight");
    const bool published = any_ends_with("self_attn.q_proj.weight"), banks = file_.find("qo_bank") != nullptr;
    const bool own = model_.family == ModelFamily::qwen2;
    if (head_norms) {
      against("its tensors are qwen3-shaped (q_norm)");
    } else if (published && biases && !own) {
      against("its tensors are qwen2-shaped (q_proj.bias)");
    } else if (published && !biases) {
      against("its tensors are llama-shaped (no q_proj.bias)");
    } else if (banks && own) {
      against("its tensors are those of the record (qo_bank)");
    } else if (!published && !banks) {
      said.push_back("its tensors are of no family that is known here");
    }
    if (!own || !published) return;
    const StoredTensor* head = file_.find(qwen2::head_parameter);
    if (model_.tied_head && head) said.push_back("[model] ties the head, but the file has an lm_head.weight");
    if (!model_.tied_head && !head)
      said.push_back("[model] has a head of its own, but the file has no lm_head.weight");
    size("layers", model_.layers, layers());
    rows("vocabulary", qwen2::embedding_parameter, model_.vocabulary, 1);
    rows("heads * head_width", qwen2::layer_parameter(0, "self_attn.q_proj.weight"), model_.heads,
         model_.head_width);
    rows("kv_heads * head_width", qwen2::layer_parameter(0, "self_attn.k_proj.weight"), model_.kv_heads,
         model_.head_width);
    rows("mlp_hidden", qwen2::layer_parameter(0, "mlp.gate_proj.weight"), model_.mlp_hidden, 1);
  }

  // What config.json says where [model] says otherwise.
  void compare(const ModelConfig& theirs) {
    const auto number = [this](const char* key, auto ours, auto of_file) {
      ++facts;
      if (ours != of_file) said.push_back(fmt::format("{} is {}, config.json says {}", key, ours, of_file));
    };
    number("model.vocabulary", model_.vocabulary, theirs.vocabulary);
    number("model.layers", model_.layers, theirs.layers);
    number("model.width", model_.width, theirs.width);
    number("model.heads", model_.heads, theirs.heads);
    number("model.kv_heads", model_.kv_heads, theirs.kv_heads);
    number("model.head_width", model_.head_width, theirs.head_width);
    number("model.mlp_hidden", model_.mlp_hidden, theirs.mlp_hidden);
    number("model.tied_head", model_.tied_head, theirs.tied_head);
    number("model.norm_eps", model_.norm_eps, theirs.norm_eps);
    number("model.rope.base", model_.rope.base, theirs.rope.base);
    number("model.rope.dims", model_.rope.dims, theirs.rope.dims);
  }

  std::vector<std::string> said;  // contradictions
  int facts = 2;                  // compared; names say two: family and head

 private:
  bool any_ends_with(std::string_view end) const {
    return std::ranges::any_of(file_.tensors(),
                               [end](const auto& tensor) { return tensor.name.ends_with(end); });
  }
  void against(const char* seen) {
    said.push_back(fmt::format("model.family is {}, but {}", family_name(model_.family), seen));
  }
  std::int64_t layers() const {
    std::set<std::string> seen;
    constexpr std::string_view prefix = "model.layers.";
    for (const StoredTensor& tensor : file_.tensors()) {
      if (!tensor.name.starts_with(prefix)) continue;
      seen.insert(tensor.name.substr(prefix.size(), tensor.name.find('.', prefix.size()) - prefix.size()));
    }
    return static_cast<std::int64_t>(seen.size());
  }
  void size(const char* what, std::int64_t ours, std::int64_t of_file) {
    ++facts;
    if (ours != of_file)
      said.push_back(fmt::format("[model] has {} = {}, the file's tensors {}", what, ours, of_file));
  }
  void rows(const char* what, const std::string& tensor, std::int64_t count, std::int64_t each) {
    const StoredTensor* found = file_.find(tensor);
    if (found && found->shape.size() == 2) size(what, count * each, found->shape[0]);
  }

  const SafetensorsFile& file_;
  const ModelConfig& model_;
};

// A dtype of config.json that the header's 16-bit tensors are not of, or "".
std::string other_dtype(const SafetensorsFile& file, const std::string& said) {
  for (const StoredTensor& tensor : file.tensors()) {
    const bool contradicts = (tensor.type == StoredType::f16 && said == "bfloat16") ||
                             (tensor.type == StoredType::bf16 && said == "float16");
    if (contradicts) {
      return fmt::format("config.json says {}, but '{}' is stored as {}", said, tensor.name,
                         stored_name(tensor.type));
    }
  }
  return {};
}

}  // namespace

Finding check_architecture(const SafetensorsFile& file, const ModelConfig& model,
                           const std::optional<PublishedModel>& published) {
  Evidence evidence(file, model);
  evidence.collect();
  if (published) evidence.compare(published->model);
  Finding f =
      begin_finding("D08", "architecture",
                    "any contradiction to [model] fails; a 16-bit dtype that is not config.json's warns");
  f.measured =
      fmt::format("{} facts of {}, {} contradictions", evidence.facts,
                  published ? "tensors and config.json" : "tensors (no config.json)", evidence.said.size());
  if (!evidence.said.empty()) {
    return failed(std::move(f), fmt::format("{}", fmt::join(evidence.said, "; ")),
                  "make [model] that of the weights: mulligan config model FOLDER prints it");
  }
  f.message = published ? other_dtype(file, published->stored_dtype) : std::string();
  if (f.message.empty()) return f;
  f.verdict = CheckOutcome::warn;
  f.hint =
      "one of the two mislabels the weights, unless they were converted; D04 and D05 look at the numbers";
  return f;
}

}  // namespace mulligan::doctor
