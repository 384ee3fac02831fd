// An ensemble's score as a table for people and as JSON (ensemble.json of a run directory).
#pragma once

#include <string>

#include "lab/ensemble/score_ensemble.h"

namespace mulligan::ensemble {

// The model, the reference, the members' mean with its standard deviation and the ensemble: nats per token,
// bits per byte, accuracy, ECE and stored bytes; then ambiguity, disagreement and memory.
std::string ensemble_text(const EnsembleScore& score);

// `weights`: what the members were made of. No member is called val_bpb.
std::string ensemble_json(const EnsembleScore& score, const std::string& weights);

}  // namespace mulligan::ensemble
