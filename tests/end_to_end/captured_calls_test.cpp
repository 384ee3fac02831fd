// Captured graphs of the cuda backend: what they replay is what an eager run computes, to the bit, also when the segments
// of attention ask for another plan between two runs.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <mulligan/kernel.hpp>
#include <random>

#include "framework/graph/program.h"
#include "tests/support/plugins.h"

namespace mulligan::end_to_end::captured_calls_test {
namespace {

using Boundaries = std::vector<std::int32_t>;
constexpr std::int64_t kTokens = 192, kEntries = 13;

// A list of calls over memory of its own: attention forward and backward, a matmul, and an update of v. So every run starts
// from what the one before left.
class List {
 public:
  explicit List(bool graphs)
      : backend_(make_plugin<Backend>(
            MLG_BACKEND, "cuda",
            fmt::format("device = \"emulated\"\nattention = \"library\"\ngraphs = {}", graphs))),
        store_(*backend_),
        arena_(*backend_) {
    Graph graph;
    const TensorType wide(MLG_BF16, {kTokens, 2, 16}), narrow(MLG_BF16, {kTokens, 1, 16});
    const Value q = graph.external("q", wide), o = graph.external("o", wide),
                d_o = graph.external("do", wide), dq = graph.external("dq", wide),
                k = graph.external("k", narrow), v = graph.external("v", narrow),
                dk = graph.external("dk", narrow), dv = graph.external("dv", narrow),
                lse = graph.external("lse", TensorType(MLG_F32, {kTokens, 2})),
                cu = graph.external("cu", TensorType(MLG_I32, {kEntries})),
                product = graph.external("product", TensorType(MLG_F32, {16, 16})),
                flat = graph.reshape(v, TensorType(MLG_BF16, {kTokens, 16}));
    const double scale = 0.25;
    graph.call("attention_fwd", {q, k, v, cu, o, lse}, {{"softmax_scale", scale}});
    graph.call("attention_bwd", {q, k, v, cu, o, lse, d_o, dq, dk, dv},
               {{"softmax_scale", scale}, {"accumulate_dq", 0}, {"accumulate_dk", 0}, {"accumulate_dv", 1}});
    graph.call("matmul", {flat, flat, product},
               {{"transpose_a", 1}, {"transpose_b", 0}, {"alpha", 0.5}, {"beta", 1}});
    graph.call("axpby", {dv, Value{}, v}, {{"alpha", 0.125}, {"beta", 0}, {"accumulate_y", 1}});
    program_ = make_program(store_, std::move(graph), "the list");
    std::mt19937_64 random(1);
    std::normal_distribution<float> normal;
    for (const std::string& name : store_.names()) {
      std::vector<sdk::bfloat16> values;
      if (store_.type(name).dtype != MLG_BF16) continue;
      for (std::int64_t i = 0; i < store_.type(name).elements(); ++i) values.emplace_back(normal(random));
      store_.upload(name, values);
    }
    bind();
  }

  void bind() { arena_.bind({program_.get()}, store_); }
  void run(Boundaries cu) {
    cu.resize(kEntries, static_cast<std::int32_t>(kTokens));
    store_.upload("cu", cu);
    program_->run();
  }
  std::map<std::string, std::vector<std::byte>> contents() const {
    std::map<std::string, std::vector<std::byte>> all;
    for (const std::string& name : store_.names()) {
      all[name].resize(static_cast<std::size_t>(store_.type(name).bytes()));
      store_.download(name, all[name]);
    }
    return all;
  }

 private:
  std::unique_ptr<Backend> backend_;
  TensorStore store_;
  std::unique_ptr<Program> program_;
  SharedArena arena_;
};

TEST(CapturedCalls, AreEagerOnesToTheBit) {
  List captured(true), eager(false);
  Boundaries equal;
  for (int i = 0; i < 13; ++i) equal.push_back(16 * i);
  const Boundaries few{0, 100, 150}, other{0, 60, 90}, long_one{0, 7}, wrong{0, 90, 60};
  // Eager, captured, replayed with other values, another plan, the first again; the same plans once more
  // after the calls were bound again; a plain batch, boundaries that fit nothing.
  int step = 0;
  for (const Boundaries& cu :
       {few, few, other, few, long_one, long_one, equal, equal, equal, other, wrong, wrong, few}) {
    for (List* list : {&captured, &eager}) {
      if (step == 7) list->bind();
      list->run(cu);
    }
    ++step;
    ASSERT_TRUE(captured.contents() == eager.contents()) << "after run " << step;
  }
}

// An upload in between is not part of a captured list: what the list reads is what is there when it runs.
TEST(CapturedCalls, ReadNewContents) {
  List list(true);
  std::vector<std::byte> last;
  for (int run = 0; run < 4; ++run) {
    list.run({0, 40 + 10 * run});
    const std::vector<std::byte> o = list.contents()["o"];
    EXPECT_NE(o, last) << run;
    last = o;
  }
}

}  // namespace
}  // namespace mulligan::end_to_end::captured_calls_test
