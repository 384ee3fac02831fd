// At its end a whole run reports weights that did not move and averages that lag (D38 to D40). Healthy runs of some steps
// report nothing.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/planted_faults/watched_run.h"

namespace mulligan::doctor::doctor_run_end_test {
namespace {

using end_to_end::Overrides;

// The findings that did not pass, by id.
std::map<std::string, std::string> complaints(const Overrides& overrides) {
  const RunResult result =
      tiny().train(end_to_end::with(overrides, {"train.steps=30", "doctor.level=start"}));
  const auto record = end_to_end::result_of(result.directory);
  std::map<std::string, std::string> found;
  for (const auto& f : record.at("doctor").at("findings")) {
    if (f.at("verdict") != "PASS") found[f.at("id")] = f.at("message");
  }
  EXPECT_GT(record.at("doctor").at("findings").size(), 20U) << "or nothing was judged";
  return found;
}

TEST(DoctorAtTheEnd, HealthyRunsHaveNothingToSay) {
  for (const Overrides& variant :
       {Overrides{}, Overrides{"train.compute_dtype=bf16"}, Overrides{"model.tied_head=false"},
        Overrides{"model.lanes.parallel_start=0"}, Overrides{"ema.decay=0.8"},
        Overrides{"model.loop.extra_passes=0"}}) {
    for (const auto& [id, message] : complaints(variant))
      ADD_FAILURE() << (variant.empty() ? "as it is" : variant.front()) << ": " << id << " " << message;
  }
}

TEST(DoctorAtTheEnd, AnAverageThatNeverMovesIsNamed) {
  EXPECT_NE(complaints({"ema.decay=0.99999"})["D40"].find("% of the way"), std::string::npos);
}

}  // namespace
}  // namespace mulligan::doctor::doctor_run_end_test
