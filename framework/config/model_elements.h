// What an element of the model (framework/model/elements/NAME) declares to the configuration: its keys and
// the rules between them. The struct that its keys fill is the element's own, so that no other file names it.
#pragma once

#include <string>
#include <vector>

#include "framework/config/model_config.h"
#include "framework/config/schema.h"

namespace mulligan {

struct RunConfig;

struct ElementDeclaration {
  std::string name;   // of its folder
  std::string table;  // what [model.NAME] is, in one sentence; empty: no table of its own
  // Declares its keys: directly below [model], or by declare_element_table.
  void (*keys)(Schema<ModelConfig>& schema, const std::string& name) = nullptr;
  // Throws config_error where keys contradict each other; null: they cannot. `settings`: for their origins.
  void (*check)(const ModelConfig& model, const Settings& settings) = nullptr;
  // The same of what else a run is asked to do.
  void (*check_run)(const RunConfig& config, const Settings& settings) = nullptr;
};

// All, in the order of framework/model/elements/list.inc.
const std::vector<ElementDeclaration>& declared_elements();

// Declares the keys of struct C as the table [model.NAME]. Defaults must leave the element off.
template <typename C>
void declare_element_table(Schema<ModelConfig>& schema, const std::string& name) {
  for (KeySpec key : schema_of<C>().keys()) {
    key.name = name + "." + key.name;
    const auto get = [full = key.name, initial = key.default_value](const ModelConfig& model) {
      const auto value = model.elements.find(full);
      return value == model.elements.end() ? initial : value->second;
    };
    const auto set = [full = key.name](ModelConfig& model, const ConfigValue& value) {
      model.elements[full] = value;
    };
    schema.bind(std::move(key), {get, set});
  }
}

}  // namespace mulligan
