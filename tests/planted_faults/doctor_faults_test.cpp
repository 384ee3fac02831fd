// Every planted fault is caught by the check that is there for it, and the sentence names the place.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>
#include <sstream>

#include "framework/config/config_report.h"
#include "framework/config/run_config.h"
#include "framework/core/file.h"
#include "framework/data/shard.h"
#include "framework/data/tokenizer.h"
#include "tests/planted_faults/planted_faults.h"
#include "tests/planted_faults/watched_run.h"
#include "tests/support/sentence.h"
#include "tests/support/small_config.h"
#include "tools/doctor/model_checks.h"

namespace mulligan::doctor::doctor_faults_test {
namespace {

using end_to_end::Overrides, end_to_end::with;

Overrides with_fault(const std::string& fault, const Overrides& more = {}) {
  return with({"backend.plugin=planted", std::string("backend.path=") + MULLIGAN_PLANTED_BACKEND,
               "backend.fault=" + fault, "backend.vocabulary=" + std::to_string(end_to_end::tiny_vocabulary)},
              more);
}

// A small model of Qwen2.5's shape on the same data.
LoadedConfig qwen_config(const Overrides& overrides) {
  const std::string data = (tiny().folder() / "data").string();
  return small_config(
      with({"model.family=qwen2", "model.vocabulary=320", "model.layers=2", "model.kv_heads=2",
            "model.mlp_hidden=48", "loss.plugin=cross_entropy", "schedule.plugin=constant",
            "train.sequence_length=64", "eval.sequence_length=64", "eval.packed_sequences=4",
            "data.train=" + data + "/fineweb_train_*.bin", "data.validation=" + data + "/fineweb_val_*.bin",
            "data.tokenizer=" + data + "/tokenizer.model"},
           overrides));
}

bool caught(const std::vector<Finding>& findings, const std::string& id, const std::string& words) {
  return std::ranges::any_of(findings, [&](const Finding& f) {
    return f.id == id && f.verdict == CheckOutcome::fail && f.message.find(words) != std::string::npos;
  });
}

// A fault of the backend: the check that must name it, and the words in which it does.
struct Row {
  const char *fault, *id, *words;
};

// Seen by `mulligan doctor`.
const std::vector<Row> of_the_model = {
    {"rope_pairs", "D14", "(post-rope) of layer 0 ("},
    {"rope_head_0", "D14", "(post-rope) of layer 0 ("},
    {"not_causal", "D14", "off is attn_out of layer 0 (attention"},
    {"across_documents", "D15", "by its neighbours"},
    {"unscaled_scores", "D14", "off is attn_out of layer 0 (attention"},
    {"unscaled_logits", "D14", "off is logits (matmul"},
    {"no_softcap", "D14", "off is capped logits (softcap_fwd"},
    {"no_final_norm", "D14", "off is final_norm ("},
    {"transposed_o_proj", "D14", "off is o_proj of layer 0 (matmul"},
    {"stale_logits", "D16", "the evaluation depends on buffer contents"},
    {"unfinished_losses", "D16", "are what memory held before"},
    {"rounded_matmuls", "D33", "it is computed in TF32"},
    {"swallows", "D18", "errors are swallowed"},
};
const std::vector<Row> of_training = {
    {"short_gradients", "D13", "but the gradient says"},
    {"no_two_alike", "D34", "two runs of the same steps differ"},
    {"forgets", "D30", "the state of training is another"},
};
// Seen by the run itself before its first step.
const std::vector<Row> at_the_start = {
    {"labels_are_inputs", "D19", "targets equal inputs"},
    {"shuffled_targets", "D19", "but the next token is"},
    {"bf16_as_f16", "D05", "BF16 bytes decoded as F16"},
    {"nans", "D06", "is nan"},
    {"stale_logits", "D16", "the evaluation depends on buffer contents"},
};

// Planted faults of `rows` that the doctor named in their words.
std::set<std::string> caught_of(const std::vector<Row>& rows, const char* stage, const Overrides& more) {
  std::set<std::string> named;
  for (const Row& row : rows) {
    const std::vector<Finding> findings = findings_of(tiny().config(with_fault(row.fault, more)), {stage});
    if (caught(findings, row.id, row.words)) named.insert(row.fault);
    EXPECT_TRUE(named.contains(row.fault)) << row.fault << "\n" << findings_text(findings);
  }
  return named;
}

std::set<std::string> caught_at_the_start() {
  std::set<std::string> named;
  for (const Row& row : at_the_start) {
    const std::string sentence = sentence_of([&] {
      tiny().train(with_fault(row.fault, {"train.steps=2", "doctor.level=start"}));
    });
    const bool right = sentence.find(std::string("check ") + row.id) != std::string::npos &&
                       sentence.find(row.words) != std::string::npos;
    if (right) named.insert(row.fault);
    EXPECT_TRUE(right) << row.fault << ": " << sentence;
  }
  return named;
}

TEST(PlantedFaults, NoneIsFoundWhereThereIsNone) {
  for (const char* fused : {"true", "false"}) {
    const std::vector<Finding> findings =
        findings_of(tiny().config(with_fault("none", {std::string("run.fused_kernels=") + fused})));
    for (const Finding& f : findings)
      EXPECT_EQ(f.verdict, CheckOutcome::pass) << f.id << " " << f.measured << " " << f.message;
  }
}

// A model of Qwen2.5's shape, which has biases.
const std::vector<Row> of_qwen = {
    {"missing_bias", "D14", "off is q (post-bias) of layer 0 (row_bias_fwd"},
    {"rope_pairs", "D14", "(post-rope) of layer 0 (qk_norm_rope_fwd"},
    {"no_final_norm", "D14", "off is final_norm (weighted_rms_norm_fwd"},
    {"transposed_o_proj", "D14", "off is o_proj of layer 0 (matmul"},
};
TEST(PlantedFaults, NoneIsFoundInAModelOfQwensShape) {
  for (const Finding& f : findings_of(qwen_config({})))
    EXPECT_EQ(f.verdict, CheckOutcome::pass)
        << f.id << " " << f.title << ": " << f.measured << " " << f.message;
}

// Caught where a backend takes the state of training over from another: a phase's beginning.
std::set<std::string> caught_at_a_switch() {
  std::vector<std::string> overrides = with_fault(
      "mistakes",
      {"model.loop.start_fraction=0.0", "train.steps=4", "run.directory=" + tiny().next_directory()});
  const std::string file = (tiny().folder() / "switch.toml").string();
  write_file_atomically(file,
                        print_resolved(tiny().config(overrides)) +
                            "[[phase]]\nuntil_steps = 2\n[phase.backend]\nplugin = \"cpu\"\n[[phase]]\n");
  LoadedConfig loaded = load_run_config(file);
  TrainOptions options;
  options.console = nullptr;
  options.observers = watched();
  const std::string sentence = sentence_of([&] { train(loaded, test_plugin_host(), options); });
  const bool right = sentence.find("did not arrive in phase 'phase_2'") != std::string::npos;
  EXPECT_TRUE(right) << sentence;
  return right ? std::set<std::string>{"mistakes"} : std::set<std::string>{};
}

TEST(PlantedFaults, EachIsCaughtByItsCheckAtItsPlace) {
  std::set<std::string> named = caught_of(of_the_model, "forward", {});
  named.merge(caught_of(of_the_model, "forward", {"run.fused_kernels=false"}));
  for (const Row& row : of_qwen) {
    const std::vector<Finding> findings = findings_of(qwen_config(with_fault(row.fault)), {"forward"});
    EXPECT_TRUE(caught(findings, row.id, row.words)) << row.fault << "\n" << findings_text(findings);
    if (caught(findings, row.id, row.words)) named.insert(row.fault);
  }
  named.merge(caught_of(of_training, "train", {}));
  named.merge(caught_at_the_start());
  named.merge(caught_at_a_switch());
  std::set<std::string> planted;
  std::istringstream list(planted::fault_names);
  for (std::string name; std::getline(list, name, '|');) {
    if (name != "none") planted.insert(name);
  }
  EXPECT_EQ(named, planted) << "100 % of what is planted is caught, and there is no fault without a row here";
}

// What moves at all positions alike hides from means; the faults of the model are found in bf16, too.
TEST(PlantedFaults, AreCaughtInBf16) {
  std::vector<Row> rows = of_the_model;
  std::erase_if(rows, [](const Row& row) {
    // Another kernel's rounding is as large as this cap's effect; matmuls have no f32 to round.
    return std::string(row.fault) == "no_softcap" || std::string(row.fault) == "rounded_matmuls";
  });
  caught_of(rows, "forward", {"train.compute_dtype=bf16"});
}

// A "validation loss" of 0.0008 nats came from a corpus in which 32,830 of 32,832 tokens were the unknown one.
TEST(PlantedFaults, ACorpusOfUnknownTokens) {
  const Tokenizer tokenizer = Tokenizer::load(tiny().folder() / "data/tokenizer.model");
  std::vector<std::uint16_t> tokens(32'832, static_cast<std::uint16_t>(tokenizer.find("<unk>")));
  tokens[0] = static_cast<std::uint16_t>(tokenizer.bos_id());
  tokens[20'000] = tokens[0];
  const std::filesystem::path shard = tiny().folder() / "unknown_train_000000.bin";
  write_shard(shard, tokens);
  const std::vector<Finding> findings =
      findings_of(tiny().config({"data.train=" + shard.string()}), {"data"});
  EXPECT_TRUE(caught(findings, "D21", "(<unk>)")) << findings_text(findings);
  EXPECT_TRUE(caught(findings, "D22", "say next to nothing"));
  EXPECT_TRUE(caught(findings, "D23", "different tokens occur"));
}

// Batches of 64, 64 and 5 tokens: the last counts as much as the others in a mean of means.
TEST(PlantedFaults, AMeanOfMeans) {
  std::vector<float> losses(64 + 64 + 5, 2.0F);
  std::fill(losses.end() - 5, losses.end(), 8.0F);
  const double right = (128 * 2.0 + 5 * 8.0) / 133, wrong = (2.0 + 2.0 + 8.0) / 3;
  EXPECT_EQ(check_mean(right, 133, losses).verdict, CheckOutcome::pass);
  const Finding found = check_mean(wrong, 133, losses);
  EXPECT_EQ(found.id, "D28");
  EXPECT_EQ(found.verdict, CheckOutcome::fail);
  EXPECT_TRUE(contains(found.message, "a mean of means"));
}

TEST(PlantedFaults, ARunThatIsForcedSaysSo) {
  const Overrides overrides =
      with_fault("nans", {"train.steps=2", "doctor.level=start", "run.directory=" + tiny().next_directory()});
  LoadedConfig loaded = tiny().config(overrides);
  TrainOptions options;
  options.console = nullptr;
  options.observers = watched(true);
  // It goes on, and ends at the first loss, which is not a number.
  const std::string sentence = sentence_of([&] { train(loaded, test_plugin_host(), options); });
  EXPECT_TRUE(contains(sentence, "the training loss is nan"));
}

}  // namespace
}  // namespace mulligan::doctor::doctor_faults_test
