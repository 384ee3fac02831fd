#include "framework/core/alternate_stack.h"

#include <mulligan/alternate_stack.hpp>

namespace mulligan {

void install_alternate_stack() {
  thread_local const sdk::AlternateStack stack;
  static_cast<void>(stack);
}

}  // namespace mulligan
