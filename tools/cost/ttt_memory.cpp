#include "tools/cost/dry_run.h"

#include <algorithm>
#include <map>

#include "framework/core/error.h"
#include "framework/run/parameter_store.h"
#include "framework/run/run_plugins.h"
#include "framework/ttt/ttt_inputs.h"

namespace mulligan {
namespace {

struct Documents {
  std::vector<std::uint16_t> tokens;
  int bos_id = 1;
  bool made_up = false;
  std::string what;
};

Documents longest_documents(const TttConfig& config) {
  Documents documents;
  documents.made_up = true;
  const std::int64_t count = 2 * config.batch_documents - 1;
  for (std::int64_t document = 0; document < count; ++document) {
    documents.tokens.push_back(1);
    documents.tokens.insert(documents.tokens.end(), static_cast<std::size_t>(config.context_tokens), 2);
  }
  documents.what = fmt::format("{} documents of {} tokens (the largest batches that a text can give)", count,
                               config.context_tokens + 1);
  return documents;
}

Documents documents_of(const RunConfig& config) {
  if (config.data.validation.empty()) return longest_documents(config.ttt->config);
  try {
    ValidationSet validation = scored_validation(config);
    const std::size_t count = validation.tokens.size();
    return {std::move(validation.tokens), validation.bos_id, false,
            fmt::format("{} tokens of data.validation", count)};
  } catch (const Error&) {  // a plan needs no data
    return longest_documents(config.ttt->config);
  }
}

}  // namespace

TttMemory plan_ttt_memory(LoadedConfig& loaded, PluginHost& host) {
  resolve_run_plugins(loaded, host);
  const Documents documents = documents_of(loaded.config);
  RunConfig config = loaded.config;
  if (documents.made_up) config.ttt->config.document_fraction = 1;
  std::string note;
  RunPlugins device = device_plugins(loaded, host, note);
  std::optional<TttPlugins> device_rule;
  if (device.backend) device_rule.emplace(loaded, host, device);
  RunPlugins plugins = make_run_plugins(loaded, host, "null");
  if (device.backend) plugins.backend->act_for(*device.backend);
  const TttPlugins rule(loaded, host, plugins);
  const auto workspace = [&](const std::vector<Program*>& programs) {
    return device.backend ? std::optional(workspace_on(*device.backend, programs)) : std::nullopt;
  };

  Backend& backend = *plugins.backend;
  LoadedModel model(backend, config, base_masters(*config.ttt));
  refresh_copies(model.store(), model.layouts());
  const BaseModel base = base_model(model, config);
  std::int64_t plain_bytes = 0;
  if (config.ttt->config.on_collapse != OnCollapse::off) {
    BoundEvaluator plain(base.store, config.model, base.layouts, plain_options(config, documents.bos_id));
    plain_bytes = static_cast<std::int64_t>(backend.allocated_bytes()) +
                  workspace({&plain.evaluator.program()}).value_or(0);
  }
  const TttSetup setup = rule.setup(config);
  TttScorer run(base, setup, {documents.tokens, documents.bos_id, nullptr, {}});

  std::map<std::string, std::int64_t> tensors;
  for (const std::string& name : model.store().names()) tensors[name] = model.store().type(name).bytes();
  const std::int64_t arena =
      static_cast<std::int64_t>(backend.allocated_bytes()) - model.store().total_bytes();
  TttMemory memory{{tensors, arena, workspace(run.programs())}, documents.what};
  memory.bytes = std::max(memory.bytes, plain_bytes);
  return memory;
}

std::string format_ttt_memory(const TttMemory& memory) {
  TextLines text;
  text.line("test-time training, memory of one rank for {}:", memory.documents);
  add_memory(text, memory, "peak");
  return text.take();
}

}  // namespace mulligan
