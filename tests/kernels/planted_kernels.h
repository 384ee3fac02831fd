// Kernels with a planted fault each: run on the backend under test in every order of threads, which must say what is wrong.
#pragma once

#include <mulligan/backend.hpp>

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <span>

#include "tests/kernels/backend_fixture.h"
#include "tests/support/sentence.h"

namespace mulligan::kernel_test {

// Fault `number` of a kernel, and what is said about it; in some orders of threads something else.
struct PlantedFault {
  const char* what;
  const char* kernel;
  int number;
  const char* said;
  const char* or_said = said;
};

// The backend with these kernels, the same at each call, made once for each variant.
inline BackendFixture& backend_with_kernels(std::span<const mlg_kernel> kernels, int variant) {
  static std::map<int, std::unique_ptr<BackendFixture>> fixtures;
  auto& fixture = fixtures[variant];
  if (!fixture) {
    fixture = std::make_unique<BackendFixture>(backend_under_test(variant));
    sdk::check(fixture->table().add_kernels(fixture->instance(), kernels.data(),
                                            static_cast<std::uint32_t>(kernels.size()), 0));
  }
  return *fixture;
}

// finding(kernel, number, variant): what is said. All of `always` stand in it, too.
template <typename Finding>
void expect_each_is_found(std::span<const PlantedFault> faults, const Finding& finding,
                          const std::vector<std::string>& always = {}) {
  for (const PlantedFault& fault : faults) {
    for (const int variant : {1, 2, 3}) {
      const std::string found = finding(fault.kernel, fault.number, variant);
      EXPECT_TRUE(found.find(fault.said) != found.npos || found.find(fault.or_said) != found.npos)
          << fault.what << ", order " << variant << ": " << found;
      for (const std::string& part : always) EXPECT_TRUE(contains(found, part)) << fault.what;
    }
  }
}

}  // namespace mulligan::kernel_test
