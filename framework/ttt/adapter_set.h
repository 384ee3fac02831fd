// AdapterSet: the adapters of all batches of one size, their first values, their optimiser's state, their programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "framework/adapters/adapter_taps.h"
#include "framework/core/philox.h"
#include "framework/graph/program.h"
#include "framework/plugin/optimizer.h"
#include "framework/ttt/window_program.h"

namespace mulligan {

// First values of adapters.

// The first values of the uniform adapter `tensor` at draw event number `draw` of the run (from 0): each
// creation of a set of adapters, and each new batch whose adapters are not kept, is one event.
class AdapterDraws {
 public:
  virtual ~AdapterDraws() = default;
  // The stream from which they are drawn, uniform in +-tensor.bound, by whoever needs them; nothing: they are
  // asked of fill(), as fixtures want it.
  virtual std::optional<PhiloxStream> stream(std::int64_t, const AdapterTensor&) const { return {}; }
  virtual void fill(std::int64_t draw, const AdapterTensor& tensor, std::span<float> values) const = 0;
};

// Philox numbers keyed by (seed, draw, name of the adapter), uniform in +-tensor.bound; element i of a tensor
// is the same for every number of documents.
class PhiloxDraws : public AdapterDraws {
 public:
  explicit PhiloxDraws(std::uint64_t seed) : seed_(seed) {}
  std::optional<PhiloxStream> stream(std::int64_t draw, const AdapterTensor& tensor) const override;
  void fill(std::int64_t draw, const AdapterTensor& tensor, std::span<float> values) const override;

 private:
  std::uint64_t seed_;
};

// DeviceDraws: uniform random values of adapters, drawn by the backend. Only keys travel there.
class DeviceDraws {
 public:
  // Values of these tensors, each uniform in +-bound. `name`: of the program and of the key's tensor.
  struct Range {
    const AdapterTensor* tensor;
    double bound;
  };
  DeviceDraws(TensorStore& store, const std::string& name, std::span<const Range> ranges);

  // To be bound before anything runs.
  Program& program() { return *program_; }

  // The tensor's master becomes bound * (2 uniform(i) - 1) of the stream; for one of the ranges.
  void fill(const Range& range, const PhiloxStream& stream);

 private:
  TensorStore& store_;
  std::string key_name_;
  std::unique_ptr<Program> program_;
  std::map<std::pair<std::string, double>, std::size_t> calls_;  // by master and bound
};

// AdapterSet: the adapters of all batches of one size, their optimiser's state, and their programs.

// Norms over all adapters that the plugin calls by one name.
struct AdapterNorm {
  std::string name;  // "A"
  double norm = 0;   // Euclidean, over all documents and taps
  double drift = 0;  // distance from the values they started with (when created, or redrawn for a batch)
};

class AdapterSet {
 public:
  struct Setup {
    const TttPlugin& plugin;
    const Optimizer& optimizer;
    const AdapterDraws& draws;
    std::int64_t positions = 0;  // of the rotary tables
    int proposals = 0;           // tokens of a score transform's proposal, at most
  };

  // Plans a program for each of `shapes` (not empty), each for the last shape.documents of `documents`
  // documents. All references must outlive this object.
  AdapterSet(const BaseModel& model, const Setup& setup, std::int64_t documents,
             const std::set<WindowShape>& shapes);

  std::int64_t documents() const { return documents_; }
  // To be bound before anything runs.
  std::vector<Program*> programs();
  WindowProgram& window(const WindowShape& shape) { return *windows_.at(shape); }
  WindowProgram& longest_window() { return *windows_.rbegin()->second; }
  std::vector<WindowProgram*> windows() const;

  // All adapters at their first values (draw event `draw`), the optimiser's state empty.
  void create(std::int64_t draw);
  // What a batch of documents inherits from the one before it.
  struct Inheritance {
    std::vector<double>
        keep;  // by tensor: 1 all, 0 it starts anew, between: so much of its way from the start
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
  const std::vector<std::shared_ptr<const AdapterTensor>>& tensors() const { return first().adapters(); }

 private:
  const WindowProgram& first() const { return *windows_.begin()->second; }
  void make_draws();
  void start(const AdapterTensor& tensor, std::int64_t draw);
  void shrink(const AdapterTensor& tensor, double keep);
  void empty_state();
  Graph build_norms() const;
  std::string total(const std::string& name, const char* what) const;

  const BaseModel& model_;
  Setup setup_;
  std::int64_t documents_;
  std::string prefix_;
  std::map<WindowShape, std::unique_ptr<WindowProgram>> windows_;
  std::unique_ptr<Program> norms_, refresh_;
  std::unique_ptr<DeviceDraws> draws_;
  std::vector<std::string> groups_;  // names of adapters
  std::vector<std::string> states_;  // of the optimiser
  std::vector<float> scalars_;
  std::string scalars_name_;
  std::int64_t step_ = 0;  // updates since the last reset
};

// The windows of a run, by documents of a batch; and the sets of adapters with their programs.
using WindowShapes = std::map<std::int64_t, std::set<WindowShape>>;
using AdapterSets = std::map<std::int64_t, std::unique_ptr<AdapterSet>>;
// Plans them; `programs` gets what is to be bound.
AdapterSets make_adapter_sets(const BaseModel& model, const AdapterSet::Setup& setup,
                              const WindowShapes& shapes, std::vector<Program*>& programs);

}  // namespace mulligan
