// Faults of the field, planted in the kernels of the backend under test: parity (D12) names the op at fault
// each time. The same kernels without a fault pass, so that it is the fault that is seen.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <mulligan/cpu_kernel.hpp>

#include "plugins/kernels/attention/signature.h"
#include "plugins/kernels/cross_entropy/signature.h"
#include "plugins/kernels/qk_norm_rope/signature.h"
#include "plugins/kernels/row_bias/signature.h"
#include "plugins/kernels/silu_gate/signature.h"
#include "plugins/kernels/weighted_rms_norm/signature.h"
#include "tests/support/plugins.h"
#include "tools/doctor/parity.h"

namespace mulligan::doctor::doctor_parity_faults_test {
namespace {

using sdk::Launch;

enum class Fault {
  none,
  bias_left_out,
  neighbours_rotated,
  first_head_only,
  not_causal,
  unscaled,
  no_final_norm,
  in_bits,
  nothing_written
};

constexpr std::int64_t layers = 2;

template <Fault fault>
struct RowBias : shapes::RowBiasForward {
  static void run(const Launch& call) {
    const std::int64_t width = call.dim(x, 1);
    for (std::int64_t i = 0; i < call.size(x); ++i) {
      const float added = fault == Fault::bias_left_out ? 0.0F : call.data<const float>(bias)[i % width];
      call.data<float>(y)[i] = call.data<const float>(x)[i] + added;
    }
  }
};

// Heads without norm and gain, as the family qwen2 has them.
template <Fault fault>
struct Rope : shapes::QkNormRopeForward {
  static void run(const Launch& call) {
    const std::int64_t heads = call.dim(x, 1), width = call.dim(x, 2), half = width / 2;
    const auto length = static_cast<std::int64_t>(call.attribute(row_length));
    for (std::int64_t t = 0; t < call.dim(x, 0); ++t) {
      for (std::int64_t head = 0; head < heads; ++head) {
        const float* from = call.data<const float>(x) + (t * heads + head) * width;
        float* to = call.data<float>(y) + (t * heads + head) * width;
        const bool turned = fault != Fault::first_head_only || head == 0;
        for (std::int64_t pair = 0; pair < half; ++pair) {
          const bool neighbours = fault == Fault::neighbours_rotated;
          const std::int64_t i = neighbours ? 2 * pair : pair, j = neighbours ? 2 * pair + 1 : pair + half;
          const std::int64_t entry = t % length * half + pair;
          const float c = turned ? call.data<const float>(cos)[entry] : 1.0F;
          const float s = turned ? call.data<const float>(sin)[entry] : 0.0F;
          to[i] = from[i] * c + from[j] * s;
          to[j] = from[j] * c - from[i] * s;
        }
      }
    }
  }
};

template <Fault fault>
struct Attention : shapes::AttentionForward {
  static void run(const Launch& call) {
    const std::int64_t heads = call.dim(q, 1), width = call.dim(q, 2), kv_heads = call.dim(k, 1);
    const double scale = fault == Fault::unscaled ? 1.0 : call.attribute(softmax_scale);
    const auto* cuts = call.data<const std::int32_t>(cu_seqlens);
    for (std::int64_t segment = 0; segment + 1 < call.dim(cu_seqlens, 0); ++segment) {
      for (std::int64_t t = cuts[segment]; t < cuts[segment + 1]; ++t) {
        const std::int64_t end = fault == Fault::not_causal ? cuts[segment + 1] : t + 1;
        for (std::int64_t head = 0; head < heads; ++head) {
          const float* query = call.data<const float>(q) + (t * heads + head) * width;
          const auto row = [&](std::uint32_t of, std::int64_t s) {
            return call.data<const float>(of) + (s * kv_heads + head / (heads / kv_heads)) * width;
          };
          std::vector<double> weights;
          double sum = 0;
          for (std::int64_t s = cuts[segment]; s < end; ++s) {
            double score = 0;
            for (std::int64_t i = 0; i < width; ++i) score += query[i] * row(k, s)[i];
            weights.push_back(std::exp(score * scale));
            sum += weights.back();
          }
          for (std::int64_t i = 0; i < width; ++i) {
            double value = 0;
            for (std::size_t s = 0; s < weights.size(); ++s)
              value += weights[s] / sum * row(v, cuts[segment] + static_cast<std::int64_t>(s))[i];
            call.data<float>(o)[(t * heads + head) * width + i] = static_cast<float>(value);
          }
          call.data<float>(lse)[t * heads + head] = static_cast<float>(std::log(sum));
        }
      }
    }
  }
};

template <Fault fault>
struct Norm : shapes::WeightedRmsNormForward {
  // Of the pass and of single ops: each runs every norm once.
  static inline std::int64_t calls = 0;
  static void run(const Launch& call) {
    const std::int64_t width = call.dim(x, 1);
    const bool last = calls++ / 2 % (2 * layers + 1) == 2 * layers;
    for (std::int64_t row = 0; row < call.dim(x, 0); ++row) {
      const float* from = call.data<const float>(x) + row * width;
      double squares = 0;
      for (std::int64_t j = 0; j < width; ++j) squares += static_cast<double>(from[j]) * from[j];
      double r = 1 / std::sqrt(squares / static_cast<double>(width) + call.attribute(eps));
      if (fault == Fault::no_final_norm && last) r = 1;
      for (std::int64_t j = 0; j < width; ++j)
        call.data<float>(y)[row * width + j] =
            static_cast<float>(call.data<const float>(weight)[j] * r * from[j]);
    }
  }
};

template <Fault fault>
struct CrossEntropy : shapes::CrossEntropyForward {
  static void run(const Launch& call) {
    const std::int64_t width = call.dim(logits, 1);
    for (std::int64_t t = 0; t < call.dim(logits, 0); ++t) {
      const float* row = call.data<const float>(logits) + t * width;
      double sum = 0;
      for (std::int64_t j = 0; j < width; ++j) sum += std::exp(static_cast<double>(row[j]));
      const double nats = std::log(sum) - row[call.data<const std::int32_t>(targets)[t]];
      call.data<float>(token_loss)[t] =
          static_cast<float>(fault == Fault::in_bits ? nats / std::log(2.0) : nats);
      call.data<float>(lse)[t] = static_cast<float>(std::log(sum));
    }
  }
};

template <Fault fault>
struct SiluGate : shapes::SiluGateForward {
  static void run(const Launch& call) {
    for (std::int64_t i = 0; i < call.size(g) && fault != Fault::nothing_written; ++i) {
      const float gate = call.data<const float>(g)[i];
      call.data<float>(y)[i] = gate / (1 + std::exp(-gate)) * call.data<const float>(u)[i];
    }
  }
};

// The cpu backend with one kernel of the test in place of its own.
class FaultyBackend : public Backend {
 public:
  using Backend::Backend;
  void put(const mlg_kernel& kernel) { check(table().add_kernels(instance(), &kernel, 1, 1)); }
};

ParityReport compare(const mlg_kernel& kernel) {
  ModelConfig model;
  model.family = ModelFamily::qwen2;
  model.vocabulary = 53, model.layers = layers, model.width = 24, model.heads = 6, model.kv_heads = 2;
  model.head_width = 10, model.mlp_hidden = 18;
  resolve_model_defaults(model);
  const auto reference = make_cpu_backend(1);
  const auto tested = make_plugin<FaultyBackend>(PluginKind::backend, "cpu", "threads = 1");
  tested->put(kernel);
  return compare_backends(
      model, [](const ParameterSpec& spec) { return large_random_weights(spec, 5); },
      random_parity_inputs(37, model.vocabulary, 3), *reference, *tested, MLG_F32);
}

// The kernel with the fault is caught where it is first called; without, it passes.
template <template <Fault> typename Kernel, Fault fault>
void check_fault(const std::string& tap) {
  SCOPED_TRACE(tap);
  // The backend may keep pointers to them.
  static const mlg_kernel sound = sdk::cpu_kernel<Kernel<Fault::none>>(),
                          faulty = sdk::cpu_kernel<Kernel<fault>>();
  const ParityReport healthy = compare(sound);
  EXPECT_EQ(judge_parity(healthy, "cpu").verdict, CheckOutcome::pass) << parity_text(healthy);
  const ParityReport sick = compare(faulty);
  const Finding finding = judge_parity(sick, "cpu");
  EXPECT_EQ(finding.verdict, CheckOutcome::fail) << parity_text(sick);
  EXPECT_NE(finding.message.find("first diverging op: " + tap + " (" + Kernel<fault>::name + ")"),
            std::string::npos)
      << finding.message;
}

TEST(DoctorParityFaults, MissingBias) {
  check_fault<RowBias, Fault::bias_left_out>("layers.0.q");
}
TEST(DoctorParityFaults, SwappedRotaryPairing) {
  check_fault<Rope, Fault::neighbours_rotated>("layers.0.q_rope");
}
TEST(DoctorParityFaults, OnlyHeadZeroRotated) {
  check_fault<Rope, Fault::first_head_only>("layers.0.q_rope");
}
TEST(DoctorParityFaults, NotCausal) {
  check_fault<Attention, Fault::not_causal>("layers.0.attn_out");
}
TEST(DoctorParityFaults, UnscaledScores) {
  check_fault<Attention, Fault::unscaled>("layers.0.attn_out");
}
TEST(DoctorParityFaults, NoFinalNorm) {
  check_fault<Norm, Fault::no_final_norm>("final_norm");
}
TEST(DoctorParityFaults, LossInBits) {
  check_fault<CrossEntropy, Fault::in_bits>("nll");
}
TEST(DoctorParityFaults, SkippedKernel) {
  check_fault<SiluGate, Fault::nothing_written>("layers.0.act");
}

}  // namespace
}  // namespace mulligan::doctor::doctor_parity_faults_test
