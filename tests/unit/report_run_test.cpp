// Reading run directories back, and comparing them; run directories as the runs of one result of the optimiser benchmark.
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "framework/core/error.h"
#include "tests/unit/config_testing.h"
#include "tools/report_page/comparison.h"
#include "tools/report_page/run_observations.h"
#include "tools/report_page/run_sections.h"
#include "tools/report_page/write_report.h"
#include "tools/stats/study.h"

namespace mulligan::report::report_run_test {
namespace {

namespace fs = std::filesystem;

const std::string step_line =
    R"({"event":"step","step":5,"loss_nats":3.5,"window":[0,5],"window_loss_nats":4.0,"gradient_norm":0.5,)"
    R"("gradient_norm_of":{"a":0.3,"b":0.4},"lr":{"a":0.02,"b":0.01},"tokens":500,"tokens_per_second":1000.0,)"
    R"("step_seconds":0.1,"slowest_step_seconds":0.2,"elapsed_seconds":0.5,"budget_fraction":0.1})";

std::string refusal(const std::string& text) {
  return refusal_of(ExitCode::bad_data, [&] { parse_metrics(text, "metrics.jsonl"); });
}

TEST(MetricsReader, ReadsEveryEvent) {
  const std::string before =
      R"({"event":"memory","tensors_bytes":{"gradients":8},"programs_bytes":{"micro step":16},"arena_bytes":16})";
  const std::string after = R"(
{"event":"restart","step":5,"optimizer":"a","cycle":1,"lr":0.02}
{"event":"phase_start","step":6,"phase":"long","way":"looped, bf16","budget_fraction":0.5}
{"event":"resume","step":7,"checkpoint":"x"}
{"event":"something newer","step":7}
{"event":"validation","step":8,"val_loss_nats":3.0,"val_bpb":null,"val_tokens":9,"val_bytes":0,"seconds":1.0}
)";
  const MetricsHistory history = parse_metrics(before + "\n" + step_line + after, "m");
  ASSERT_EQ(history.steps.size(), 1u);
  const StepRecord& step = history.steps[0];
  EXPECT_EQ(step.step, 5);
  EXPECT_EQ(step.window_last, 5);
  EXPECT_EQ(step.group_gradient_norm[1], (std::pair<std::string, double>("b", 0.4)));
  EXPECT_EQ(step.lr[0], (std::pair<std::string, double>("a", 0.02)));
  EXPECT_EQ(step.slowest_step_seconds, 0.2);
  ASSERT_EQ(history.restarts.size(), 1u);
  EXPECT_EQ(history.restarts[0].cycle, 1);
  ASSERT_EQ(history.phase_starts.size(), 1u);
  EXPECT_EQ(history.phase_starts[0].step, 6);
  EXPECT_EQ(history.phase_starts[0].phase, "long");
  EXPECT_EQ(history.resumes, std::vector<std::int64_t>{7});
  ASSERT_TRUE(history.memory);
  EXPECT_EQ(history.memory->programs_bytes[0].second, 16);
  ASSERT_EQ(history.validations.size(), 1u);
  EXPECT_TRUE(std::isnan(history.validations[0].val_bpb));
  EXPECT_FALSE(history.torn);
}

// A process killed at any byte of its last line.
TEST(MetricsReader, AnUnfinishedLastLineIsLeftOut) {
  for (std::size_t bytes = 0; bytes < step_line.size(); ++bytes) {
    const MetricsHistory history = parse_metrics(step_line + "\n" + step_line.substr(0, bytes), "m");
    EXPECT_EQ(history.steps.size(), 1u) << bytes;
    EXPECT_EQ(history.torn, bytes > 0) << bytes;
  }
  EXPECT_EQ(parse_metrics(step_line, "m").steps.size(), 1u);  // complete but for the line's end
}

TEST(MetricsReader, ADamagedLineIsNamed) {
  const std::string torn = step_line.substr(0, 40);
  EXPECT_TRUE(contains(refusal(step_line + "\n" + torn + "\n" + step_line + "\n"), "metrics.jsonl:2:"));
  EXPECT_TRUE(contains(refusal(step_line + "\n" + torn + "\n"), "metrics.jsonl:2:"));
  EXPECT_TRUE(contains(refusal("\n" + step_line + "\n"), "metrics.jsonl:1:"));
  EXPECT_TRUE(contains(refusal("[1]\n"), "not a JSON object"));
  for (const char* line :
       {R"({"step":5})", R"({"event":"step"})", R"({"event":"step","step":"five","tokens":1})",
        R"({"event":"step","step":1e300,"tokens":1})", R"({"event":"step","step":1.5,"tokens":1})",
        R"({"event":"step","step":1,"tokens":1,"lr":[1]})",
        R"({"event":"step","step":1,"tokens":1,"window":3})",
        R"({"event":"step","step":1,"tokens":1,"loss_nats":"low"})"}) {
    EXPECT_TRUE(contains(refusal(line + std::string("\n")),
                         "metrics.jsonl:1: the record is not as mulligan writes it"))
        << line;
  }
}

// Run directories of made-up runs, removed with the object.
class MadeUpRuns : public ::testing::Test {
 protected:
  fs::path make(const std::string& name, int seed, double bpb, const std::string& more_settings = "") {
    folder_.write(name + "/config.toml",
                  fmt::format("[run]\nname = \"{}\"  # x.toml:1\nseed = {}  # --set\n[train]\n"
                              "steps = 5  # default\n{}",
                              name, seed, more_settings));
    folder_.write(name + "/metrics.jsonl", step_line + "\n");
    folder_.write(
        name + "/result.json",
        fmt::format(R"({{"val_bpb":{},"val_loss_nats":3.0,"val_tokens":10,"val_bytes":40,"steps":5,)"
                    R"("seconds":{{"train":0.5}}}})",
                    bpb));
    return folder_.path(name);
  }
  static void write(const fs::path& path, const std::string& text) { std::ofstream(path) << text; }

  ScratchFolder folder_;
};

TEST_F(MadeUpRuns, SayWhereAndWhenAndByWhichCommand) {
  const fs::path directory = make("one", 3, 1.25);
  write(
      directory / "result.json",
      R"({"val_bpb":1.25,"steps":5,"tokens_per_second":12345.6,"host":"node7","started":"2026-11-21T23:10:22Z",)"
      R"("duration_seconds":133.4,"command":"mulligan train 'a b.toml'","seconds":{"train":0.5}})");
  EXPECT_TRUE(contains(run_page(read_run(directory)), "node7", "2026-11-21T23:10:22Z", "2 min 13 s",
                       "train &#39;a b.toml&#39;", "12,346"));
}

// Bits per byte of a loss that is not a cross entropy would be a number without meaning.
TEST_F(MadeUpRuns, OnlyCrossEntropyIsConvertedToBitsPerByte) {
  const std::string validation =
      R"({"event":"validation","step":5,"val_loss_nats":3.0,"val_bpb":1.5,"val_tokens":9,"val_bytes":27,"seconds":1.0})"
      "\n";
  const fs::path own = make("own", 3, 1.25, "[loss]\nplugin = \"softcap_ce\"  # x.toml:3\n");
  const fs::path other = make("other", 3, 1.25, "[loss]\nplugin = \"hinge\"  # x.toml:3\n");
  for (const fs::path& directory : {own, other})
    write(directory / "metrics.jsonl", step_line + "\n" + validation);
  EXPECT_TRUE(bpb_of_nats(read_run(own)));
  EXPECT_FALSE(bpb_of_nats(read_run(other)));
  const std::string chart = draw(bpb_chart(read_run(other)));
  EXPECT_FALSE(contains(chart, "training, window mean"));
  EXPECT_TRUE(contains(chart, "no cross entropy"));
}

// Losses of masked tokens are not compared with those of the next token, nor with those of other maskings.
TEST_F(MadeUpRuns, LossesOfMaskedTokensStandApart) {
  const auto masked = [&](const char* name, const char* share, const char* seed) {
    const fs::path directory = make(
        name, 1, 9, fmt::format("[model.masking]\nshare = {}  # --set\nseed = {}  # --set\n", share, seed));
    write(directory / "result.json",
          R"({"val_bpb":null,"val_loss_nats":2.0,"val_tokens":10,"val_bytes":0,"val_masked":true,"steps":5,)"
          R"("train_loss":{"train_loss_run_nats":2.5},"final_loss_nats":2.25,"seconds":{"train":0.5}})");
    return read_run(directory);
  };
  const fs::path plain = make("next", 1, 1.1, "[model.masking]\nshare = 0.0  # default\n");
  write(plain / "result.json",
        R"({"val_bpb":null,"val_loss_nats":3.0,"val_tokens":10,"val_bytes":0,"steps":5,)"
        R"("train_loss":{"train_loss_run_nats":3.5},"final_loss_nats":3.25,"seconds":{"train":0.5}})");
  const RunRecord next = read_run(plain), hidden = masked("hidden", "0.15", "0"),
                  same = masked("same", "0.15", "0"), others = masked("others", "0.15", "1"),
                  more = masked("more", "0.5", "0");
  const Comparison comparison = compare({next, hidden});
  int losses = 0;
  for (const ComparedFigure& figure : comparison.figures) {
    if (figure.name.find("loss") == std::string::npos) continue;
    ++losses;
    const bool of_masked = figure.name.find("masked tokens") != std::string::npos;
    EXPECT_NE(figure.values[0].has_value(), of_masked) << figure.name;
    EXPECT_EQ(figure.values[1].has_value(), of_masked) << figure.name;
  }
  EXPECT_EQ(losses, 6);
  const std::string page = comparison_page(comparison);
  EXPECT_TRUE(contains(page, "Training loss of masked tokens"));
  EXPECT_TRUE(contains(loss_chart(hidden).about, "of masked tokens"));
  EXPECT_FALSE(contains(loss_chart(next).about, "masked"));
  const auto study = [](const RunRecord& one, const RunRecord& other, const char* metric) {
    return stats::make_study(observe_runs({one, other}, metric));
  };
  for (const char* metric : {"val_loss_nats", "train_loss_nats"}) {
    EXPECT_NO_THROW(study(hidden, same, metric)) << metric;
    EXPECT_THROW(study(next, hidden, metric), Error) << metric;
    EXPECT_THROW(study(hidden, more, metric), Error) << metric;
  }
  EXPECT_THROW(study(hidden, others, "val_loss_nats"), Error) << "other tokens of the same text";
  EXPECT_NO_THROW(study(hidden, others, "train_loss_nats")) << "other draws of one objective";
}

TEST_F(MadeUpRuns, DamagedFilesAreNamed) {
  const fs::path directory = make("one", 3, 1.25);
  for (const auto& [file, text] : {std::pair{"result.json", "{\"val_bpb\":"},
                                   {"result.json", "{\"val_bpb\":\"low\"}"},
                                   {"ttt_result.json", "[]"},
                                   {"quantize_result.json", "{}"},
                                   {"evaluations.jsonl", "{}\n"},
                                   {"metrics.jsonl", "{}\n"}}) {
    const fs::path path = directory / file, kept = directory / "kept";
    std::error_code ignored;
    fs::rename(path, kept, ignored);
    write(path, text);
    EXPECT_TRUE(refuses([&] { run_page(read_run(directory)); }, ExitCode::bad_data, path.string()));
    fs::remove(path);
    fs::rename(kept, path, ignored);
  }
  EXPECT_THROW(read_run(folder_.path("")), Error);
  const fs::path absent = folder_.path("absent.json");
  EXPECT_TRUE(
      refuses([&] { ResultValue(absent).required("seconds/train"); }, ExitCode::bad_data, absent.string()));
}

TEST_F(MadeUpRuns, ThatDifferInTheirSeedAloneMakeOneGroup) {
  const Comparison comparison =
      compare({read_run(make("a", 1, 1.1)), read_run(make("b", 2, 1.2)),
               read_run(make("other", 1, 1.5, "lr = 2  # x.toml:9\n")), read_run(make("c", 3, 1.3))});
  ASSERT_EQ(comparison.groups.size(), 2u);
  EXPECT_EQ(comparison.groups[0].runs, (std::vector<std::size_t>{0, 1, 3}));
  EXPECT_EQ(comparison.groups[0].seeds, (std::vector<std::string>{"1", "2", "3"}));
  ASSERT_EQ(comparison.keys.size(), 2u);  // not the name
  EXPECT_EQ(comparison.keys[0].key, "run.seed");
  EXPECT_EQ(comparison.keys[1].key, "train.lr");
  EXPECT_EQ(comparison.keys[1].values, (std::vector<std::string>{"", "", "2", ""}));
  ASSERT_EQ(comparison.figures[0].name, "val_bpb");
  const Statistic statistic = statistic_of(comparison.figures[0], comparison.groups[0]).value();
  EXPECT_NEAR(statistic.mean, 1.2, 1e-12);
  EXPECT_NEAR(statistic.deviation.value(), 0.1, 1e-12);  // n - 1: sqrt(0.02 / 2)
  EXPECT_EQ(statistic.n, 3u);
  EXPECT_FALSE(statistic_of(comparison.figures[0], comparison.groups[1])->deviation);
  EXPECT_TRUE(contains(comparison_text(comparison), "| a and 2 more | val_bpb ", "1.200000", "0.100000"));
}

TEST_F(MadeUpRuns, RunsWithoutAFigureCountForNothingInItsMean) {
  const fs::path unfinished = make("b", 2, 9);
  fs::remove(unfinished / "result.json");
  const Comparison comparison = compare({read_run(make("a", 1, 1.1)), read_run(unfinished)});
  ASSERT_EQ(comparison.groups.size(), 1u);
  const Statistic statistic = statistic_of(comparison.figures[0], comparison.groups[0]).value();
  EXPECT_EQ(statistic.n, 1u);
  EXPECT_EQ(statistic.mean, 1.1);
  EXPECT_FALSE(comparison_page(comparison).empty());
}

TEST_F(MadeUpRuns, OfOneNameAreToldApartByTheirDirectory) {
  const fs::path a = make("a", 1, 1.1), b = make("b", 2, 1.2);
  fs::copy_file(a / "config.toml", b / "config.toml", fs::copy_options::overwrite_existing);
  const Comparison comparison = compare({read_run(a), read_run(b)});
  EXPECT_EQ(comparison.labels, (std::vector<std::string>{a.string(), b.string()}));
}

TEST_F(MadeUpRuns, AHostileNameStaysText) {
  const std::string hostile = "<script>alert(1)<&>";
  const fs::path directory = make("x", 1, 1.1, "note = \"</td><b>\"  # a<b.toml:3\n");
  write(directory / "config.toml", "[run]\nname = \"" + hostile + "\"  # <i>\n");
  const RunRecord run = read_run(directory);
  for (const std::string& html :
       {run_page(run), comparison_page(compare({run, read_run(make("y", 2, 1.2))}))}) {
    EXPECT_FALSE(contains(html, "<script>alert"));
    EXPECT_TRUE(contains(html, "&lt;script&gt;alert(1)&lt;&amp;&gt;"));
  }
}

TEST(ResolvedSettings, ReadTablesRowsAndOrigins) {
  const auto settings = resolved_settings(
      "# Resolved configuration of x  # y\n\n[a.b]\ntext = \"x  # y = z\"  # f.toml:3\nn = 5              # "
      "default\n"
      "[[rows]]\nk = 1  # --set\n[[rows]]\nk=2  # derived\n");
  ASSERT_EQ(settings.size(), 4u);
  EXPECT_EQ(settings[0].key, "a.b.text");
  EXPECT_EQ(settings[0].value, "\"x  # y = z\"");
  EXPECT_EQ(settings[0].origin, "f.toml:3");
  EXPECT_EQ(settings[1].value, "5");
  EXPECT_EQ(settings[2].key, "rows.0.k");
  EXPECT_EQ(settings[3].key, "rows.1.k");
  EXPECT_EQ(settings[3].origin, "derived");
}

// A finished run of 20 steps with validations after 10 and 20.
class ArenaRunFolders : public testing::Test {
 protected:
  std::string make(const std::string& name, int seed, double loss, const std::string& more = "",
                   int tokens = 4096) {
    folder_.write(
        name + "/config.toml",
        fmt::format(
            "[run]\nname = \"{}\"  # default\nseed = {}  # --set\n[train]\nsteps = 20  # x.toml:1\n{}", name,
            seed, more));
    std::string metrics;
    for (const auto& [step, value] : {std::pair{10, loss + 1}, {20, loss}}) {
      metrics += fmt::format(
          R"({{"event":"validation","step":{},"val_loss_nats":{},"val_bpb":null,"val_tokens":{},"val_bytes":0,"seconds":1.0}})"
          "\n",
          step, value, tokens);
    }
    folder_.write(name + "/metrics.jsonl", metrics);
    const nlohmann::ordered_json result = {{"steps", 20},
                                           {"val_loss_nats", loss},
                                           {"val_tokens", tokens},
                                           {"val_bytes", 0},
                                           {"val_bpb", nullptr}};
    folder_.write(name + "/result.json", result.dump());
    return folder_.path(name);
  }

  std::vector<stats::ArenaRun> read(const std::vector<std::string>& directories) {
    notes_.clear();
    return arena_runs(read_runs(directories), notes_);
  }
  std::string refused(const std::vector<std::string>& directories) {
    return refusal_of([&] { read(directories); });
  }

  ScratchFolder folder_;
  std::vector<std::string> notes_;
};

TEST_F(ArenaRunFolders, GiveTheirValidations) {
  const std::string track = "[arena]\ntrack = \"modded3\"  # x.toml:9\n";
  const auto runs = read({make("a", 1, 3.25, track), make("b", 2, 3.5, track)});
  ASSERT_EQ(runs.size(), 2u);
  EXPECT_EQ(runs[1].losses, (std::map<std::int64_t, double>{{10, 4.5}, {20, 3.5}}));
  EXPECT_TRUE(notes_.empty());
}

TEST_F(ArenaRunFolders, WithoutATrackAreNoted) {
  read({make("a", 1, 3.25)});
  ASSERT_EQ(notes_.size(), 1u);
  EXPECT_TRUE(contains(notes_[0], "no [arena] track"));
}

TEST_F(ArenaRunFolders, DifferInTheSeedAlone) {
  const std::string a = make("a", 1, 3.25), other = make("b", 2, 3.5, "lr = 2  # --set\n"),
                    same_seed = make("c", 1, 3.75);
  EXPECT_TRUE(contains(refused({a, other}), "so they are not runs of one condition"));
  EXPECT_TRUE(contains(refused({a, same_seed}), "which counts once"));
}

TEST_F(ArenaRunFolders, AreScoredOnTheSameTargets) {
  EXPECT_TRUE(contains(refused({make("a", 1, 3.25), make("b", 2, 3.5, "", 8192)}), "score both on the same"));
}

TEST_F(ArenaRunFolders, LeaveOutNoFinishedSibling) {
  const std::string a = make("a", 1, 3.25), b = make("b", 2, 3.5), worse = make("c", 3, 3.9);
  make("other", 4, 3.1, "lr = 2  # --set\n");
  const std::string said = refused({a, b});
  EXPECT_TRUE(contains(said, "'" + worse + "' is a finished run of the same settings with run.seed = 3"));
  EXPECT_EQ(refused({a, b, worse}), "");
  fs::remove(fs::path(worse) / "result.json");  // a run that was not finished is none
  EXPECT_EQ(refused({a, b}), "");
}

TEST_F(ArenaRunFolders, AreFinished) {
  const std::string a = make("a", 1, 3.25);
  fs::remove(fs::path(a) / "result.json");
  EXPECT_TRUE(contains(refused({a}), "has no result with a validation loss"));
}

}  // namespace
}  // namespace mulligan::report::report_run_test
