// Calls of kernels in which rows of tokens can be told from all else: what row_invariance_test.cpp probes.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <ostream>
#include <set>
#include <string>
#include <vector>

#include "tests/kernels/backend_fixture.h"

namespace mulligan::kernel_test {

// One call of a kernel at a shape that depends on the number of sequences.
struct RowCase {
  std::string kernel;
  // "x:Td weight:d/f y:Td": argument : extents / dtype. T is sequences times `length`, every other letter has one
  // extent always (row_probe.cpp). An argument whose first extent is T has rows; a written one without T is a
  // sum over rows. Dtypes: none = the compute dtype, f = f32, d = f64, i = i32, l = i64. C: the boundaries of the
  // sequences (cu_seqlens).
  std::string arguments;
  std::string attributes = {};  // "eps=1e-6 transpose_b=1"; row_length is `length`, any other left out is 0
  std::int64_t length = 5;      // tokens of a sequence
  bool f16 = true;              // false: the kernel takes no f16
};

inline std::ostream& operator<<(std::ostream& out, const RowCase& row_case) {
  return out << row_case.kernel << " " << row_case.arguments;
}

// Adds cases to row_cases(): in the test of a kernel, those of the kernel.
struct RegisterRows {
  RegisterRows(std::initializer_list<RowCase> cases);
};

// All that the tests of this program registered.
const std::vector<RowCase>& row_cases();

inline constexpr const char* norm_attributes = "scale=0.7 eps=1e-6";

// A row case made into calls: random numbers of 128 sequences; a call takes some of them.
class RowProbe {
 public:
  // `dtype`: the compute dtype; `accumulate`: every attribute accumulate_... is 1.
  RowProbe(const RowCase& row_case, const Signature& signature, mlg_dtype dtype, bool accumulate);

  // Sequences [first, first + count).
  KernelCall call(std::int64_t first, std::int64_t count) const;
  // Written arguments with a row for each token.
  const std::set<std::string>& rows() const { return rows_; }
  // Bytes of the rows of sequence `sequence` (counted within the call) in a result of such a call.
  std::vector<std::byte> rows_of(const KernelResult& result, const std::string& name,
                                 std::int64_t sequence) const;
  bool accumulates() const { return accumulates_; }

 private:
  struct Argument {
    mlg_dtype dtype;
    std::vector<std::int64_t> shape;  // the first extent of one with rows: `length` times 128
    std::vector<double> values;
    bool has_rows = false, boundaries = false;
  };
  std::string kernel_;
  std::int64_t length_;
  std::map<std::string, Argument> arguments_;
  std::map<std::string, double> attributes_;
  std::set<std::string> rows_;
  bool accumulates_ = false;
};

inline constexpr std::int64_t kMostSequences = 128;

}  // namespace mulligan::kernel_test
