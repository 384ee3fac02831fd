#include "framework/config/run_config.h"

#include <fnmatch.h>

#include <mulligan/wrapper.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <stdexcept>

#include "framework/config/core_schema.h"
#include "framework/config/stored_paths.h"
#include "framework/config/toml_document.h"
#include "framework/core/error.h"

namespace mulligan {
namespace {

// Tables whose members are not known beforehand; read by the functions below.
const std::vector<std::string> kOpenTables = {
    "backend",  "loss", "communicator", "schedule", "optimizer",   "parameters", "phase",
    "quantize", "ttt",  "ensemble",     "data.mix", "init.values", "wrapper"};

void derive(RunConfig& config, const std::string& file) {
  resolve_model_defaults(config.model);
  if (config.data.tokenizer == "none") config.data.tokenizer.clear();
  if (config.run.name.empty()) config.run.name = std::filesystem::path(file).stem().string();
  if (config.run.directory.empty()) config.run.directory = "runs/" + config.run.name;
  if (config.checkpoint.directory.empty()) {
    config.checkpoint.directory = (std::filesystem::path(config.run.directory) / "checkpoints").string();
  }
}

// A plugin table that need not be there. It is the member of `parent` with the last name of `section`.
std::optional<PluginTable> read_optional_table(const ConfigNode& parent, const std::string& section,
                                               const std::string& file) {
  const ConfigNode* table = parent.find(section.substr(section.rfind('.') + 1));
  if (table == nullptr) return std::nullopt;
  return read_plugin_table(table, section, file, "");
}

OptimizerConfig read_optimizer(const ConfigMember& member, const std::string& file) {
  static const std::vector<std::string> own_tables = {"schedule"};
  OptimizerConfig optimizer;
  optimizer.name = member.name;
  const std::string section = "optimizer." + member.name;
  optimizer.table = read_plugin_table_with(optimizer, &member.node, section, file, "", own_tables);
  optimizer.schedule = read_optional_table(member.node, section + ".schedule", file);
  return optimizer;
}

void read_optimizers(const ConfigNode& tree, LoadedConfig& loaded) {
  const ConfigNode* table = tree.find("optimizer");
  if (table == nullptr) return;
  config_error_if(!table->is_table(), "{}: 'optimizer' must be written as tables [optimizer.NAME].",
                  table->origin.text());
  for (const ConfigMember& member : table->members) {
    config_error_if(!member.node.is_table(),
                    "{}: '{}' stands directly in [optimizer]; put it into a table [optimizer.NAME].",
                    member.node.origin.text(), "optimizer." + member.name);
    loaded.config.optimizers.push_back(read_optimizer(member, loaded.file));
  }
}

constexpr auto take_all = [](const auto&, const auto&) {};

// Reads the rows [[path]] into `rows`. `take(settings, row)` is called for each before it joins the others.
template <typename Row, typename Take>
void read_rows(const ConfigNode& tree, const std::string& path, LoadedConfig& loaded, std::vector<Row>& rows,
               Take&& take) {
  const ConfigNode* list = find_rows(tree, path);
  if (list == nullptr) return;
  for (const ConfigNode& node : list->rows) {
    Row row;
    Settings settings = read_keys(row, &node, path, node.origin.text());
    row.origin = node.origin;
    take(settings, row);
    loaded.rows[path].push_back(std::move(settings));
    rows.push_back(std::move(row));
  }
}

void read_backend(const ConfigNode& tree, LoadedConfig& loaded) {
  static const std::vector<std::string> own_tables = {"kernels"};
  loaded.config.backend = read_plugin_table(tree.find("backend"), "backend", loaded.file, "cpu", own_tables);
  std::vector<KernelRow>& kernels = loaded.config.kernels;
  const auto take = [&](Settings& settings, KernelRow& row) {
    row.path = absolute_file(settings.at("path"));
    std::ranges::find(settings.all(), "path", &Setting::name)->value = ConfigValue(row.path);
    for (const KernelRow& other : kernels) {
      if (other.match != row.match) continue;
      throw config_error("{}: the kernel '{}' is already replaced by the row of {}; remove one of the two.",
                         row.origin.text(), row.match, other.origin.text());
    }
  };
  read_rows(tree, "backend.kernels", loaded, kernels, take);
}

void read_mix(const ConfigNode& tree, LoadedConfig& loaded) {
  std::vector<DataMixRow>& mix = loaded.config.data.mix;
  double sum = 0;
  read_rows(tree, "data.mix", loaded, mix, [&](const Settings&, const DataMixRow& row) {
    for (const DataMixRow& other : mix) {
      if (other.name != row.name) continue;
      throw config_error(
          "{}: a row of [[data.mix]] before this one is named '{}', too; name each its own way.",
          row.origin.text(), row.name);
    }
    sum += row.weight;
  });
  if (!mix.empty() && sum <= 0) {
    throw config_error("{}: all weights of [[data.mix]] are 0, so nothing would be read; raise one.",
                       mix.front().origin.text());
  }
}

void read_initial_values(const ConfigNode& tree, LoadedConfig& loaded) {
  std::vector<InitialValuesRow>& values = loaded.config.init.values;
  const auto take = [](const Settings&, const InitialValuesRow& row) {
    if (row.scale >= 0 || row.law == InitialLaw::constant || row.law == InitialLaw::signs) return;
    throw config_error(
        "{}: scale is {}, but a standard deviation or a bound is not negative; leave out the sign.",
        row.origin.text(), row.scale);
  };
  read_rows(tree, "init.values", loaded, values, take);
  if (values.empty() || loaded.config.init.from.empty()) return;
  throw config_error("{} and rows [[init.values]] both say where the weights begin; leave one of them out.",
                     loaded.core.where("init.from"));
}

void read_quantize(const ConfigNode& tree, LoadedConfig& loaded) {
  static const std::vector<std::string> own_tables = {"tensors"};
  const ConfigNode* table = tree.find("quantize");
  if (table == nullptr) return;
  QuantizeConfig quantize;
  quantize.table =
      read_plugin_table_with(quantize.options, table, "quantize", loaded.file, "gptq", own_tables);
  config_error_if(
      quantize.options.compression == Compression::adaptive && quantize.options.streams != CodeStreams::width,
      "{}: quantize.streams is for general compressors; with quantize.compression "
      "= \"adaptive\", which knows rows and roles by itself, leave it \"width\".",
      table->origin.text());
  read_rows(tree, "quantize.tensors", loaded, quantize.tensors, take_all);
  config_error_if(quantize.tensors.empty(),
                  "{}: [quantize] has no rows [[quantize.tensors]]; add one with match = \"*\" and a format.",
                  table->origin.text());
  loaded.config.quantize = std::move(quantize);
}

LoadedConfig load_tree(ConfigNode tree, const std::string& file, std::span<const std::string> overrides,
                       std::span<const SettingsFrom> more = {}) {
  LoadedConfig loaded;
  loaded.notes = take_from_start_folder(tree);
  apply_overrides(tree, overrides, more);
  std::ranges::move(drop_stored_paths(tree), std::back_inserter(loaded.notes));
  loaded.file = file;
  loaded.core = read_keys(loaded.config, &tree, {}, file, kOpenTables);
  check_family(loaded.config, loaded.core);
  derive(loaded.config, file);
  schema_of<RunConfig>().refresh(loaded.config, loaded.core);

  read_backend(tree, loaded);
  read_mix(tree, loaded);
  read_initial_values(tree, loaded);
  read_phases(tree, loaded);
  loaded.config.loss = read_plugin_table(tree.find("loss"), "loss", file, "softcap_ce");
  loaded.config.schedule = read_plugin_table_with(loaded.config.schedule_options, tree.find("schedule"),
                                                  "schedule", file, "warmdown");
  loaded.config.communicator = read_optional_table(tree, "communicator", file);
  read_optimizers(tree, loaded);
  loaded.config.wrapper = read_optional_table(tree, "wrapper", file);
  read_rows(tree, "parameters", loaded, loaded.config.parameters, take_all);
  read_quantize(tree, loaded);
  loaded.config.ttt = read_ttt(tree.find("ttt"), file);
  if (const ConfigNode* table = tree.find("ensemble")) {
    EnsembleSection& ensemble = loaded.config.ensemble.emplace();
    ensemble.table = read_plugin_table_with(ensemble.options, table, "ensemble", file, "stochastic_rounding");
  }
  check_rules(loaded);
  return loaded;
}

}  // namespace

LoadedConfig load_run_config(const std::string& path, std::span<const std::string> overrides,
                             std::span<const SettingsFrom> more) {
  return load_tree(read_toml(path), path, overrides, more);
}

LoadedConfig parse_run_config(std::string_view text, const std::string& name,
                              std::span<const std::string> overrides) {
  return load_tree(parse_toml(text, name), name, overrides);
}

LoadedConfig parse_saved_config(std::string_view text, const std::string& name,
                                std::span<const std::string> overrides, std::span<const SettingsFrom> more) {
  return load_tree(parse_stored_toml(text, name), name, overrides, more);
}

SettingsFrom for_ranks(int64_t micro_batches) {
  return {Origin::derived("the number of ranks"), {fmt::format("train.micro_batches={}", micro_batches)}};
}

int64_t longest_segment(const RunConfig& config) {
  int64_t longest = 0;
  for (const Phase& phase : config.phases) longest = std::max(longest, phase.sequence_length);
  return longest;
}

int64_t tokens_per_pass(const RunConfig& config) {
  const int64_t tokens = tokens_per_micro_batch(config.train), parts = config.train.micro_batch_parts;
  const auto share = [parts](int64_t count) { return (count + parts - 1) / parts; };
  if (parts == 1) return tokens;
  const int64_t row = config.train.sequence_length;
  if (config.data.documents == DataDocuments::joined) return share(tokens / row) * row;
  // A part begins up to a token less than a segment before its share, and sees the token before.
  return std::min(tokens, share(tokens) + longest_segment(config));
}

int64_t horizon_steps(const RunConfig& config) {
  const int64_t steps = config.schedule_options.horizon_steps;
  return steps > 0 ? steps : config.train.steps;
}

const PluginConfig& LoadedConfig::plugin(const std::string& section) const {
  const auto it = plugins.find(section);
  if (it == plugins.end()) throw std::logic_error("the plugin table [" + section + "] has not been resolved");
  return it->second;
}

std::vector<PluginTableRef> plugin_tables(const RunConfig& config) {
  std::vector<PluginTableRef> tables = {
      {MLG_BACKEND, &config.backend}, {MLG_LOSS, &config.loss}, {MLG_SCHEDULE, &config.schedule}};
  const auto add = [&tables](mlg_kind kind, const std::optional<PluginTable>& table) {
    if (table) tables.push_back({kind, &*table});
  };
  add(MLG_COMMUNICATOR, config.communicator);
  for (const Phase& phase : config.phases) add(MLG_BACKEND, phase.backend);
  for (const OptimizerConfig& optimizer : config.optimizers) {
    tables.push_back({MLG_OPTIMIZER, &optimizer.table});
    add(MLG_SCHEDULE, optimizer.schedule);
  }
  add(MLG_WRAPPER, config.wrapper);
  if (config.quantize) tables.push_back({MLG_QUANTIZER, &config.quantize->table});
  if (config.ttt) {
    tables.push_back({MLG_TTT, &config.ttt->adapters});
    tables.push_back({MLG_OPTIMIZER, &config.ttt->optimizer});
    add(MLG_TRANSFORM, config.ttt->transform);
    add(MLG_TTT, config.ttt->base);
    add(MLG_OPTIMIZER, config.ttt->base_optimizer);
  }
  if (config.ensemble) tables.push_back({MLG_ENSEMBLE, &config.ensemble->table});
  return tables;
}

void resolve_plugins(LoadedConfig& loaded, const PluginKeySource& source) {
  loaded.plugins.clear();
  for (const PluginTableRef& ref : plugin_tables(loaded.config)) {
    std::optional<PluginKeys> found = source(ref.kind, *ref.table);
    if (!found) continue;
    if (ref.table->section == "ttt.base.optimizer") {
      found->keys = base_optimizer_keys(*ref.table, std::move(found->keys));
    }
    loaded.plugins.emplace(ref.table->section, resolve_plugin_keys(*ref.table, found->plugin, found->keys));
  }
}

namespace {

bool matches(const ParameterRow& row, const std::string& name) {
  return fnmatch(row.match.c_str(), name.c_str(), 0) == 0;
}

// A row that takes nothing is a typing error or a row in the wrong place; the sentence says which.
[[noreturn]] void refuse_idle_row(const ParameterRow& row, std::span<const std::string> names,
                                  std::span<const size_t> taken_by, std::span<const ParameterRow> rows) {
  for (size_t i = 0; i < names.size(); ++i) {
    if (!matches(row, names[i])) continue;
    throw config_error(
        "{}: the parameter row with match = \"{}\" takes no parameter, since the row \"{}\" ({}) before it "
        "takes '{}'; move it up or remove it.",
        row.origin.text(), row.match, rows[taken_by[i]].match, rows[taken_by[i]].origin.text(), names[i]);
  }
  throw config_error(
      "{}: the parameter row with match = \"{}\" matches no parameter; 'mulligan train --dry-run' "
      "lists their names.",
      row.origin.text(), row.match);
}

}  // namespace

std::vector<size_t> resolve_parameter_table(std::span<const std::string> names,
                                            std::span<const ParameterRow> rows) {
  std::vector<size_t> taken_by;
  std::vector<bool> busy(rows.size(), false);
  for (const std::string& name : names) {
    size_t row = 0;
    while (row < rows.size() && !matches(rows[row], name)) ++row;
    config_error_if(
        row == rows.size(),
        "{}: the parameter '{}' is matched by no row of [[parameters]]; add a row for it, or a last row "
        "with match = \"*\".",
        rows.empty() ? "[[parameters]]" : rows.back().origin.text(), name);
    busy[row] = true;
    taken_by.push_back(row);
  }
  for (size_t row = 0; row < rows.size(); ++row) {
    if (!busy[row]) refuse_idle_row(rows[row], names, taken_by, rows);
  }
  return taken_by;
}

}  // namespace mulligan
