#include "framework/model/elements/stages.h"

#include <algorithm>
#include <stdexcept>

#include "kernels/attention/op.h"

namespace mulligan {

#define MULLIGAN_ELEMENT(name)  \
  namespace elements::name {    \
  extern const Element element; \
  }
#include "framework/model/elements/list.inc"
#undef MULLIGAN_ELEMENT

std::span<const Element> model_elements() {
#define MULLIGAN_ELEMENT(name) elements::name::element,
  static const Element all[] = {
#include "framework/model/elements/list.inc"
  };
#undef MULLIGAN_ELEMENT
  return all;
}

namespace {

// Calls body(element) for the active ones that have the member `part`.
template <typename Part, typename Body>
void for_active(const ModelConfig& model, Part part, Body&& body) {
  for (const Element& element : model_elements()) {
    if (element.*part && element.active(model)) body(element);
  }
}

}  // namespace

std::vector<std::string> active_elements(const ModelConfig& model) {
  std::vector<std::string> names;
  for (const Element& element : model_elements()) {
    if (element.active(model)) names.emplace_back(element.name);
  }
  return names;
}

void check_tokenizer(const ModelConfig& model, int bos_id) {
  for_active(model, &Element::check_tokenizer,
             [&](const Element& element) { element.check_tokenizer(model, bos_id); });
}

Value mix_embedding(const ElementContext& context, EmbeddingSite site) {
  for_active(context.model, &Element::mix_embedding,
             [&](const Element& element) { site.x = element.mix_embedding(context, site); });
  return site.x;
}

Value attend(const ElementContext& context, const AttendSite& site) {
  Value result;
  for_active(context.model, &Element::attend, [&](const Element& element) {
    if (result) throw std::logic_error("two active elements compute attention");
    result = element.attend(context, site);
  });
  if (result) return result;
  return ops::attention(context.tape, site.q, site.k, site.v, site.cu_seqlens, context.model.attention_scale);
}

std::optional<HeadGate> head_gate(const ModelConfig& model) {
  std::optional<HeadGate> gate;
  for_active(model, &Element::head_gate, [&](const Element& element) {
    if (gate) throw std::logic_error("two active elements have a head gate");
    gate = element.head_gate(model);
  });
  return gate;
}

Value mix_attention(const ElementContext& context, AttentionOutput output) {
  for_active(context.model, &Element::mix_attention,
             [&](const Element& element) { element.mix_attention(context, output); });
  return output.value();
}

Value transform_head(Tape& tape, const ModelConfig& model, const ParameterValues& parameters, Value logits,
                     HeadUse use) {
  const ElementContext context{tape, model, parameters};
  const auto replaced = [&](std::string_view name) {
    return use == HeadUse::scoring && std::ranges::any_of(model_elements(), [&](const Element& other) {
             return other.scores_instead_of == name && other.active(model);
           });
  };
  for_active(model, &Element::transform_head, [&](const Element& element) {
    if (!replaced(element.name)) logits = element.transform_head(context, use, logits);
  });
  return logits;
}

bool is_inert(const ModelConfig& model, std::string_view parameter) {
  bool inert = false;
  for_active(model, &Element::is_inert,
             [&](const Element& element) { inert = inert || element.is_inert(parameter); });
  return inert;
}

void add_element_parameters(const ModelConfig& model, std::vector<ParameterSpec>& out) {
  for_active(model, &Element::parameters, [&](const Element& element) { element.parameters(model, out); });
}

void add_element_block_parameters(const ModelConfig& model, std::int64_t layer,
                                  std::vector<ParameterSpec>& out) {
  for_active(model, &Element::block_parameters,
             [&](const Element& element) { element.block_parameters(model, layer, out); });
}

}  // namespace mulligan
