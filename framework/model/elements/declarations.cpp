// The part of the elements that the configuration stands on. It is compiled into the module config, as are
// the keys.cpp of the folders, and includes nothing of the model's.
#include "framework/config/model_elements.h"

namespace mulligan {

#define MULLIGAN_ELEMENT(name)      \
  namespace elements::name {        \
  ElementDeclaration declaration(); \
  }
#include "framework/model/elements/list.inc"
#undef MULLIGAN_ELEMENT

const std::vector<ElementDeclaration>& declared_elements() {
#define MULLIGAN_ELEMENT(name) elements::name::declaration(),
  static const std::vector<ElementDeclaration> all = {
#include "framework/model/elements/list.inc"
  };
#undef MULLIGAN_ELEMENT
  return all;
}

}  // namespace mulligan
