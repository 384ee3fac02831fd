// The members of an ensemble, made one after the other in the place of one model.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "framework/config/ensemble_config.h"
#include "framework/config/model_config.h"
#include "framework/plugin/ensemble.h"
#include "framework/run/loaded_model.h"

namespace mulligan::ensemble {

// What the members of an ensemble would take, stored.
struct MemberBytes {
  std::int64_t changed_weights = 0;  // elements that differ between members
  std::int64_t kept_weights = 0;     // all others: embedding, norms, gains
  std::uint64_t member = 0;          // bytes of one member's changed weights, by the plugin
  std::uint64_t kept = 0;            // bytes of the others, once for all members, f32
  std::uint64_t all(std::int64_t members) const {
    return kept + static_cast<std::uint64_t>(members) * member;
  }
};

// The weights that members change: those of two dimensions or more that enter matrix products, but not the
// token embedding, which is the head too where the head is tied. Norms, gains and mixes stay.
bool changes(const ParameterSpec& spec, const ModelConfig& model);

// Of shapes alone. Throws run_error where the plugin gives no number of bytes.
MemberBytes member_bytes(const Ensemble& plugin, const std::vector<ParameterLayout>& layouts,
                         const ModelConfig& model);

class Members {
 public:
  // Keeps a copy of the changed weights of `model`, which is loaded and stands for the centre, on the host, in
  // f32. References must outlive this object. Throws run_error where a weight is not finite.
  Members(LoadedModel& model, const ModelConfig& config, const Ensemble& plugin, std::uint64_t seed,
          int threads);

  // Each turns the model into what it says, with its copies in the compute dtype. Throws run_error where the
  // plugin writes what is not finite.
  void make_centre();
  void make_reference() { make(MLG_ENSEMBLE_REFERENCE); }
  void make(std::int64_t member);

 private:
  struct Weight {
    const ParameterLayout* layout;
    std::vector<float> centre;
  };
  LoadedModel& model_;
  const Ensemble& plugin_;
  std::uint64_t seed_;
  int threads_;
  std::vector<Weight> weights_;
  std::vector<float> made_;
};

}  // namespace mulligan::ensemble
