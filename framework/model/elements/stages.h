// The named stages of the forward pass, each with the elements that the configuration switches on, in the
// order of list.inc. A stage without an active element adds no call to the graph.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "framework/model/elements/element.h"

namespace mulligan {

// All elements, in the order of list.inc.
std::span<const Element> model_elements();

// "embedding", "attention", "attention output", "head": what acts there, for people.
struct StageList {
  std::string stage;
  std::vector<std::string> elements;  // may be empty
};
std::vector<StageList> model_stages(const ModelConfig& model);

// Throws config_error where an active element and a tokenizer whose documents begin with token `bos_id` do
// not go together.
void check_tokenizer(const ModelConfig& model, int bos_id);

// Stage "embedding" on site.x.
Value mix_embedding(const ElementContext& context, EmbeddingSite site);

// Stage "attention": softmax(q k^T / sqrt(h)) v, [T, H, h].
Value attend(const ElementContext& context, const AttendSite& site);

// The gate that is to be computed along with queries, keys and values; none: no active element has one.
std::optional<HeadGate> head_gate(const ModelConfig& model);

// Stage "attention output": the result that the output projection reads.
Value mix_attention(const ElementContext& context, AttentionOutput output);

// Stage "head": from the logits of the head to those that `use` reads. All scoring and training asks here.
Value transform_head(Tape& tape, const ModelConfig& model, const ParameterValues& parameters, Value logits,
                     HeadUse use);

// Whether no loss of training depends on the parameter, which is an active element's.
bool is_inert(const ModelConfig& model, std::string_view parameter);

// The parameters of all active elements, those of one layer or those that the model has once.
void add_element_parameters(const ModelConfig& model, std::vector<ParameterSpec>& out);
void add_element_block_parameters(const ModelConfig& model, std::int64_t layer,
                                  std::vector<ParameterSpec>& out);

}  // namespace mulligan
