// Scores an ensemble: its members run one after the other over the same tokens, and their probabilities are averaged.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/run_config.h"
#include "framework/data/data_identity.h"
#include "framework/plugin/plugin_host.h"
#include "framework/report/console.h"
#include "framework/run/loaded_model.h"
#include "framework/run/weight_origin.h"
#include "lab/calibration/calibration.h"
#include "lab/ensemble/members.h"

namespace mulligan::ensemble {

struct ScoreOptions : ConsoleOptions {
  std::int64_t tokens = std::int64_t{1} << 20;  // of the validation set, from its front
};

// Never a run's val_bpb, because it is the score of several models.
struct EnsembleScore {
  std::string plugin;    // "stochastic_rounding"
  std::string settings;  // the plugin's keys: "bits = 5, scales = \"row\""
  std::int64_t members = 0, seed = 0;
  std::uint64_t tokens = 0, bytes = 0;  // scored; bytes 0 without a tokenizer
  DataIdentity data;
  calibration::Calibration centre, reference, ensemble;  // ECE over 15 bins; loss_nats
  std::vector<double> member_loss_nats, member_accuracy;
  double mean_loss_nats = 0;  // mean over members
  double ambiguity_nats = 0;  // mean_loss_nats - ensemble.loss_nats, >= 0
  double disagreement = 0;  // share of pairs of token and member that predict another token than the ensemble
  MemberBytes stored;
  double seconds = 0;

  // From a loss in nats per token; NaN without a tokenizer.
  double bpb(double loss_nats) const;
};

// Precondition: loaded.config.ensemble. Throws Error. Under ledger.rules = "strict" it throws config_error, unless
// ensemble.count_members counts the members' bytes and they fit into ledger.artifact_bytes. Throws data_error if the weights
// belong to another tokenizer.
EnsembleScore score_ensemble(LoadedConfig& loaded, PluginHost& host, const WeightOrigin& origin,
                             const WeightLoader& load, const ScoreOptions& options = {});

// Ambiguity, disagreement and the ensemble's loss.
std::string ensemble_text(const EnsembleScore& score);

// `weights`: the source of the members. No member is called val_bpb.
std::string ensemble_json(const EnsembleScore& score, const std::string& weights);

}  // namespace mulligan::ensemble
