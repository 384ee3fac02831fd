// One training step: it allocates nothing of its own, and its gradient does not depend on how the step is
// cut into micro-batches.
#include "framework/step/engine.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>

#include "framework/data/shard.h"
#include "framework/run/weights.h"
#include "tests/end_to_end/rank_engines.h"

namespace {

std::atomic<bool> counting{false};         // to ask who allocates takes longer than to allocate
std::atomic<long> allocations{0};          // by this program and the plugins
std::atomic<long> library_allocations{0};  // by oneDNN, which keeps its arguments of each matmul in a map

bool from_onednn(const void* caller) {
  Dl_info info{};
  return dladdr(caller, &info) != 0 && info.dli_fname && std::strstr(info.dli_fname, "libdnnl") != nullptr;
}

void* counted(std::size_t bytes, std::size_t alignment, const void* caller) {
  if (counting.load(std::memory_order_relaxed))
    (from_onednn(caller) ? library_allocations : allocations).fetch_add(1, std::memory_order_relaxed);
  void* address = std::aligned_alloc(alignment, (bytes + alignment) / alignment * alignment);
  if (!address) throw std::bad_alloc();
  return address;
}

}  // namespace

// Every C++ allocation of this process can be counted.
void* operator new(std::size_t bytes) {
  return counted(bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
void* operator new[](std::size_t bytes) {
  return counted(bytes, alignof(std::max_align_t), __builtin_return_address(0));
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
void* operator new[](std::size_t bytes, std::align_val_t alignment) {
  return counted(bytes, static_cast<std::size_t>(alignment), __builtin_return_address(0));
}
// The nothrow form too, which std::stable_sort uses: what it returns goes to the same operator delete.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes);
}
void operator delete(void* address) noexcept {
  std::free(address);
}
void operator delete[](void* address) noexcept {
  std::free(address);
}
void operator delete(void* address, std::size_t) noexcept {
  std::free(address);
}
void operator delete[](void* address, std::size_t) noexcept {
  std::free(address);
}
void operator delete(void* address, std::align_val_t) noexcept {
  std::free(address);
}
void operator delete[](void* address, std::align_val_t) noexcept {
  std::free(address);
}
void operator delete(void* address, std::size_t, std::align_val_t) noexcept {
  std::free(address);
}
void operator delete[](void* address, std::size_t, std::align_val_t) noexcept {
  std::free(address);
}

namespace mulligan::end_to_end::engine_test {
namespace {

// Makes steps of any phase.
class EngineRunner : public Alone {
 public:
  EngineRunner(const Overrides& overrides, const std::filesystem::path& shard) : Alone(overrides, {shard}) {}

  void enter(std::size_t phase) {
    if (phase != phase_) engine.enter(phase_ = phase);
  }
  void step(std::int64_t number, std::size_t phase) {
    groups.set_rates({number - 1, 10, 0, 0});
    enter(phase);
    engine.step(number, *rows);
    engine.record_metrics(number - 1);
  }

 private:
  std::size_t phase_ = 0;
};

// Documents of exactly `row` tokens, so that rows of any number of documents cut the text at documents. Spans
// overlap nowhere: each is followed by one BOS, the target of its last token.
std::vector<std::uint16_t> rows_of_documents(int documents_per_span, int row, int documents) {
  std::vector<std::uint16_t> tokens;
  for (int document = 0; document < documents; ++document) {
    tokens.push_back(1);
    for (int i = 1; i < row; ++i) {
      tokens.push_back(static_cast<std::uint16_t>(5 + (document * 31 + i * (3 + document)) % 300));
    }
    if ((document + 1) % documents_per_span == 0) tokens.push_back(1);
  }
  return tokens;
}

// sqrt(sum (a - b)^2 / sum b^2)
double relative_distance(const std::vector<float>& a, const std::vector<float>& b) {
  double squares = 1e-12, difference = 0;
  for (std::size_t i = 0; i < b.size(); ++i) {
    squares += static_cast<double>(b[i]) * static_cast<double>(b[i]);
    difference += std::pow(static_cast<double>(a[i]) - static_cast<double>(b[i]), 2);
  }
  return std::sqrt(difference / squares);
}

TEST(Engine, AStepAllocatesNothing) {
  const auto shard = tiny().folder() / "allocation.bin";
  write_shard(shard, rows_of_documents(1, 64, 200));
  EngineRunner runner({"train.micro_batches=4", "ema.decay=0.9"}, shard);
  for (std::int64_t number = 1; number <= 4; ++number) runner.step(number, number > 2);
  for (const bool looping : {false, true}) {
    runner.enter(looping ? 1 : 0);
    allocations = 0;
    library_allocations = 0;
    counting = true;
    for (std::int64_t number = 5; number <= 8; ++number) runner.step(number, looping ? 1 : 0);
    const long by_steps = allocations.load();
    ::operator delete(::operator new(1));
    counting = false;
    EXPECT_EQ(by_steps, 0) << "looping " << looping;
    EXPECT_GT(allocations.load(), by_steps) << "an allocation is not counted";
    RecordProperty(looping ? "onednn_allocations_per_looped_step" : "onednn_allocations_per_step",
                   std::to_string(library_allocations.load() / 4));
  }
}

TEST(Engine, MicroBatchesGiveTheGradientOfTheWholeStep) {
  const auto in_one = tiny().folder() / "one.bin", in_four = tiny().folder() / "four.bin";
  write_shard(in_one, rows_of_documents(4, 64, 8));
  write_shard(in_four, rows_of_documents(1, 64, 8));
  // The update may overwrite gradients; a learning rate of zero and no clipping leave them as they were.
  const std::vector<std::string> common = {"train.clip_norm=0.0", "optimizer.matrices.plugin=adamw",
                                           "optimizer.matrices.lr=0.01"};
  EngineRunner one_row(common, in_one);
  EngineRunner four_rows(with(common, {"train.micro_batches=4"}), in_four);
  for (const bool looping : {false, true}) {
    one_row.engine.initialise(3);
    four_rows.engine.initialise(3);
    one_row.step(1, looping ? 1 : 0);
    four_rows.step(1, looping ? 1 : 0);
    const StepMetrics a = one_row.engine.read_metrics(0, 1)[0], b = four_rows.engine.read_metrics(0, 1)[0];
    EXPECT_NEAR(a.loss_sum_nats, b.loss_sum_nats, 1e-6 * a.loss_sum_nats);
    EXPECT_NEAR(a.gradient_norm, b.gradient_norm, 1e-5 * a.gradient_norm);
    for (const PlannedParameter& parameter : one_row.parameters) {
      const auto whole = one_row.engine.store().download_as<float>(gradient_name(parameter.name()));
      const auto sum = four_rows.engine.store().download_as<float>(gradient_name(parameter.name()));
      float largest = 0, difference = 0;
      for (std::size_t i = 0; i < whole.size(); ++i) {
        largest = std::max(largest, std::abs(whole[i]));
        difference = std::max(difference, std::abs(whole[i] - sum[i]));
      }
      EXPECT_LE(difference, 1e-4f * largest + 1e-9f) << parameter.name();
    }
  }
}

// Calls of what follows the micro-steps, and tensors that are zeroed one by one before them.
std::size_t calls_behind_micro_steps(const TrainingEngine& engine) {
  std::size_t calls = 0;
  for (const StepRole role : {StepRole::clip, StepRole::update, StepRole::follow_up}) {
    calls += engine.plan().find(0, role)->graph().calls().size();
  }
  return calls;
}

// Three options change roundings alone: joined tensors; the clip's factor, averages and copies in the update; and the loss's two
// passes in one. They change nothing that a checkpoint or a forward pass reads by name.
void expect_fused_and_plain_agree(std::vector<std::string> settings, double tolerance) {
  const auto shard = tiny().folder() / "fused.bin";
  write_shard(shard, rows_of_documents(1, 64, 200));
  settings.insert(settings.end(), {"train.clip_norm=0.05", "train.micro_batches=2"});
  EngineRunner fused(settings, shard);
  settings.push_back("run.fused_kernels=false");
  EngineRunner plain(settings, shard);
  EXPECT_LT(2 * calls_behind_micro_steps(fused.engine), calls_behind_micro_steps(plain.engine));
  for (std::int64_t number = 1; number <= 4; ++number) {
    fused.step(number, number > 2);
    plain.step(number, number > 2);
  }
  for (std::int64_t step = 0; step < 4; ++step) {
    const StepMetrics a = fused.engine.read_metrics(0, 4)[static_cast<std::size_t>(step)],
                      b = plain.engine.read_metrics(0, 4)[static_cast<std::size_t>(step)];
    EXPECT_NEAR(a.loss_sum_nats, b.loss_sum_nats, tolerance * b.loss_sum_nats) << step;
    EXPECT_NEAR(a.gradient_norm, b.gradient_norm, tolerance * b.gradient_norm) << step;
    EXPECT_GT(b.gradient_norm, 0.05) << "nothing was clipped";
  }
  std::vector<std::string> names = fused.engine.state_tensors();
  std::vector<std::string> plain_names = plain.engine.state_tensors();
  std::ranges::sort(names);
  std::ranges::sort(plain_names);
  EXPECT_EQ(names, plain_names);
  for (const PlannedParameter& parameter : fused.parameters) {
    if (fused.engine.store().contains(compute_name(parameter.name())))
      names.push_back(compute_name(parameter.name()));
  }
  for (const std::string& name : names) {
    const std::vector<float> a = download_values(fused.engine.store(), name),
                             b = download_values(plain.engine.store(), name);
    // Root mean squares: AdamW's first steps are as long for an element whose gradient is all rounding.
    EXPECT_LE(relative_distance(a, b), tolerance) << name;
  }
}

TEST(Engine, FusedAndPlainStepsAgree) {
  expect_fused_and_plain_agree({"ema.decay=0.9"}, 2e-4);
  expect_fused_and_plain_agree({"optimizer.rest.plugin=schedule_free_adamw", "optimizer.rest.lr=0.01"}, 2e-4);
}

// Fused kernels keep in registers what plain calls round on the way, so their bits differ; AdamW's first steps make
// much of rounding. So both are held against the step in fp32: the fused one is as near.
TEST(Engine, FusedStepsInBf16AreAsNearToFp32AsPlainOnes) {
  const auto shard = tiny().folder() / "fused.bin";
  write_shard(shard, rows_of_documents(1, 64, 200));
  const Overrides base = {"ema.decay=0.9", "train.clip_norm=0.05", "train.micro_batches=2"};
  EngineRunner exact(with(base, {"run.fused_kernels=false"}), shard);
  EngineRunner plain(with(base, {"train.compute_dtype=bf16", "run.fused_kernels=false"}), shard);
  EngineRunner fused(with(base, {"train.compute_dtype=bf16"}), shard);
  for (std::int64_t number = 1; number <= 4; ++number) {
    for (EngineRunner* runner : {&exact, &plain, &fused}) runner->step(number, number > 2);
  }
  double of_fused = 0, of_plain = 0;
  for (const std::string& name : exact.engine.state_tensors()) {
    const std::vector<float> reference = download_values(exact.engine.store(), name);
    of_fused += std::pow(relative_distance(download_values(fused.engine.store(), name), reference), 2);
    of_plain += std::pow(relative_distance(download_values(plain.engine.store(), name), reference), 2);
  }
  EXPECT_GT(of_plain, 0);
  EXPECT_LE(std::sqrt(of_fused), 1.25 * std::sqrt(of_plain));
}

// Optimisers that begin anew go on from the weights at rest, and so does what is looked at ahead of them.
TEST(Engine, EmptiedStatesBeginAtRest) {
  const auto shard = tiny().folder() / "rest.bin";
  write_shard(shard, rows_of_documents(4, 64, 40));
  EngineRunner runner({"wrapper.plugin=ema_nesterov", "wrapper.from_step=0"}, shard);
  runner.step(1, 0);
  runner.step(2, 0);
  TensorStore& store = runner.engine.store();
  const auto floats = [&](const char* name) { return store.download_as<float>(name); };
  const std::vector<float> rest = floats("rest/qo_bank");
  EXPECT_NE(floats("master/qo_bank"), rest);
  EXPECT_NE(floats("wrapper/qo_bank.displacement"), std::vector<float>(rest.size()));
  runner.engine.reset_optimizers();
  EXPECT_EQ(floats("master/qo_bank"), rest);
  EXPECT_EQ(floats("rest/qo_bank"), rest);
  EXPECT_EQ(floats("wrapper/qo_bank.displacement"), std::vector<float>(rest.size()));
}

}  // namespace
}  // namespace mulligan::end_to_end::engine_test
