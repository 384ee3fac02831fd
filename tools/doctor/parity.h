// Parity (D12): one forward pass on two backends, or held against the values of another program, op by op;
// the first op that diverges is named.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "framework/core/safetensors.h"
#include "framework/model/parameters.h"
#include "framework/plugin/backend.h"
#include "tools/doctor/finding.h"

namespace mulligan::doctor {

// What both sides compute with: f32 values of a parameter, in its shape.
using ParityWeights = std::function<std::vector<float>(const ParameterSpec&)>;

// Weights under which no fault can hide: matrices normal with std max(0.05, 1 / sqrt(inputs)), all else its
// initial value plus 0.3 times a normal number, biases (initial value 0) plus a whole one. By Philox from
// (seed, name).
std::vector<float> large_random_weights(const ParameterSpec& parameter, std::uint64_t seed);

struct ParityInputs {
  std::vector<std::int32_t> tokens, targets;  // [T]
  std::vector<std::int32_t> cu_seqlens;       // segments: from 0 to T
};
// A row of `tokens` random ids in two segments, the first of a third of them.
ParityInputs random_parity_inputs(std::int64_t tokens, std::int64_t vocabulary, std::uint64_t seed);

// How far values may be off, in units of max(rms of the reference's tensor, |reference's element|).
struct ParityTolerance {
  double op = 0;      // of one op that is fed the reference's inputs
  double pass = 0;    // of the whole forward pass
  double cosine = 0;  // least cosine of the logits
  double loss = 0;    // of the mean loss, in nats
};
ParityTolerance parity_tolerance(DType compute);  // of the side under test

struct ParityTap {
  std::string name;  // ParityGraph::label
  std::string kernel;
  double cosine = 1;      // of what the pass under test has there
  double difference = 0;  // its largest, in the unit of ParityTolerance
  double alone =
      0;  // the same of this op fed with the reference's inputs; equal to `difference` against a dump
          // without injection
  std::int64_t position =
      -1;  // the first row beyond the tolerance, of `alone` where that is beyond it; -1: none
};

struct ParityReport {
  std::vector<ParityTap> taps;  // in the order of the pass
  std::optional<std::size_t>
      first;  // the first diverging op: beyond the tolerance although its inputs are right
  // Mean losses: of the side under test; the reference's cross entropy of the tested side's logits; all by
  // the reference. NaN where there is none, against a dump.
  double loss = 0, loss_of_tested_logits = 0, reference_loss = 0;
  ParityTolerance tolerance;
};

// Runs the forward pass of `model` in f32 on `reference` and in `compute` on `tested`, call by call: both as
// a whole, and each call of `tested` once more with the reference's inputs. Throws what the backends throw.
ParityReport compare_backends(const ModelConfig& model, const ParityWeights& weights,
                              const ParityInputs& inputs, Backend& reference, Backend& tested, DType compute);

// Holds `tested` against the values in `dump`: tensors named as ParityGraph::label names points and taps, or
// so after a last "tap.", next to "tokens" [T] I32 and, where they are wanted, "targets" (without them there
// is not an nll) and "cu_seqlens" (without: one segment). With `inject` each value of the dump takes the place of
// the computed one once it was compared. Throws data_error where the dump has no tokens, no value of this
// model, or one of another size.
ParityReport compare_with_dump(const ModelConfig& model, const ParityWeights& weights,
                               const SafetensorsFile& dump, Backend& tested, DType compute, bool inject);

// D12 of a report; `against` names the reference.
Finding judge_parity(const ParityReport& report, const std::string& against);
// A line for each tap.
std::string parity_text(const ParityReport& report);

}  // namespace mulligan::doctor
