// Takes the place of include/mulligan/alternate_stack.hpp in an evaluation, which handles no signals.
#pragma once

namespace mulligan::sdk {

struct AlternateStack {
  AlternateStack() {}
};
inline void install_alternate_stack() {}

}  // namespace mulligan::sdk
