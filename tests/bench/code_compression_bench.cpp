// Bytes and seconds of codes by the coder, Brotli and ZPAQ, by role (docs/artifact.md has figures and commands):
//
//   code_compression_bench ARTIFACT...               the int codes of artifacts
//   code_compression_bench --gaussian ROWS COLUMNS   codes of normal rows at the record's three clip widths
//
// "entropy" is what an ideal coder without memory needs: that of the histogram of the role's codes. Brotli gets
// the codes as bytes, row by row and transposed, and the smaller result counts. zpaq is lrzip -z -L 9 (where it is
// installed) on the record's stream: transposed, with the rows of embedding, q and MLP up in the order of nearest
// neighbours, whose own bytes are named apart.
#include <fmt/format.h>

#include <array>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <map>
#include <random>

#include "framework/artifact/artifact_file.h"
#include "framework/artifact/code_coder.h"
#include "framework/artifact/compression.h"
#include "framework/artifact/role_streams.h"
#include "framework/core/child_process.h"
#include "framework/core/file.h"
#include "tests/support/scratch_folder.h"

namespace mulligan {
namespace {

struct Matrix {
  std::int64_t rows, columns;
  std::vector<std::int8_t> codes;
};
struct Group {
  std::string name;
  CodeRole role;
  std::vector<Matrix> matrices;
};

template <typename Body>
double cpu_seconds(Body&& body) {
  const std::clock_t start = std::clock();
  body();
  return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
}

double entropy_bytes(const Group& group) {
  std::array<double, 256> counts{};
  double total = 0;
  for (const Matrix& matrix : group.matrices) {
    for (const std::int8_t code : matrix.codes) ++counts[static_cast<std::uint8_t>(code)];
    total += static_cast<double>(matrix.codes.size());
  }
  double bits = 0;
  for (const double count : counts) {
    if (count > 0) bits += count * std::log2(total / count);
  }
  return bits / 8;
}

std::string zpaq(const std::string& bytes) {
  const test_support::ScratchFolder folder;
  const std::filesystem::path in = folder / "codes", out = in.string() + ".lrz";
  write_file_atomically(in, bytes);
  std::string packed;
  if (run_program({"lrzip", "-z", "-L", "9", "-Q", "-o", out.string(), in.string()}, {}) == 0)
    packed = read_file(out);
  return packed;
}

// The group's codes, each matrix transposed; with the record's orders of rows, which `orders` takes as u16.
std::string transposed_group(const Group& group, CodeStreams streams, std::string& orders) {
  std::string bytes;
  for (const Matrix& matrix : group.matrices) {
    std::vector<std::uint16_t> order;
    if (orders_rows(streams, group.role)) order = neighbour_order(matrix.codes, matrix.columns);
    orders.append(reinterpret_cast<const char*>(order.data()), 2 * order.size());
    bytes += transposed_codes(matrix.codes, matrix.columns, order);
  }
  return bytes;
}

void report(const Group& group) {
  std::vector<CodeMatrix> shapes;
  std::vector<std::int8_t> codes;
  for (const Matrix& matrix : group.matrices) {
    shapes.push_back({matrix.rows, matrix.columns, 0});
    codes.insert(codes.end(), matrix.codes.begin(), matrix.codes.end());
  }
  const auto count = static_cast<double>(codes.size());
  const double entropy = entropy_bytes(group);
  const auto line = [&](const char* name, double bytes, double encode, double decode,
                        const std::string& more = {}) {
    fmt::print("{:<18} {:<13} {:>11.0f} {:>+8.2f} % {:>8.4f} {:>8.1f} s {:>8} {}\n", group.name, name, bytes,
               100 * (bytes / entropy - 1), bytes * 8 / count, encode,
               decode > 0 ? fmt::format("{:.1f} MB/s", count / 1e6 / decode) : "", more);
    std::fflush(stdout);
  };
  line("entropy", entropy, 0, 0);
  std::string own;
  std::vector<std::int8_t> back;
  const double encode = cpu_seconds([&] { own = encode_codes(codes, shapes); });
  const double decode = cpu_seconds([&] { back = decode_codes(own, shapes); });
  if (back != codes) {
    fmt::print("{}: the codes do not come back\n", group.name);
    std::exit(1);
  }
  line("adaptive", static_cast<double>(own.size()), encode, decode);
  const std::string rows(reinterpret_cast<const char*>(codes.data()), codes.size());
  std::string orders, best;
  double seconds = 0;
  for (const std::string& bytes : {rows, transposed_group(group, CodeStreams::role, orders)}) {
    std::string packed;
    const double spent = cpu_seconds([&] { packed = compress(Compression::brotli, bytes); });
    if (!best.empty() && best.size() <= packed.size()) continue;
    best = std::move(packed);
    seconds = spent;
  }
  const double unpack = cpu_seconds([&] { decompress(Compression::brotli, best, codes.size()); });
  line("brotli", static_cast<double>(best.size()), seconds, unpack);
  if (std::system("command -v lrzip > /dev/null 2>&1") != 0) return;
  using Clock = std::chrono::steady_clock;  // of other processes; lrzip may use several cores
  const auto start = Clock::now();
  const std::string ordered = zpaq(transposed_group(group, CodeStreams::role_ordered, orders));
  const std::size_t order_bytes = orders.empty() ? 0 : compress(Compression::brotli, orders).size();
  const double wall = std::chrono::duration<double>(Clock::now() - start).count();
  line("zpaq", static_cast<double>(ordered.size() + order_bytes), wall, 0,
       fmt::format("of it orders {}", order_bytes));
}

std::vector<Group> groups_of(const std::vector<std::string>& artifacts) {
  std::map<CodeRole, Group> groups;
  for (const std::string& path : artifacts) {
    for (const QuantizedTensor& tensor : read_artifact(path).tensors) {
      if (tensor.format != TensorFormat::integer || tensor.codes.empty()) continue;
      const CodeRole role = code_role(tensor.name);
      Group& group = groups[role];
      group.name = code_role_word(role);
      group.role = role;
      const std::int64_t rows = tensor.elements() / tensor.columns();
      group.matrices.push_back({rows, static_cast<std::int64_t>(tensor.codes.size()) / rows, tensor.codes});
    }
  }
  std::vector<Group> list;
  for (auto& [role, group] : groups) list.push_back(std::move(group));
  return list;
}

// clip_sigmas and bits of the record's embedding, MLP and attention.
std::vector<Group> gaussian_groups(std::int64_t rows, std::int64_t columns) {
  struct Step {
    const char* name;
    CodeRole role;
    double clip;
    int qmax;
  };
  std::vector<Group> groups;
  std::mt19937_64 random(2014);
  for (const Step& step : {Step{"normal, 0.222", CodeRole::embedding, 14, 63},
                           Step{"normal, 0.371", CodeRole::mlp_down, 11.5, 31},
                           Step{"normal, 0.419", CodeRole::attention_output, 13, 31}}) {
    Matrix matrix{rows, columns, {}};
    std::normal_distribution<double> normal;
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const double code = std::nearbyint(normal(random) * step.qmax / step.clip);
      matrix.codes.push_back(static_cast<std::int8_t>(std::clamp<double>(code, -step.qmax, step.qmax)));
    }
    groups.push_back({step.name, step.role, {std::move(matrix)}});
  }
  return groups;
}

int run(const std::vector<std::string>& arguments) {
  const bool gaussian = arguments.size() == 3 && arguments[0] == "--gaussian";
  if (arguments.empty() || (arguments[0].starts_with("--") && !gaussian)) {
    fmt::print(stderr, "usage: code_compression_bench ARTIFACT... | --gaussian ROWS COLUMNS\n");
    return 2;
  }
  fmt::print("{:<18} {:<13} {:>11} {:>10} {:>8} {:>10} {:>13}\n", "codes", "compressor", "bytes", "entropy",
             "bits", "to pack", "to unpack");
  for (const Group& group : gaussian ? gaussian_groups(std::stoll(arguments[1]), std::stoll(arguments[2]))
                                     : groups_of(arguments)) {
    report(group);
  }
  return 0;
}

}  // namespace
}  // namespace mulligan

int main(int count, char** words) {
  try {
    return mulligan::run({words + 1, words + count});
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 3;
  }
}
