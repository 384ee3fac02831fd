#include "lab/calibration/compare_items.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "framework/core/error.h"
#include "tools/stats/t_tests.h"

namespace mulligan::calibration {
namespace {

using Runs = std::vector<const ItemSet*>;  // one set, by run

void require_same_items(const Runs& runs) {
  const ItemSet& first = *runs.front();
  for (const ItemSet* other : runs) {
    if (other->items.size() != first.items.size()) {
      throw data_error("one run answered {} items of '{}' and another {}; answer the same ones with both.",
                       first.items.size(), first.name, other->items.size());
    }
    for (std::size_t i = 0; i < first.items.size(); ++i) {
      const Item &a = first.items[i], &b = other->items[i];
      if (a.id == b.id && a.subject == b.subject && a.answer == b.answer) continue;
      throw data_error(
          "item {} of '{}' is '{}' in one run and '{}' in another, or has another answer; answer the same "
          "ones with both.",
          i + 1, first.name, a.id, b.id);
    }
  }
}

SubjectComparison compare_subject(const std::string& subject, bool all, const ItemSet& first,
                                  const ItemSet& other, std::size_t run) {
  SubjectComparison row{subject, run, 0, 0, 0, 0, 0, 1, 1};
  for (std::size_t i = 0; i < first.items.size(); ++i) {
    if (!all && first.items[i].subject != subject) continue;
    const bool a = first.items[i].prediction.right, b = other.items[i].prediction.right;
    ++row.items;
    row.first_accuracy += a ? 1 : 0;
    row.other_accuracy += b ? 1 : 0;
    row.only_first += a && !b ? 1 : 0;
    row.only_other += b && !a ? 1 : 0;
  }
  row.first_accuracy /= static_cast<double>(row.items);
  row.other_accuracy /= static_cast<double>(row.items);
  row.p = row.holm_p = stats::mcnemar_test(row.only_first, row.only_other);
  return row;
}

std::vector<SubjectComparison> compare_subjects(const Runs& runs) {
  const auto subjects = calibrate_subjects(runs.front()->items);  // none where all have one subject
  std::vector<SubjectComparison> rows;
  for (std::size_t run = 1; run < runs.size(); ++run) {
    rows.push_back(compare_subject("all", true, *runs.front(), *runs[run], run));
    if (subjects.empty()) continue;
    std::vector<double> p;
    const std::size_t begin = rows.size();
    for (const auto& [subject, figures] : subjects) {
      rows.push_back(compare_subject(subject, false, *runs.front(), *runs[run], run));
      p.push_back(rows.back().p);
    }
    const std::vector<double> adjusted = stats::holm(p);
    for (std::size_t i = 0; i < adjusted.size(); ++i) rows[begin + i].holm_p = adjusted[i];
  }
  return rows;
}

Risks risks_of(const Runs& runs, const Consistency& consistency, const RiskLimits& limits) {
  std::map<std::string, std::vector<Prediction>> by_subject;
  for (const ItemSet* run : runs) {
    for (const Item& item : run->items) by_subject[item.subject].push_back(item.prediction);
  }
  std::map<std::string, double> ece;
  for (const auto& [subject, predictions] : by_subject) ece[subject] = measure_calibration(predictions).ece;
  Risks risks;
  for (std::size_t i = 0; i < runs.front()->items.size(); ++i) {
    const Item& item = runs.front()->items[i];
    const std::size_t wrong = item.prediction.right ? 0 : 1;
    double confidence = 0;
    for (const ItemSet* run : runs) confidence += run->items[i].prediction.confidence;
    risks.wrong += wrong;
    if (consistency.most_common[i] < limits.consistency ||
        confidence / static_cast<double>(runs.size()) < limits.confidence || ece[item.subject] < limits.ece)
      continue;
    risks.ids.push_back(item.id);
    risks.flagged_wrong += wrong;
  }
  const auto hits = static_cast<double>(risks.flagged_wrong);
  if (!risks.ids.empty()) risks.precision = hits / static_cast<double>(risks.ids.size());
  if (risks.wrong > 0) risks.recall = hits / static_cast<double>(risks.wrong);
  return risks;
}

SetComparison compare_set(const Runs& runs, const RiskLimits& limits) {
  require_same_items(runs);
  SetComparison result;
  result.name = runs.front()->name;
  std::vector<std::vector<int>> answers;
  for (const ItemSet* run : runs) {
    answers.emplace_back();
    for (const Item& item : run->items) answers.back().push_back(item.choice);
  }
  result.consistency = consistency_of(answers);
  result.subjects = compare_subjects(runs);
  result.risks = risks_of(runs, result.consistency, limits);
  return result;
}

}  // namespace

std::vector<SetComparison> compare_items(const std::vector<std::vector<ItemSet>>& runs,
                                         const RiskLimits& limits) {
  if (runs.size() < 2) throw data_error("a comparison needs the items of two runs or more.");
  std::vector<SetComparison> result;
  for (const ItemSet& set : runs.front()) {
    Runs of_set;
    for (const std::vector<ItemSet>& run : runs) {
      const auto found = std::ranges::find(run, set.name, &ItemSet::name);
      if (found == run.end() || run.size() != runs.front().size()) {
        throw data_error(
            "'{}' was not answered by every run, or one answered more sets; answer the same ones with all.",
            set.name);
      }
      of_set.push_back(&*found);
    }
    result.push_back(compare_set(of_set, limits));
  }
  return result;
}

}  // namespace mulligan::calibration
