// The [ttt] section: how the validation set is scored with test-time training.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "framework/config/adaptation.h"
#include "framework/config/plugin_config.h"

namespace mulligan {

// What the host itself reads in [ttt.optimizer]: the rate of the adapters is the product.
struct AdapterRate {
  double lr = 0, multiplier = 1;
};

// What the host itself reads in [ttt.transform].
struct TransformOptions {
  TransformOrder text_order = TransformOrder::queue;
};

void declare_keys(Schema<TttConfig>& s);
void declare_keys(Schema<AdapterRate>& s);
void declare_keys(Schema<TransformOptions>& s);

// [ttt] with its plugin tables.
struct TttSection {
  TttConfig config;
  Settings settings;                     // its keys, bare names
  PluginTable adapters;                  // [ttt.adapters]
  PluginTable optimizer;                 // [ttt.optimizer]
  double lr = 0;                         // of the adapters; constant
  std::optional<PluginTable> transform;  // [ttt.transform]; absent: losses are booked as they are
  TransformOrder transform_order = TransformOrder::queue;
  std::optional<PluginTable> base;            // [ttt.base]; absent: the base model is never trained
  std::optional<PluginTable> base_optimizer;  // [ttt.base.optimizer]; there where `base` is
};

// The section of a configuration; absent where `table` is null. Throws config_error for keys that
// contradict each other.
std::optional<TttSection> read_ttt(const ConfigNode* table, const std::string& source);
// A plugin's keys that the table [ttt.base.optimizer] may hold: all of `keys` but the momentum, which
// [ttt.base] says. Throws config_error where the table holds one.
std::vector<KeySpec> base_optimizer_keys(const PluginTable& table, std::vector<KeySpec> keys);

}  // namespace mulligan
