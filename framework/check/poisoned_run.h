// A graph executed on memory with known contents. All memory that has no value yet holds a pattern before the run starts, and no two
// values share memory. If a result depends on the pattern, memory was read before it was written, or was never written.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "framework/graph/program.h"

namespace mulligan {

// Gradients from values alone, to compare with a plugin's gradients.

// A number that depends on `values`. The function may be called again and again with changed values.
using ScalarFunction = std::function<double(const std::vector<float>& values)>;

// Compares `gradient` with central differences of fourth order of `function` at `values`, element by element. Returns a problem that names
// `what` and the worst element, or empty. Tolerance: 1 % of the largest of all gradients, because differences of f32 results have that
// much noise for small gradients.
std::string compare_with_differences(const std::string& what, const std::vector<float>& values,
                                     const std::vector<float>& gradient, const ScalarFunction& function);

// Sum of weight * value, in double.
double weighed_sum(const std::vector<float>& weights, const std::vector<float>& values);

// Repeatable numbers, about normal, times `scale`.
std::vector<float> sample(std::size_t count, unsigned seed, float scale = 1.0f);

// Patterns of the memory. For checks that do not look for unwritten memory: zero.
inline constexpr std::uint8_t poison_zero = 0;
// For checks that do. As f32 and bf16 the first reads as NaN, the second as 12.08.
inline constexpr std::uint8_t poison_nan = 0xFF;
inline constexpr std::uint8_t poison_number = 0x41;

class PoisonedRun {
 public:
  // Prepares the graph and allocates its memory. Throws Error as Program does.
  PoisonedRun(Backend& backend, const Graph& graph, const std::string& name);

  // Sets an external of f32, bf16 (rounded to nearest) or i32. The value holds until the next call and is restored before each run.
  void set(const std::string& external, std::vector<float> values);
  void set(const std::string& external, const std::vector<std::int32_t>& values);
  // Externals that keep their value from one run to the next (states); zero before the first.
  void keep(const std::string& external);
  // The same for an external of f32 or bf16 that begins with `values`.
  void keep(const std::string& external, const std::vector<float>& values);

  // Fills the workspace and every value that is neither set nor kept with `poison`, then runs all calls.
  void run(std::uint8_t poison = poison_zero);
  // The same, waiting for the device after each call.
  void run_stepwise(std::uint8_t poison = poison_zero);
  // Runs the calls again on the present contents.
  void run_calls_only();

  // f32 and bf16 as floats.
  std::vector<float> floats(const std::string& external) const;
  // The contents of a value of the original graph after the last call that wrote it. f32, bf16 and i32.
  std::vector<double> numbers(Value value) const;
  const Graph& graph() const { return program_.graph(); }  // values have the numbers that they had before
  const TensorStore& store() const { return store_; }
  const std::vector<std::string>& kept() const { return kept_; }
  bool has(const std::string& external) const { return store_.contains(external); }
  const TensorType& type(const std::string& external) const { return store_.type(external); }

 private:
  void prepare_memory(std::uint8_t poison);
  void fill(void* address, std::size_t bytes, std::uint8_t poison);

  Backend& backend_;
  TensorStore store_;
  Program program_;
  DeviceBuffer workspace_;
  std::map<std::string, std::vector<std::byte>> given_;
  std::vector<std::string> kept_;
};

}  // namespace mulligan
