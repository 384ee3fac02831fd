#include "tools/doctor/examine.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <string_view>

#include "framework/data/shard.h"
#include "framework/run/loaded_model.h"
#include "framework/run/run_plugins.h"
#include "framework/run/training_data.h"
#include "framework/run/weights.h"
#include "framework/step/optimizer_groups.h"
#include "framework/step/phase_progress.h"
#include "tools/doctor/corpus_checks.h"
#include "tools/doctor/load_checks.h"
#include "tools/doctor/model_checks.h"
#include "tools/doctor/outcome_checks.h"

namespace mulligan::doctor {
namespace {

constexpr std::int64_t examined_tokens = 256;

class Examiner {
 public:
  Examiner(const LoadedConfig& loaded, PluginHost& host, const Examination& wanted)
      : loaded_(loaded), config_(loaded.config), host_(host), wanted_(wanted) {}

  std::vector<Finding> run() {
    // What else reads weights would end with a sentence about the first that is wrong.
    if (asked("load") && !wanted_.weights.empty() && !load()) return std::move(found_);
    if (asked("data")) data();
    const auto computing = {"loss", "weights", "forward", "train"};
    if (std::ranges::none_of(computing, [&](const char* stage) { return asked(stage); }))
      return std::move(found_);
    plugins_ = make_run_plugins(loaded_, host_);
    if (!plugins_.backend->info().computes) {
      found_.push_back({"D01", "loss of equal logits", CheckOutcome::skip, "not computed", "",
                        "the backend computes nothing", "choose one that does, --set backend.plugin=cpu"});
      return std::move(found_);
    }
    if (asked("loss"))
      add(check_loss_values(*plugins_.backend, *plugins_.loss, vocabulary(), config_.model.softcap,
                            compute()));
    if (asked("weights") || asked("forward")) weights_ = read_weights();
    if (asked("weights")) {
      const bool given = !wanted_.weights.empty();
      add(check_weights(model_parameters(config_.model), weights_,
                        given ? WeightOrigins::trained : WeightOrigins::drawn));
    }
    if (asked("forward")) forward();
    if (asked("train")) train();
    return std::move(found_);
  }

 private:
  bool asked(std::string_view stage) const {
    return wanted_.stages.empty() || std::ranges::find(wanted_.stages, stage) != wanted_.stages.end();
  }
  void add(std::vector<Finding> more) { std::ranges::move(more, std::back_inserter(found_)); }
  int vocabulary() const { return static_cast<int>(config_.model.vocabulary); }
  ComputeTypes types() const { return compute_types(config_.phases.front()); }
  DType compute() const { return types().activations; }

  // D03, D04 and D08: loads the weights as scoring does and reads them back from the run's backend. Returns false if one failed.
  bool load() {
    const SafetensorsFile file(wanted_.weights);
    const std::filesystem::path published = wanted_.weights.parent_path() / "config.json";
    std::optional<PublishedModel> model;
    if (config_.model.family == ModelFamily::qwen2 && std::filesystem::exists(published))
      model = read_qwen2_config(published);
    found_.push_back(check_coverage(file, model_parameters(config_.model)));
    found_.push_back(check_architecture(file, config_.model, model));
    std::vector<LoadedTensor> tensors;
    if (found_.front().verdict == CheckOutcome::pass) {
      const RunPlugins plugins = make_backend_plugin(loaded_, host_);
      if (!plugins.backend->info().computes) {
        found_.push_back({"D04", "bits of the source", CheckOutcome::skip, "not made", "",
                          "the backend holds no numbers", "choose one that does, --set backend.plugin=cpu"});
        return worst(found_) != CheckOutcome::fail;
      }
      tensors = read_back(*plugins.backend);
    }
    found_.push_back(check_source_bits(file, tensors));
    return worst(found_) != CheckOutcome::fail;
  }

  std::vector<LoadedTensor> read_back(Backend& backend) const {
    LoadedModel model(backend, config_);
    model.load([&](TensorStore& store, const std::vector<ParameterLayout>& layouts) {
      load_weights(wanted_.weights, store, layouts);
    });
    std::vector<LoadedTensor> tensors;
    for (const ParameterLayout& layout : model.layouts()) {
      const TensorType& type = model.store().type(layout.read_name());
      LoadedTensor& tensor = tensors.emplace_back(
          layout.spec.name, type.dtype, std::vector<std::byte>(static_cast<std::size_t>(type.bytes())));
      model.store().download(layout.read_name(), tensor.bytes);
    }
    return tensors;
  }

  void data() {
    std::optional<Tokenizer> tokenizer;
    if (!config_.data.tokenizer.empty()) tokenizer = Tokenizer::load(config_.data.tokenizer);
    const auto training = find_shards(training_patterns(config_.data), DataSplit::train);
    const auto validation = find_shards({config_.data.validation}, DataSplit::validation);
    const bool joined = config_.data.documents == DataDocuments::joined;
    const int bos_id = joined ? -1 : tokenizer ? tokenizer->bos_id() : 1;
    SeenData seen = see_data(
        {training, validation, vocabulary(), tokenizer ? &*tokenizer : nullptr, wanted_.tokens, bos_id});
    add(std::move(seen.findings));
    found_.push_back(
        check_overlap(measure_text_overlap(training, validation, tokenizer ? &*tokenizer : nullptr)));
    if (tokenizer) found_.push_back(check_tokenizer(*tokenizer));
    // D20 reports tokens beyond the vocabulary. A loader refuses such data.
    readable_ = std::ranges::none_of(
        found_, [](const Finding& f) { return f.id == "D20" && f.verdict == CheckOutcome::fail; });
    if (!readable_) return;
    const LoaderOptions options = loader_options(config_, unchecked_training_data(config_), 0, 1);
    Loader loader(options);
    std::vector<Batch> rows(4);
    for (Batch& row : rows) loader.next(row);
    found_.push_back(options.masking ? check_masked_targets(rows, *options.masking)
                                     : check_targets(rows, seen.repeat_share));
    found_.push_back(check_end_of_data(options, config_.train.steps * config_.train.micro_batches));
  }

  // Returns a row of the training data, or random tokens if the data cannot be loaded.
  Batch text_row(std::int64_t tokens) const {
    if (!readable_) return drawn_row({tokens}, config_.model.vocabulary, 12);
    const LoaderOptions options = loader_options(config_, unchecked_training_data(config_), 0, 1);
    Loader loader(options);
    Batch row;
    loader.next(row);
    return cut_row(row, std::min<std::int64_t>(tokens, static_cast<std::int64_t>(row.tokens.size())),
                   options.masking);
  }

  Weights read_weights() const {
    if (wanted_.weights.empty())
      return initial_weights(config_.model, static_cast<std::uint64_t>(config_.run.seed));
    return weights_from(*plugins_.backend, config_, [&](TensorStore& store, const auto& layouts) {
      load_weights(wanted_.weights, store, layouts);
    });
  }

  void forward() {
    Backend& backend = *plugins_.backend;
    const Batch row = text_row(examined_tokens);
    EvaluationProbe evaluation(backend, config_, types(), weights_, row);
    found_.push_back(check_memory(evaluation, backend.repeats()));
    if (wanted_.weights.empty()) {
      found_.push_back(
          judge_initial_loss(evaluation.mean_loss(), config_.model, model_parameters(config_.model)));
    } else {
      const auto shards = find_shards(training_patterns(config_.data), DataSplit::train);
      const double entropy =
          token_statistics(sample_tokens(shards, wanted_.tokens), vocabulary()).bigram_nats;
      found_.push_back(
          judge_trained_loss(evaluation.mean_loss(), vocabulary(), loss_floor(config_.model, entropy)));
    }
    found_.push_back(judge_logits(evaluation.logits(), config_.model, wanted_.weights.empty()));
    found_.push_back(
        check_modes(backend, *plugins_.loss, config_, types(), weights_, row, evaluation.mean_loss()));
    const RunPlugins reference = make_backend_plugin(loaded_, host_, "cpu");
    add(check_forward(backend, *reference.backend, config_, types()));
    found_.push_back(check_neighbours(backend, config_, types()));
    found_.push_back(check_order(backend, evaluation, backend.repeats()));
    found_.push_back(check_evaluated_mean(backend, config_, weights_));
    OptimizerGroups groups(config_, plugins_, plan_parameters(config_));
    found_.push_back(check_precision(backend, compute(), groups));
  }

  void train() {
    found_.push_back(check_gradients(*plugins_.backend, *plugins_.loss, config_));
    rates();
    constexpr std::int64_t learned_tokens = 64;
    add(check_training(loaded_, host_, text_row(learned_tokens)));
  }

  // Checks the learning rates of a whole run, phase by phase.
  void rates() {
    OptimizerGroups groups(config_, plugins_, plan_parameters(config_));
    constexpr int points = 1000;
    std::vector<std::vector<RatePoint>> seen(groups.groups().size());
    std::size_t phase = 0;
    PhaseStart start;
    for (int point = 0; point <= points; ++point) {
      const double progress = static_cast<double>(point) / points;
      const std::int64_t step = std::llround(progress * static_cast<double>(config_.train.steps));
      const double elapsed = progress * config_.train.budget_seconds;
      const std::size_t now = phase_at(config_.phases, phase, step, progress, elapsed);
      if (now != phase) start = {step, progress, elapsed, progress};
      phase = now;
      const Phase& present = config_.phases[phase];
      const mlg_progress of_run = run_progress(config_, step, progress, progress);
      groups.set_rates(phase_progress(config_, phase, start, of_run, elapsed), present.lr_multiplier);
      for (std::size_t i = 0; i < seen.size(); ++i) {
        const OptimizerGroup& group = groups.groups()[i];
        seen[i].push_back({progress, group.rate.lr, group.rate.cycle, phase, present.lr_multiplier,
                           present.lr_policy != LrPolicy::continued});
      }
    }
    for (std::size_t i = 0; i < seen.size(); ++i)
      found_.push_back(check_rates(groups.groups()[i].name, seen[i]));
  }

  const LoadedConfig& loaded_;
  const RunConfig& config_;
  PluginHost& host_;
  const Examination& wanted_;
  RunPlugins plugins_;
  Weights weights_;
  bool readable_ = true;  // whether a loader accepts the training data
  std::vector<Finding> found_;
};

}  // namespace

std::vector<Finding> examine(const LoadedConfig& loaded, PluginHost& host, const Examination& wanted) {
  return Examiner(loaded, host, wanted).run();
}

}  // namespace mulligan::doctor
