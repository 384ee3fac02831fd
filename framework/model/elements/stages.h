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
// Names of those that a model has.
std::vector<std::string> active_elements(const ModelConfig& model);

// Throws config_error if an active element does not fit a tokenizer whose documents begin with token `bos_id`.
void check_tokenizer(const ModelConfig& model, int bos_id);

// Stage "embedding" on site.x.
Value mix_embedding(const ElementContext& context, EmbeddingSite site);

// Stage "attention": softmax(q k^T / sqrt(h)) v, [T, H, h].
Value attend(const ElementContext& context, const AttendSite& site);

// The gate to compute along with queries, keys and values; none: no active element has one.
std::optional<HeadGate> head_gate(const ModelConfig& model);

// Stage "attention output": the result that the output projection reads.
Value mix_attention(const ElementContext& context, AttentionOutput output);

// Stage "head": turns the logits of the head into those that `use` reads. All scoring and training calls this.
Value transform_head(Tape& tape, const ModelConfig& model, const ParameterValues& parameters, Value logits,
                     HeadUse use);

// Whether no training loss depends on the parameter, which belongs to an active element.
bool is_inert(const ModelConfig& model, std::string_view parameter);

// The parameters of all active elements: those of one layer, or those of the model as a whole.
void add_element_parameters(const ModelConfig& model, std::vector<ParameterSpec>& out);
void add_element_block_parameters(const ModelConfig& model, std::int64_t layer,
                                  std::vector<ParameterSpec>& out);

}  // namespace mulligan
