#include "framework/ttt/ttt_session.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <utility>

#include "framework/core/directory_lock.h"
#include "framework/core/error.h"
#include "framework/core/json_file.h"
#include "framework/core/safetensors.h"
#include "framework/core/stop_request.h"
#include "framework/report/run_directory.h"
#include "framework/run/ledger.h"
#include "framework/run/plan_cache_counts.h"
#include "framework/run/run_files.h"
#include "framework/run/run_ledger.h"
#include "framework/run/run_plugins.h"
#include "framework/run/run_ranks.h"
#include "framework/run/score_state.h"
#include "framework/run/strict_rules.h"
#include "framework/ttt/ttt_inputs.h"
#include "framework/ttt/ttt_json.h"
#include "framework/ttt/ttt_scorer.h"

namespace mulligan {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view tensor_prefix = "tensor/";
constexpr double shortest_gap = 50;  // copies of a standing take at most one second of so many

// Keeps an unfinished test-time training on disk (ScoreState), and the time of all its attempts.
class TttSaver {
 public:
  // Losses without test-time training, which come first: those of the evaluation by stream position, with the next
  // row; and TttScorer::score_without(), empty before it is done.
  std::vector<float> reference, windows;
  std::size_t reference_row = 0;
  std::optional<TttStanding> standing;  // absent before the first batch is done
  Ledger clock;                         // of this attempt

  // From here on a state is kept; what `options` finds is read. Throws as ScoreState; data_error if it is no such state.
  void open(ScoreState::Options options) {
    state_.emplace(std::move(options));
    if (state_->found()) read(*state_->found());
  }

  // After each pass of the scoring without test-time training: saves if that is due.
  void passed() {
    unsaved_ = true;
    save_if_due();
  }

  // Keeps what is done in memory, unless the last such copy is so young that copying would take a noticeable share of
  // the time; else as passed().
  void between_batches(const TttScorer& run) {
    const double now = steady_seconds();
    if (state_ && now - kept_at_ >= shortest_gap * keep_seconds_) {
      standing.reset();  // its memory
      standing = run.standing();
      unsaved_ = true;
      kept_at_ = steady_seconds();
      keep_seconds_ = kept_at_ - now;
    }
    save_if_due();
  }

  // Books the time, and throws an Error of ExitCode::interrupted where a signal asks for an end.
  void between_chunks() {
    throw_if_stopping();
    if (state_) state_->book(attempt_seconds());
  }

  // After such an Error: saves what is not on disk yet, and throws the one that says where. Returns if no state is kept.
  void interrupted() {
    if (!state_) return;
    if (unsaved_) save();
    throw state_->stopped();
  }

  // Of all attempts so far, by phase.
  double seconds(const std::string& phase) {
    PhaseSeconds all = attempt_seconds();
    if (!state_) return all[phase];
    PhaseSeconds earlier = state_->earlier_seconds();
    return all[phase] + earlier[phase];
  }

  // There is a result, and the state goes.
  void finish() {
    if (state_) state_->finish();
  }

 private:
  PhaseSeconds attempt_seconds() {
    clock.close();
    return {clock.phases().begin(), clock.phases().end()};
  }

  void save_if_due() {
    between_chunks();
    if (unsaved_ && state_ && state_->due()) save();
  }

  // The losses by their names on disk.
  std::map<std::string, std::vector<float>*> losses() {
    std::map<std::string, std::vector<float>*> losses{{"reference", &reference},
                                                      {"windows_without", &windows}};
    if (standing) {
      losses["losses"] = &standing->losses;
      losses["plain_losses"] = &standing->plain_losses;
    }
    return losses;
  }

  void save() {
    Json json = {{"reference_row", reference_row}};
    std::vector<StoredTensor> tensors;
    for (const auto& [name, values] : losses())
      tensors.push_back({name, MLG_F32, {std::ssize(*values)}, std::as_bytes(std::span(*values))});
    if (standing) {
      json["standing"] = *standing;
      for (const auto& [name, bytes] : standing->tensors)
        tensors.push_back({std::string(tensor_prefix) + name, MLG_U8, {std::ssize(bytes)}, bytes});
    }
    state_->save(tensors, {{"ttt", json.dump()}}, attempt_seconds());
    unsaved_ = false;
  }

  void read(const SafetensorsFile& file) {
    read_as_written(file.path(), "start without --resume", [&] {
      const Json json = parse_json<Json>(file.metadata().at("ttt"));
      reference_row = json.at("reference_row");
      if (json.contains("standing")) standing = json.at("standing").get<TttStanding>();
      for (const auto& [name, values] : losses()) *values = file.at(name).copy<float>();
      for (const StoredTensor& tensor : file.tensors()) {
        if (standing && tensor.name.starts_with(tensor_prefix))
          standing->tensors[tensor.name.substr(tensor_prefix.size())] = {tensor.bytes.begin(),
                                                                         tensor.bytes.end()};
      }
    });
  }

  std::optional<ScoreState> state_;
  bool unsaved_ = false;     // there is what the disk has not
  double kept_at_ = 0;       // when the last copy was made, and
  double keep_seconds_ = 0;  // what it took
};

// [ttt] lanes, for so many ranks. Throws config_error where there are fewer lanes than ranks.
std::int64_t lanes_for(const LoadedConfig& loaded, int world_size) {
  const std::int64_t lanes = loaded.config.ttt->config.lanes;
  config_error_if(
      lanes > 0 && lanes < world_size,
      "{} is {}, but there are {} ranks, and some would have nothing to do; set it to at least that, "
      "or start fewer.",
      loaded.config.ttt->settings.where("lanes"), lanes, world_size);
  return lanes > 0 ? lanes : world_size;
}

// One run, from its checks to its result.
class TttSession {
 public:
  TttSession(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin, const TttOptions& options,
             RunRanks& ranks)
      : loaded_(loaded),
        config_(loaded.config),
        ttt_(loaded.config.ttt->config),
        host_(host),
        origin_(origin),
        options_(options),
        ranks_(ranks),
        lanes_(lanes_for(loaded, ranks.group().world_size())) {
    saver_.clock.enter("ttt_setup");
    require_scorable(loaded);
    if (ranks.first()) files_.directory = options.directory;
    if (!files_.directory.empty()) {
      lock_.emplace(files_.directory, "ttt");
      remove_temporary_leftovers(files_.directory);
    }
    if (!ttt_.audit.empty() && ranks.first()) {
      files_.audit = files_.directory / ttt_.audit;
      require_audit_file(files_.audit);
    }
    validation_ = scored_validation(config_);
    require_strict_validation(config_, validation_);
  }

  TttResult run(const WeightLoader& load) {
    try {
      return score(load);
    } catch (const InvalidRun& reason) {
      // No score, none of an earlier run that could be taken for its own, and no state that could be continued.
      saver_.finish();
      if (!files_.directory.empty())
        write_file_atomically(RunFiles{files_.directory}.ttt_result(),
                              Json({{"void", true}, {"reason", reason.what()}}).dump(1) + "\n");
      throw;
    } catch (const Error& error) {
      if (error.code() == ExitCode::interrupted) saver_.interrupted();
      throw;
    }
  }

 private:
  TttResult score(const WeightLoader& load) {
    resolve_run_plugins(loaded_, host_, PluginUse::adapt);
    ranks_.require_same_run(loaded_, host_);
    RunPlugins plugins = make_backend_plugin(loaded_, host_);
    Backend& backend = *plugins.backend;
    require_computing(backend, "nothing can be scored");
    const TttPlugins rule(loaded_, host_, plugins);
    RunLog log(options_, fs::path());
    introduce(backend, log);

    LoadedModel weights(backend, config_, base_masters(*config_.ttt));
    weights.load(load);
    const BaseModel model = base_model(weights, config_);
    const std::unique_ptr<Communicator> communicator = open_state(backend, weights);
    // Books what `work` takes until the device has ended it.
    const auto timed = [&](const char* phase, const auto& work) {
      saver_.clock.enter(phase);
      work();
      backend.synchronize();
      saver_.clock.enter("ttt_setup");
    };
    const bool compares = ttt_.on_collapse != OnCollapse::off;
    if (compares) {
      BoundEvaluator plain(model.store, config_.model, model.layouts,
                           plain_options(config_, validation_.bos_id));
      timed("ttt_plain", [&] { score_evaluation(plain.evaluator, log); });
    }
    // Its tensors are uploaded once; the copy here goes with the end of the set-up.
    const std::optional<TttStanding> standing = std::exchange(saver_.standing, std::nullopt);
    const std::size_t done = standing ? standing->done.size() : 0;
    if (standing) log.print("continues after {} batches", done);

    TttSetup setup = rule.setup(config_);
    setup.lanes = lanes_;
    setup.communicator = communicator.get();
    files_.log = &log;
    TttOutputs outputs(files_, ttt_, standing ? &*standing : nullptr);
    std::optional<TttScorer> scorer;
    {
      Progress planning(&log, ProgressPhase{.what = "planning test-time training", .ticks = true});
      scorer.emplace(model, setup, TttData{validation_.tokens, validation_.bos_id, validation_.counter(), {}},
                     &outputs);
    }
    scorer->at_boundaries([&] { saver_.between_batches(*scorer); },
                          [&] {
                            note_step();
                            saver_.between_chunks();
                          });
    if (const int count = ranks_.group().world_size(); lanes_ > 1)
      log.print("{} lanes of batches on {}", lanes_,
                count == 1 ? "one rank" : fmt::format("{} ranks", count));
    if (compares) {
      scorer->merge(saver_.reference);
      if (saver_.windows.empty()) {  // no earlier attempt has scored them
        timed("ttt_plain", [&] { saver_.windows = scorer->score_without(); });
        saver_.passed();
      }
      scorer->compare_with(saver_.windows);
    }

    outputs.begin(*scorer, done);
    PlanCacheCounts made(std::vector<const Backend*>{&backend});
    TttResult result;
    backend.synchronize();
    made.clock_starts();
    timed("ttt", [&] { result.report = scorer->run(standing ? &*standing : nullptr); });
    made.clock_stops();
    outputs.end();
    result.made = made.counts(ranks_.group());
    if (!ranks_.first()) return result;
    fill_totals(*scorer, backend, result);
    outputs.finish(result, *config_.ttt);
    saver_.finish();
    const RunLedger ledger = close_entry(ledger_entry(result), files_.directory, config_.ledger, log);
    log.result("\n" + ledger_table(config_.ledger, ledger));
    return result;
  }

  // What is scored, on what, by which score transform, and that it may be.
  void introduce(const Backend& backend, RunLog& log) {
    ranks_.require_same_data(validation_.data);
    if (!validation_.note.empty()) log.line(validation_.note);
    if (!validation_.byte_note.empty()) log.line(validation_.byte_note);
    for (const std::string& note : require_data_of(origin_, validation_.data, config_.data)) log.line(note);
    require_equal_scored_bytes();
    log.print("test-time training on {} tokens with '{}' on {}", validation_.tokens.size() - 1, origin_.name,
              backend.info().description);
    if (config_.ttt->transform && config_.ttt->transform_order == TransformOrder::file) {
      log.print(
          "warning: ttt.transform.text_order = \"file\" is the published record's way and contested: "
          "proposals know documents that are scored later; \"queue\" and \"document\" do not");
    }
  }

  // Positions of the targets that are scored: all from the first document on, or those of each chosen document.
  std::vector<TargetRange> scored_ranges() const {
    const DocumentPlan plan = plan_documents(validation_.tokens, validation_.bos_id, ttt_);
    if (ttt_.document_fraction == 1.0) return {{plan.documents[0].start + 1, std::ssize(validation_.tokens)}};
    std::vector<TargetRange> ranges;
    for (const PlannedBatch& batch : plan.queue)
      std::ranges::copy(plan.ranges(batch), std::back_inserter(ranges));
    return ranges;
  }

  // Counts the bytes of all tokens that will be scored by the byte table and by decoding. Throws data_error when the two
  // differ: bits per byte could not be given, and hours of scoring would be lost.
  void require_equal_scored_bytes() {
    if (!validation_.counts_pieces) return;
    for (const TargetRange& range : scored_ranges()) {
      const auto tokens = static_cast<std::uint64_t>(range.count());
      const auto scored = std::span<const std::uint16_t>(validation_.tokens)
                              .subspan(static_cast<std::size_t>(range.first - 1), tokens + 1);
      const std::uint64_t bytes = validation_.tokenizer_counter->count(scored);
      require_equal_bytes(validation_, EvalSums{{0, tokens, bytes}, range.first, range.last - 1, {}});
    }
  }

  // A single rank keeps its state from here on, several check that they score the same and connect.
  std::unique_ptr<Communicator> open_state(Backend& backend, LoadedModel& weights) {
    if (ranks_.alone() && files_.directory.empty()) return nullptr;
    const ScoreIdentity identity = score_identity(loaded_, ScoreCommand::ttt, host_, weights.store(),
                                                  weights.layouts(), validation_.tokens);
    if (ranks_.alone()) {
      saver_.open({files_.directory / "ttt.state", identity, config_.eval.save_seconds, options_.resume});
      return nullptr;
    }
    ranks_.require_same(identity);
    return ranks_.communicator(loaded_, host_, backend);
  }

  // The evaluation, which test-time training is reported next to, as far as no earlier attempt has scored it; of
  // several ranks each has a share, and they exchange these.
  void score_evaluation(Evaluator& evaluator, RunLog& log) {
    saver_.reference.resize(validation_.tokens.size());
    const auto total = static_cast<double>(validation_.tokens.size() - 1);
    Progress progress(&log, {.what = "scoring without adapters", .unit = "tokens", .total = total});
    const auto passed = [&](const EvalPosition& position, std::size_t rows) {
      saver_.reference_row = position.row;
      progress.set(total * static_cast<double>(position.row) / static_cast<double>(rows));
      note_step();
      saver_.passed();
    };
    const auto keep = [&](const EvalSpan& span, std::span<const float> row, std::span<const float>) {
      std::ranges::copy(row, saver_.reference.begin() + span.start + 1);
    };
    evaluator.score(validation_.tokens, nullptr, ranks_.group().world_size(), ranks_.group().rank(), keep,
                    passed, {saver_.reference_row, {}});
  }

  void note_step() {
    ranks_.note_step();
    ranks_.require_running();
  }

  void fill_totals(const TttScorer& scorer, const Backend& backend, TttResult& result) {
    const auto finished = [&](const ScoreSums& sums, const char* phase, bool of_all_tokens) {
      EvalResult score = eval_result(sums, saver_.seconds(phase));
      score.data = validation_.data;
      if (!of_all_tokens) return score;
      for (const TargetRange& range : scored_ranges())
        add_byte_rules(validation_, range.first, range.last - 1, score);
      return score;
    };
    const TttReport& report = result.report;
    result.weights = origin_.name;
    result.weights_sha256 = origin_.sha256;
    result.device = backend.info().description;
    result.peak_device_memory_bytes = static_cast<std::int64_t>(backend.peak_allocated_bytes());
    result.setup_seconds = saver_.seconds("ttt_setup");
    result.with = finished(report.sums, "ttt", true);
    if (report.compared.without.tokens == 0) return;
    const DocumentPlan& plan = scorer.documents();
    ScoreSums evaluated;
    for (const PlannedBatch& batch : plan.queue) {
      for (const TargetRange& range : plan.ranges(batch))
        evaluated += scorer.book().sums_of(saver_.reference, range);
    }
    result.evaluation = finished(evaluated, "ttt_plain", true);
    result.without =
        finished(report.compared.without, "ttt_plain", report.compared.without.tokens == result.with.tokens);
  }

  LedgerEntry ledger_entry(const TttResult& result) const {
    const bool quantised = options_.quantised;
    LedgerEntry entry;
    entry.stage = LedgerStage::ttt;
    entry.seconds.emplace_back("ttt_setup", result.setup_seconds);
    if (result.evaluation) entry.seconds.emplace_back("ttt_plain", result.evaluation->seconds);
    entry.seconds.emplace_back("ttt", result.with.seconds);
    if (quantised) entry.bytes.emplace_back("artifact_scored", fs::file_size(result.weights));
    if (quantised && result.evaluation) entry.scores.emplace_back("after quantisation", *result.evaluation);
    if (result.without) entry.scores.emplace_back("windows without adaptation", *result.without);
    entry.scores.emplace_back(quantised ? "after test-time training" : "test-time training, not quantised",
                              result.with);
    return entry;
  }

  LoadedConfig& loaded_;
  const RunConfig& config_;
  const TttConfig& ttt_;
  PluginHost& host_;
  const WeightOrigin& origin_;
  const TttOptions& options_;
  RunRanks& ranks_;
  std::int64_t lanes_;
  TttOutputs::Files files_;  // of the first rank
  TttSaver saver_;
  std::optional<DirectoryLock> lock_;
  ValidationSet validation_;
};

}  // namespace

TttResult run_ttt(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                  const WeightLoader& load, const TttOptions& options, RunRanks* ranks) {
  RunRanks alone;
  config_error_if(!loaded.config.ttt,
                  "{}: there is no [ttt] section, which says how test-time training is done; add one.",
                  loaded.file);
  config_error_if(ranks && !ranks->alone() && options.resume,
                  "test-time training by several ranks keeps no state; leave out --resume.");
  return TttSession(loaded, host, origin, options, ranks ? *ranks : alone).run(load);
}

}  // namespace mulligan
