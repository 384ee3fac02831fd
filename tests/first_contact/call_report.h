// What is said of one call on a device against a reference.
#pragma once

#include <string>

#include "tests/first_contact/agreement.h"

namespace mulligan::first_contact {

enum class CallVerdict {
  agrees,
  differs,
  failed,        // the device refused or stopped it
  not_compared,  // it ran, and there was no reference or no time for one
  taken_over     // the reference computed it in the device's place
};
const char* verdict_name(CallVerdict verdict);

struct CallReport {
  CallVerdict verdict = CallVerdict::not_compared;
  std::string reference;  // "fp64, 576 elements", "cpu backend, every element"
  std::string argument;   // the one that lies furthest from what was expected
  double largest = 0, rms = 0;
  Limits limits;
  std::string sentence;  // what is wrong, or why nothing was compared
  bool stopped = false;  // the device takes no more calls
  double seconds = 0;    // of the call on the device, from start to end, its set-up included
};

// Holds one argument's agreement against its limits; the report keeps the argument that is furthest beyond its limits,
// or where all hold the one that is nearest to them.
void judge(CallReport& report, const std::string& reference, const std::string& name,
           const Agreement& agreement, const Limits& limits);

}  // namespace mulligan::first_contact
