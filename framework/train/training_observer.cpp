#include "framework/train/training_observer.h"

namespace mulligan {

void TrainingObserver::before_first_step(ObservedRun&) {}
void TrainingObserver::clock_starts(ObservedRun&) {}
void TrainingObserver::clock_stops() {}
bool TrainingObserver::looks_after(const RunConfig&, std::int64_t) const {
  return false;
}
void TrainingObserver::after_step(ObservedRun&) {}
void TrainingObserver::before_report() {}
void TrainingObserver::at_end(ObservedRun&) {}
void TrainingObserver::add_to_result(nlohmann::ordered_json&) const {}
void TrainingObserver::last_words(RunLog&) const {}

}  // namespace mulligan
