// Reverse-mode differentiation in double for the tests' reference formulas: exact gradients from the
// forward formula alone, derived independently of the kernels' backward formulas (and itself checked
// against finite differences).
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

namespace mulligan::kernel_test {

// Operations in order; node i depends on at most two earlier nodes (-1: none).
class Tape {
 public:
  static Tape& current() {
    thread_local Tape tape;
    return tape;
  }
  void clear() { nodes_.clear(); }
  std::int64_t add(std::int64_t a, double da, std::int64_t b, double db) {
    nodes_.push_back({a, b, da, db});
    return static_cast<std::int64_t>(nodes_.size()) - 1;
  }
  // d/d(node) of sum over nodes of seed[node] * value[node]; `seed` has one entry per node.
  std::vector<double> gradients(std::vector<double> seed) const {
    for (std::size_t i = nodes_.size(); i-- > 0;) {
      const Node& node = nodes_[i];
      if (node.a >= 0) seed[node.a] += node.da * seed[i];
      if (node.b >= 0) seed[node.b] += node.db * seed[i];
    }
    return seed;
  }
  std::size_t size() const { return nodes_.size(); }

 private:
  struct Node {
    std::int64_t a, b;
    double da, db;
  };
  std::vector<Node> nodes_;
};

// A double that records what is done with it. index -1: a constant.
struct Var {
  double value = 0;
  std::int64_t index = -1;

  Var() = default;
  Var(double v) : value(v) {}  // NOLINT: constants mix freely with variables
  static Var input(double v) {
    Var x(v);
    x.index = Tape::current().add(-1, 0, -1, 0);
    return x;
  }
};

inline Var record(double value, Var a, double da, Var b = Var(), double db = 0) {
  Var result(value);
  if (a.index >= 0 || b.index >= 0) result.index = Tape::current().add(a.index, da, b.index, db);
  return result;
}

inline Var operator+(Var a, Var b) {
  return record(a.value + b.value, a, 1, b, 1);
}
inline Var operator-(Var a, Var b) {
  return record(a.value - b.value, a, 1, b, -1);
}
inline Var operator*(Var a, Var b) {
  return record(a.value * b.value, a, b.value, b, a.value);
}
inline Var operator/(Var a, Var b) {
  return record(a.value / b.value, a, 1 / b.value, b, -a.value / (b.value * b.value));
}
inline Var operator-(Var a) {
  return record(-a.value, a, -1);
}
inline Var& operator+=(Var& a, Var b) {
  return a = a + b;
}
inline Var& operator*=(Var& a, Var b) {
  return a = a * b;
}
inline bool operator>(Var a, Var b) {
  return a.value > b.value;
}
inline bool operator<(Var a, Var b) {
  return a.value < b.value;
}
inline Var exp(Var a) {
  return record(std::exp(a.value), a, std::exp(a.value));
}
inline Var log(Var a) {
  return record(std::log(a.value), a, 1 / a.value);
}
inline Var sqrt(Var a) {
  return record(std::sqrt(a.value), a, 0.5 / std::sqrt(a.value));
}
inline Var tanh(Var a) {
  const double t = std::tanh(a.value);
  return record(t, a, 1 - t * t);
}

inline double value_of(double x) {
  return x;
}
inline double value_of(Var x) {
  return x.value;
}

}  // namespace mulligan::kernel_test
