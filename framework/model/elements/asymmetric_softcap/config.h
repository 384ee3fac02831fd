// [model.asymmetric_softcap]
#pragma once

#include "framework/config/model_config.h"

namespace mulligan::elements::asymmetric_softcap {

struct Config {
  bool enabled = false;
};

Config config_of(const ModelConfig& model);

}  // namespace mulligan::elements::asymmetric_softcap
