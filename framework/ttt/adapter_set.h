// AdapterSet: the adapters of all batches of one size, their first values, their optimiser's state, their programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/adapters/adapter_taps.h"
#include "framework/core/philox.h"
#include "framework/graph/program.h"
#include "framework/plugin/optimizer.h"
#include "framework/plugin/transform.h"
#include "framework/ttt/window_program.h"

namespace mulligan {

class Communicator;

// The first values of uniform adapters: Philox numbers keyed by (seed, draw, name of the adapter), uniform in
// +-tensor.bound; element i of a tensor is the same for every number of documents. `draw` counts the events of a run
// at which adapters are drawn, from 0.
class PhiloxDraws {
 public:
  explicit PhiloxDraws(std::uint64_t seed) : seed_(seed) {}
  virtual ~PhiloxDraws() = default;
  PhiloxStream stream(std::int64_t draw, const AdapterTensor& tensor) const;
  // Other values in their place, as fixtures give them; empty: none.
  virtual std::vector<float> values(std::int64_t, const AdapterTensor&) const { return {}; }

 private:
  std::uint64_t seed_;
};

// Norms over all adapters that the plugin calls by one name.
struct AdapterNorm {
  std::string name;  // "A"
  double norm = 0;   // Euclidean, over all documents and taps
  double drift = 0;  // distance from the values they started with (when created, or redrawn for a batch)
};

// What a run of test-time training is made of.
struct TttSetup {
  const TttConfig& config;
  const TttPlugin& adapters;
  const Optimizer& optimizer;
  double lr = 0;                              // of the adapters
  const TttPlugin* base = nullptr;            // null: the base model is not trained
  const Optimizer* base_optimizer = nullptr;  // with the momentum that `base` asks for
  std::int64_t row_tokens = 0;  // of the base model's training rows: the evaluation's sequence length
  const PhiloxDraws& draws;
  const Transform* transform = nullptr;  // null: losses are booked as they are
  TransformOrder transform_order = TransformOrder::queue;
  std::int64_t lanes = 1;  // at least as many as ranks
  // Of all ranks, which have the same weights, data and setup; null: there is one.
  Communicator* communicator = nullptr;

  // Tokens of a score transform's proposal, at most.
  int proposals() const { return transform ? transform->biases() : 0; }
};

class AdapterSet {
 public:
  // Plans a program for each of `shapes` (not empty), each for the last shape.documents of `documents`
  // documents. All references must outlive this object.
  AdapterSet(const BaseModel& model, const TttSetup& setup, std::int64_t documents,
             const std::set<WindowShape>& shapes);

  // To be bound before anything runs.
  std::vector<Program*> programs();
  WindowProgram& window(const WindowShape& shape) { return *windows_.at(shape); }
  const std::map<WindowShape, std::unique_ptr<WindowProgram>>& windows() const { return windows_; }

  // All adapters at their first values (draw event `draw`), the optimiser's state empty.
  void create(std::int64_t draw);
  // What a batch of documents inherits from the one before it.
  struct Inheritance {
    // By tensor: 1 all, 0 it starts anew, between: so much of its way from the start.
    std::vector<double> keep;
    bool keep_state = false;  // of the optimiser
  };
  // For the next batch of documents; what starts anew draws with draw event `draw`.
  void reset(std::int64_t draw, const Inheritance& inherits);
  // Tensors in the store that such a batch inherits: with them, continue_after() and reset() it is as without an
  // interruption.
  std::vector<std::string> inherited(const Inheritance& inherits) const;
  // So many updates were made since the optimiser's state was empty.
  void continue_after(std::int64_t updates) { step_ = updates; }
  // All adapters at zero, for scoring without them.
  void clear();
  // All adapters at small random values, zeros included: for probes.
  void fill_at_random();

  // One update from the last forward() of this window, at learning rate `lr`.
  void update(WindowProgram& window, double lr);

  // By adapter name, in the order of first appearance. Waits.
  std::vector<AdapterNorm> norms();
  // The trainable tensors, in the order of the forward pass.
  const std::vector<std::shared_ptr<const AdapterTensor>>& tensors() const {
    return windows_.begin()->second->adapters();
  }

 private:
  void record_update(Graph& graph, std::span<const AdapterTaps::Gradient> gradients, bool fused);
  Graph build_norms() const;
  Graph build_draws() const;
  void draw(std::size_t call, const PhiloxStream& stream);
  void start(std::size_t tensor, std::int64_t draw);
  void shrink(const AdapterTensor& tensor, double keep);
  void empty_state();
  std::string total(const std::string& name, const char* what) const;

  const BaseModel& model_;
  const TttSetup& setup_;
  std::string prefix_;
  std::map<WindowShape, std::unique_ptr<WindowProgram>> windows_;
  std::unique_ptr<Program> norms_, refresh_, draws_;
  std::vector<std::string> groups_;  // names of adapters
  std::set<std::string> states_;     // of the optimiser
  std::vector<float> scalars_;
  std::string scalars_name_;
  std::int64_t step_ = 0;  // updates since the last reset
};

}  // namespace mulligan
