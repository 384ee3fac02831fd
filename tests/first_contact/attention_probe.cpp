#include "tests/first_contact/attention_probe.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "framework/check/poisoned_run.h"
#include "framework/core/error.h"
#include "framework/core/steady_time.h"
#include "framework/model/packed_inputs.h"
#include "tests/first_contact/sampled.h"

namespace mulligan::first_contact {
namespace {

std::vector<float> draw(std::int64_t count, std::uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<float> values(static_cast<std::size_t>(count));
  for (float& value : values) value = 2 * (static_cast<float>(random() >> 40) * 0x1p-24F - 0.5F);
  return values;
}

AttentionRows documents(std::int64_t tokens, std::int64_t longest, std::int64_t count,
                        const std::string& what) {
  std::mt19937_64 random(static_cast<std::uint64_t>(count));
  std::vector<std::int32_t> boundaries = {0};
  for (std::int64_t i = 1; i < count; ++i) {
    const std::int64_t left = tokens - boundaries.back() - (count - i);  // one for each of those that follow
    if (left < 1) break;
    const std::int64_t mean = std::max<std::int64_t>(1, 2 * tokens / count);
    const auto length = i == 1
                            ? 1
                            : 1 + static_cast<std::int64_t>(
                                      random() % static_cast<std::uint64_t>(std::min({mean, left, longest})));
    boundaries.push_back(boundaries.back() + static_cast<std::int32_t>(length));
  }
  while (tokens - boundaries.back() > longest)
    boundaries.push_back(boundaries.back() + static_cast<std::int32_t>(longest));
  boundaries.push_back(static_cast<std::int32_t>(tokens));
  const auto number = boundaries.size() - 1;
  return {fmt::format("{} {}", number, what), std::move(boundaries)};
}

struct Fetched {
  TensorType type;
  std::vector<std::byte> bytes;
  operator HostTensor() const { return {type, bytes.data()}; }
};
Fetched fetch(const PoisonedRun& run, const std::string& name) {
  Fetched fetched{run.type(name), std::vector<std::byte>(static_cast<std::size_t>(run.type(name).bytes()))};
  run.store().download(name, fetched.bytes);
  return fetched;
}

}  // namespace

std::vector<AttentionRows> rows_to_probe(std::int64_t tokens, std::int64_t longest) {
  const std::int64_t length = std::min(longest, tokens / 2);
  AttentionRows equal{fmt::format("segments of {} tokens", length), {0}};
  for (std::int64_t end = length; end < tokens; end += length)
    equal.boundaries.push_back(static_cast<std::int32_t>(end));
  equal.boundaries.push_back(static_cast<std::int32_t>(tokens));
  const std::int64_t many = std::max<std::int64_t>(2, tokens / 512),
                     few = std::max<std::int64_t>(2, std::min<std::int64_t>(65, tokens / 64));
  return {std::move(equal), documents(tokens, longest, many, "documents of many lengths"),
          documents(tokens, longest, few, "documents: a library's batch of more rows has empty ones")};
}

std::vector<CallReport> probe_attention(Backend& device, const ModelConfig& model, std::int64_t tokens,
                                        const AttentionRows& rows) {
  Graph graph;
  const TensorType q_type(MLG_BF16, {tokens, model.heads, model.head_width}),
      k_type(MLG_BF16, {tokens, model.kv_heads, model.head_width}), lse_type(MLG_F32, {tokens, model.heads}),
      cu_type(MLG_I32, {segment_capacity(tokens)});
  const auto external = [&](const char* name, const TensorType& type) { return graph.external(name, type); };
  const Value q = external("q", q_type), k = external("k", k_type), v = external("v", k_type),
              cu = external("cu", cu_type), o = external("o", q_type), lse = external("lse", lse_type),
              d_o = external("do", q_type), dq = external("dq", q_type), dk = external("dk", k_type),
              dv = external("dv", k_type);
  const double scale = 1 / std::sqrt(static_cast<double>(model.head_width));
  graph.call("attention_fwd", {q, k, v, cu, o, lse}, {{"softmax_scale", scale}});
  graph.call("attention_bwd", {q, k, v, cu, o, lse, d_o, dq, dk, dv},
             {{"softmax_scale", scale}, {"accumulate_dq", 0}, {"accumulate_dk", 0}, {"accumulate_dv", 0}});
  std::vector<CallReport> reports(2);
  const auto start = std::chrono::steady_clock::now();
  try {
    PoisonedRun run(device, graph, "attention of odd rows");
    for (const auto& [name, seed] :
         {std::pair("q", 1), std::pair("k", 2), std::pair("v", 3), std::pair("do", 4)})
      run.set(name, draw(run.type(name).elements(), static_cast<std::uint64_t>(seed)));
    std::vector<std::int32_t> padded = rows.boundaries;
    padded.resize(static_cast<std::size_t>(cu_type.elements()), static_cast<std::int32_t>(tokens));
    run.set("cu", padded);
    run.run(poison_nan);
    const Fetched host_q = fetch(run, "q"), host_k = fetch(run, "k"), host_v = fetch(run, "v"),
                  host_cu = fetch(run, "cu"), host_o = fetch(run, "o"), host_lse = fetch(run, "lse"),
                  host_do = fetch(run, "do"), host_dq = fetch(run, "dq"), host_dk = fetch(run, "dk"),
                  host_dv = fetch(run, "dv");
    const AttentionTensors tensors{host_q, host_k, host_v, host_cu, host_o, host_lse, scale};
    const ForwardAgreement forward = sampled_forward(tensors);
    const BackwardAgreement backward =
        sampled_backward(tensors, {host_do, host_dq, host_dk, host_dv, {}, {}, {}});
    const auto say = [&](CallReport& report, const char* name, const Agreement& agreement,
                         const TensorType& type) {
      judge(report, fmt::format("fp64, {} elements", agreement.elements()), name, agreement,
            limits_of(true, type));
    };
    say(reports[0], "o", forward.o, q_type);
    say(reports[0], "lse", forward.lse, lse_type);
    say(reports[1], "dq", backward.dq, q_type);
    say(reports[1], "dk", backward.dk, k_type);
    say(reports[1], "dv", backward.dv, k_type);
  } catch (const Error& error) {
    for (CallReport& report : reports) {
      if (report.reference.empty()) report.verdict = CallVerdict::failed, report.sentence = error.what();
    }
  }
  for (CallReport& report : reports) report.seconds = seconds_since(start) / 2;
  return reports;
}

}  // namespace mulligan::first_contact
