// The challenge's rule for a new record: better than the reference by at least 0.005 nats per
// token, at p < 0.01.
#pragma once

#include <string>
#include <vector>

#include "tools/stats/t_tests.h"

namespace mulligan::stats {

struct AcceptanceRule {
  double margin_nats = 0.005;
  double alpha = 0.01;
  // Bytes of text per token of the scored data: nats per token = bits per byte * ln 2 * bytes per token.
  double bytes_per_token = 0;
  bool paired = false;  // value i of both comes from the same seed and shares its randomness
};

struct Acceptance {
  bool accepted = false;
  TTest test;             // in nats per token: reference minus new, against the margin
  Interval interval_bpb;  // of the difference, 95 %
  double difference_bpb = 0;
  std::string decision;            // one sentence: ACCEPT or REJECT, and why
  std::vector<std::string> notes;  // what a reader must know
};

// Bits per byte of the new runs, two or more, against those of the reference: two runs or more by Welch's
// test (or the paired one), a single published number as if it had no error, which is
// noted. Throws std::invalid_argument.
Acceptance accept_record(const std::vector<double>& new_bpb, const std::vector<double>& reference_bpb,
                         const AcceptanceRule& rule);

// Whether some run was counted more than once: all values are equal, or two that were not rounded (more than six
// decimals). No two runs come to the same figure to the last digit, so their spread says nothing of chance.
bool counts_a_run_twice(const std::vector<double>& values);

// Which of the values stand out upwards: by more than five median absolute deviations from the median, or by more than
// 0.02 (bits per byte). Of fewer than three values only the second. They are reported, never left out.
std::vector<std::size_t> collapsed_values(const std::vector<double>& bpb);

}  // namespace mulligan::stats
