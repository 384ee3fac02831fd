// An evaluation of a model of the record's family: the other families' builders are not there.
#include "framework/core/error.h"
#include "framework/model/modded/forward.h"
#include "framework/model/modded/parameters.h"
#include "framework/model/qwen2/forward.h"
#include "framework/model/qwen2/parameters.h"

#define MULLIGAN_ABSENT_FAMILY(name)                                                                        \
  namespace mulligan::name {                                                                                \
  Value build_forward(Tape&, const ModelConfig&, const ParameterValues&, const ForwardInputs&,              \
                      const ForwardOptions&) {                                                              \
    throw config_error(                                                                                     \
        "this evaluator was built without models of this family; build it from the artifact's own files."); \
  }                                                                                                         \
  std::vector<ParameterSpec> model_parameters(const ModelConfig&) {                                         \
    throw config_error(                                                                                     \
        "this evaluator was built without models of this family; build it from the artifact's own files."); \
  }                                                                                                         \
  }
MULLIGAN_ABSENT_FAMILY(qwen2)
MULLIGAN_ABSENT_FAMILY(modded)
