#include "tools/doctor/model_checks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>

#include "framework/checkpoint/checkpoint_writer.h"
#include "framework/core/error.h"
#include "framework/core/temporary_path.h"
#include "framework/step/loss_scaler.h"
#include "framework/step/own_engine.h"
#include "framework/step/snapshot.h"

namespace mulligan::doctor {

namespace {

// The configuration with steps of one row of `tokens` tokens, all in its last phase, on [backend].
RunConfig shortened(RunConfig config, std::int64_t tokens) {
  config.train.micro_batches = 1;
  config.train.tokens_per_step = tokens;
  config.train.sequence_length = tokens;
  Phase phase = config.phases.back();
  phase.until = {};
  phase.micro_batches = 1;
  phase.sequence_length = tokens;
  phase.backend.reset();
  phase.lr_policy = LrPolicy::continued;
  phase.reset_optimizer = false;
  config.phases = {phase};
  return config;
}

// A few steps of a run's own training on short rows. Nothing of them lasts.
class Rehearsal : public OwnEngine {
 public:
  // Plugins of `loaded`, with the initial weights of the run's seed. `config` is shortened() from that of `loaded`.
  Rehearsal(const LoadedConfig& loaded, const RunConfig& config, PluginHost& host)
      : OwnEngine(config, "backend", make_run_plugins(loaded, host), 4),
        config_(config),
        loss_scaler_(config.loss_scale) {
    engine.initialise(static_cast<std::uint64_t>(config.run.seed));
  }

  // Step `number`, from 1, on this row, with the rates at a third of the run. Returns the row's loss
  // before it, in nats.
  double step(std::int64_t number, const Batch& row) {
    // Past warm-up and before decay in any usual schedule.
    constexpr double share = 0.3;
    groups.set_rates({30, 100, share, share});
    const auto row_again = [&]() -> const Batch& { return row; };
    const Phase& phase = config_.phases.back();
    do {
      engine.set_loss_scale(loss_scaler_.scale(phase));
    } while (!engine.step(number, row_again) && loss_scaler_.note(false));
    engine.record_metrics(number - 1);
    return engine.read_metrics(number - 1, number).front().loss_sum_nats /
           static_cast<double>(row.target_count());
  }
  std::string digest() { return state_digest(engine.store(), engine.whole_state(), ""); }

 private:
  const RunConfig& config_;
  LossScaler loss_scaler_;
};

constexpr const char* look_at_loader =
    "what is not text of the shards must not be learned from; look at the loader";
constexpr int overfit_steps = 100;
constexpr int repeated_steps = 3;

std::vector<double> losses_of(Rehearsal& rehearsal, const Batch& row, int steps) {
  std::vector<double> losses;
  for (int i = 1; i <= steps; ++i) losses.push_back(rehearsal.step(i, row));
  return losses;
}

Finding overfit(const LoadedConfig& loaded, const RunConfig& config, PluginHost& host, const Batch& row) {
  Rehearsal rehearsal(loaded, config, host);
  const std::vector<double> losses = losses_of(rehearsal, row, overfit_steps);
  return judge_overfit(losses.front(), rehearsal.engine.probe_loss(row), overfit_steps);
}

// D34
Finding repeated(Rehearsal& first, const std::vector<double>& first_losses, Rehearsal& second,
                 const Batch& row) {
  Finding f = begin_finding("D34", "the same three steps twice",
                            "any bit fails, where the backend promises to repeat them");
  const std::vector<double> again = losses_of(second, row, repeated_steps);
  const bool same_losses = first_losses == again, same_state = first.digest() == second.digest();
  const bool promised = first.plugins.backend->repeats();
  f.measured = fmt::format("losses {}, state {}; repeated bits are {}", same_losses ? "the same" : "differ",
                           same_state ? "the same" : "differs", promised ? "promised" : "not promised");
  if ((same_losses && same_state) || !promised) return f;
  return failed(
      std::move(f),
      fmt::format("two runs of the same steps differ in {}, though the backend promises the same bits",
                  same_losses ? "the state of training" : "their losses"),
      "a kernel reads what was not written, or adds up in another order each time: --stage forward, mulligan "
      "plugins check");
}

bool damaged_is_refused(const std::filesystem::path& checkpoint) {
  const std::filesystem::path file = checkpoint / checkpoint_tensors_file;
  {
    std::fstream stream(file, std::ios::in | std::ios::out | std::ios::binary);
    stream.seekg(-1, std::ios::end);
    const int last = stream.get();
    stream.seekp(-1, std::ios::end);
    stream.put(static_cast<char>(last ^ 1));
  }
  try {
    open_checkpoint(checkpoint);
  } catch (const Error&) {
    return true;
  }
  return false;
}

// D30 and D35
std::vector<Finding> kept(Rehearsal& trained, const LoadedConfig& loaded, const RunConfig& config,
                          PluginHost& host, const Batch& row) {
  Finding state =
      begin_finding("D30", "state of training after saving and on another device", "any bit fails");
  Finding checkpoint = begin_finding("D35", "checkpoint: written, read, damaged",
                                     "any bit of the loss fails; damage must be refused");
  const std::string before = trained.digest();
  Rehearsal moved(loaded, config, host), read(loaded, config, host);
  StateSnapshot(trained.engine.store(), trained.engine.state_tensors()).restore_to(moved.engine.store());
  const bool same_moved = moved.digest() == before;

  const TemporaryPath folder(make_private_folder());
  CheckpointWriter writer(folder.path(), 1);
  CheckpointManifest manifest;
  manifest.step = repeated_steps;
  manifest.run = loaded.config.run.name;
  writer.begin(manifest, trained.engine.store(), trained.engine.gather_state());
  const std::filesystem::path path = writer.finish().value();
  const std::vector<StateTensor> tensors = read.engine.whole_state();
  restore_tensors(open_checkpoint(path), read.engine.store(), tensors);
  read.engine.share_state(tensors);
  read.engine.refresh_copies();
  const bool same_read = read.digest() == before;
  state.measured = fmt::format("sha256 {}; moved: {}, read: {}", before.substr(0, 12),
                               same_moved ? "the same" : "another", same_read ? "the same" : "another");
  if (!same_moved || !same_read) {
    state.note(
        CheckOutcome::fail,
        fmt::format("the state of training is another after it was {}",
                    same_moved ? "saved and read" : "moved to another device"),
        "a resumed run would be another run: look at the backend's transfers and at the optimisers' states");
  }

  const double loss_before = trained.engine.probe_loss(row), loss_after = read.engine.probe_loss(row);
  const bool refused = damaged_is_refused(path);
  checkpoint.measured = fmt::format("{:.9g} and {:.9g} nats; a changed byte is {}", loss_before, loss_after,
                                    refused ? "refused" : "taken");
  if (loss_before != loss_after || !refused) {
    checkpoint.note(CheckOutcome::fail,
                    refused ? fmt::format("a row has {:.9g} nats before saving and {:.9g} after reading",
                                          loss_before, loss_after)
                            : "a checkpoint with a changed byte was taken for a sound one",
                    "do not continue runs from checkpoints until this is fixed");
  }
  return {state, checkpoint};
}

}  // namespace

Finding judge_overfit(double first_nats, double last_nats, int steps) {
  Finding f =
      begin_finding("D32", "one row learned by heart", "fails above a tenth of the first loss, and below 0");
  f.measured = fmt::format("{:.4f} nats, after {} steps {:.4f}", first_nats, steps, last_nats);
  return judged(
      std::move(f), judge(last_nats, {-1e-6, 0.1 * first_nats}),
      fmt::format("{} steps on one and the same row left its loss at {:.4f} of {:.4f} nats", steps, last_nats,
                  first_nats),
      "look at gradients (D13) and learning rates; a model that cannot learn one row learns no corpus");
}

std::vector<Finding> check_training(const LoadedConfig& loaded, PluginHost& host, const Batch& row) {
  const RunConfig config = shortened(loaded.config, static_cast<std::int64_t>(row.tokens.size()));
  std::vector<Finding> findings;
  {
    Rehearsal first(loaded, config, host), second(loaded, config, host);
    const std::vector<double> losses = losses_of(first, row, repeated_steps);
    findings.push_back(repeated(first, losses, second, row));
    for (Finding& finding : kept(first, loaded, config, host, row)) findings.push_back(std::move(finding));
  }
  findings.push_back(overfit(loaded, config, host, row));
  return findings;
}

Finding check_targets(const std::vector<Batch>& rows, double repeat_share) {
  std::size_t positions = 0, wrong = 0, copies = 0, all = 0;
  std::size_t wrong_row = 0, wrong_at = 0;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    const Batch& row = rows[r];
    const std::size_t piece =
        row.piece_tokens > 0 ? static_cast<std::size_t>(row.piece_tokens) : row.tokens.size();
    for (std::size_t t = 0; t < row.tokens.size(); ++t) {
      ++all;
      copies += row.targets[t] == row.tokens[t];
      if ((t + 1) % piece == 0) continue;  // its target is not in the row
      ++positions;
      if (row.targets[t] == row.tokens[t + 1]) continue;
      if (wrong++ > 0) continue;
      wrong_row = r;
      wrong_at = t;
    }
  }
  const double share = all == 0 ? 0 : static_cast<double>(copies) / static_cast<double>(all);
  // Short rows scatter.
  const double most = std::min(0.5, 3 * repeat_share + 0.05);
  Finding f = begin_finding(
      "D19", "targets of the training rows",
      fmt::format("any other than the next token fails; fails above {:.1f} % copies", 100 * most));
  f.measured = fmt::format(
      "{} of {} targets are not the next token; {:.2f} % equal their input, {:.2f} % of the corpus repeat",
      wrong, positions, 100 * share, 100 * repeat_share);
  const bool copied = share > most;
  if (wrong == 0 && !copied) return f;
  return failed(std::move(f),
                copied ? fmt::format("targets equal inputs: {:.1f} % of them", 100 * share)
                       : fmt::format("the target at position {} of row {} is {}, but the next token is {}",
                                     wrong_at, wrong_row, rows[wrong_row].targets[wrong_at],
                                     rows[wrong_row].tokens[wrong_at + 1]),
                "targets must be the inputs one position on; a loss on anything else says nothing");
}

Finding check_masked_targets(const std::vector<Batch>& rows, const MaskingOptions& masking) {
  std::int64_t targets = 0, wanted = 0, masked = 0, visible = 0, elsewhere = 0;
  for (const Batch& row : rows) {
    std::int64_t starts = 0;  // of documents, which are never chosen
    for (std::size_t t = 0; t < row.tokens.size(); ++t) {
      const bool target = row.targets[t] >= 0;
      targets += target;
      masked += target && row.tokens[t] == masking.token;
      visible += target && row.tokens[t] == row.targets[t];
      elsewhere += !target && row.tokens[t] == masking.token;
      starts += (target ? row.targets[t] : row.tokens[t]) == masking.bos_id;
    }
    const auto tokens = static_cast<std::int64_t>(row.tokens.size());
    wanted += std::min(chosen_tokens(masking.share, tokens), tokens - starts);
  }
  const auto share_of_targets = [&](std::int64_t count) {
    return targets == 0 ? 0 : static_cast<double>(count) / static_cast<double>(targets);
  };
  const double shown = 1 - masking.mask_share - masking.random_share,
               most = shown + 0.05 + 3 / std::sqrt(static_cast<double>(std::max<std::int64_t>(targets, 1)));
  Finding f = begin_finding("D19", "targets of the training rows",
                            fmt::format("another number fails; fails above {:.1f} % visible", 100 * most));
  f.measured =
      fmt::format("{} targets, {} wanted; {:.1f} % of them are the mask token, {:.1f} % stay visible",
                  targets, wanted, 100 * share_of_targets(masked), 100 * share_of_targets(visible));
  if (targets == wanted && elsewhere == 0 && share_of_targets(visible) <= most) return f;
  return failed(std::move(f),
                targets != wanted ? fmt::format("{} tokens of the rows are targets, not {}", targets, wanted)
                : elsewhere > 0   ? fmt::format("{} tokens are hidden and are not targets", elsewhere)
                                  : fmt::format("{} of {} targets can be read off the row", visible, targets),
                "a model that sees what it shall fill in learns to copy; look at the loader");
}

Finding check_end_of_data(const LoaderOptions& shown, std::int64_t planned_spans) {
  Finding f = begin_finding("D31", "end of the training data",
                            "fails where the row after the last is not the first again");
  LoaderOptions options = shown;
  options.masking.reset();  // of the text itself: what is hidden of a row differs each time it is read
  Loader loader(options);
  const std::int64_t spans = loader.spans_per_epoch();
  const std::int64_t group =
      std::max<std::int64_t>(loader.options().group_spans, loader.options().world_size);
  Batch first, row;
  loader.next(first);
  loader.restore(
      loader.position_after((spans - 1) / group * group));  // a shuffled pass may end within a group
  for (std::int64_t i = 0; i < group / loader.options().world_size; ++i) loader.next(row);
  if (options.order == DataOrder::stream) {
    f.threshold = "fails where there is a row after the last";
    f.measured = fmt::format("{} rows, read once", spans);
    try {
      loader.next(row);
    } catch (const Error&) {
      return f;
    }
    return failed(std::move(f), "a stream, which is read once, goes on after the end of the data",
                  look_at_loader);
  }
  const bool shuffled = options.order == DataOrder::shuffled;  // each pass begins with a row of its own
  if (shuffled) f.threshold = "fails where the row after the last is not counted";
  loader.next(row);
  f.measured = fmt::format("{} rows in one pass{}", spans,
                           planned_spans > 0
                               ? fmt::format(", {:.2f} passes planned",
                                             static_cast<double>(planned_spans) / static_cast<double>(spans))
                               : "");
  const bool same = shuffled || (row.tokens == first.tokens && row.targets == first.targets);
  const bool counted = loader.position().consumed_spans >= spans;
  if (same && counted) return f;
  return failed(std::move(f),
                same ? "the row after the end of the data is not counted as read"
                     : "the row after the end of the data is not the first row again",
                look_at_loader);
}

}  // namespace mulligan::doctor
