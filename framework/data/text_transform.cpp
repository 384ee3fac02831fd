#include "framework/data/text_transform.h"

#include "framework/core/error.h"
#include "framework/data/caseops.h"

namespace mulligan {

std::vector<const TextTransform*> text_transforms() {
  static const CaseOps caseops;
  return {&caseops};
}

const TextTransform& text_transform(std::string_view name) {
  std::string names;
  for (const TextTransform* transform : text_transforms()) {
    if (transform->name() == name) return *transform;
    names += (names.empty() ? "" : ", ") + std::string(transform->name());
  }
  throw config_error("there is no text transform '{}'; there is {}", name, names);
}

}  // namespace mulligan
