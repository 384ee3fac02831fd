// ensemble.json of a run directory, for its report.
#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace mulligan::report {

struct EnsembleResult {
  struct Figures {
    double loss_nats = 0, accuracy = 0;
    std::optional<double> bpb, ece;  // absent: without a tokenizer; of members
  };
  std::string weights, plugin, settings;
  double members = 0, seed = 0, tokens = 0;
  Figures model, reference, ensemble;
  std::vector<double> member_loss_nats, member_accuracy;
  double mean_loss_nats = 0, ambiguity_nats = 0, disagreement = 0;
  double member_bytes = 0, kept_bytes = 0, all_bytes = 0;
};

// Throws data_error that names the file where it is not as mulligan probe ensemble writes it.
EnsembleResult read_ensemble_result(const std::filesystem::path& path);

}  // namespace mulligan::report
