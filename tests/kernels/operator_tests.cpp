#include "tests/kernels/operator_tests.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>

#include "tests/kernels/backend_fixture.h"
#include "tests/kernels/reference.h"
#include "tests/support/long_tests.h"

namespace mulligan::kernel_test {
namespace {

constexpr double kUnset = std::numeric_limits<double>::quiet_NaN();

bool is_slow() {
  return backend_with_threads(1).is_slow();
}

std::vector<std::set<std::string>> every_subset(const std::vector<std::string>& optional) {
  std::vector<std::set<std::string>> result;
  for (std::size_t bits = 0; bits < (std::size_t{1} << optional.size()); ++bits) {
    std::set<std::string>& chosen = result.emplace_back();
    for (std::size_t i = 0; i < optional.size(); ++i) {
      if (bits >> i & 1) chosen.insert(optional[i]);
    }
  }
  return result;
}

// Every subset of at most three arguments, and with --long of any number. Of more: none, all and each alone, in which any two
// occur in all four ways. Of a slow backend all and none.
std::vector<std::set<std::string>> subsets(const std::vector<std::string>& optional) {
  if (is_slow() && !optional.empty()) return {{}, {optional.begin(), optional.end()}};
  if (optional.size() <= 3 || long_tests()) return every_subset(optional);
  std::vector<std::set<std::string>> result = {{}, {optional.begin(), optional.end()}};
  for (const std::string& name : optional) result.push_back({name});
  return result;
}

const Operand* find(const std::vector<Operand>& operands, const std::string& name) {
  const auto found = std::find_if(operands.begin(), operands.end(), [&](auto& o) { return o.name == name; });
  return found == operands.end() ? nullptr : &*found;
}

std::string joined(const std::set<std::string>& names) {
  std::string text;
  for (const std::string& name : names) text += " " + name;
  return text;
}

std::string describe(const Case& c, mlg_dtype dtype) {
  std::string text = dtype_name(dtype);
  for (const Operand& operand : c.inputs) {
    text += " " + operand.name + "[";
    for (const std::int64_t extent : operand.shape) text += std::to_string(extent) + ",";
    text.back() = ']';
  }
  for (const auto& [name, value] : c.attributes) text += " " + name + "=" + std::to_string(value);
  return text;
}

NormalNumbers cotangent_numbers(13);
NormalNumbers numbers_before(14);  // what gradients are added to

// What the arguments of a backward kernel stand for.
struct BackwardRoles {
  std::map<std::string, std::string> cotangents;  // argument -> forward output
  std::map<std::string, std::string> gradients;   // argument -> forward input
  std::set<std::string> saved;                    // arguments that are forward inputs or outputs

  BackwardRoles(const Operator& op, const Case& c, const Signature& signature) {
    for (const Parameter& parameter : signature.arguments) {
      const auto renamed = op.backward_names.find(parameter.name);
      const std::string role = renamed == op.backward_names.end() ? parameter.name : renamed->second;
      const std::string base = role.empty() || role[0] != 'd' ? "" : role.substr(1);
      if (parameter.written && find(c.inputs, base)) {
        gradients[parameter.name] = base;
      } else if (!parameter.written && find(c.outputs, base) && !find(c.inputs, role)) {
        cotangents[parameter.name] = base;
      } else if (find(c.inputs, role) || find(c.outputs, role)) {
        saved.insert(parameter.name);
      } else {
        throw std::invalid_argument(op.backward + ": the test does not know what " + parameter.name + " is");
      }
    }
  }
};

class OperatorTest : public ::testing::Test {
 public:
  explicit OperatorTest(const Operator& op) : op_(op) {}

 protected:
  double tolerance(mlg_dtype dtype) const {
    return dtype == MLG_BF16 ? op_.tolerance_bf16 : dtype == MLG_F16 ? op_.tolerance_f16 : op_.tolerance_f32;
  }

  std::vector<std::string> optional_inputs() const {
    std::vector<std::string> names;
    for (const Parameter& p : backend_with_threads(1).signature(op_.forward).arguments) {
      if (p.optional && p.read) names.push_back(p.name);
    }
    return names;
  }

  // Required inputs and the chosen optional ones.
  std::set<std::string> with_required(const Case& c, const std::set<std::string>& chosen) const {
    const std::vector<std::string> optional = optional_inputs();
    std::set<std::string> present = chosen;
    for (const Operand& operand : c.inputs) {
      if (!std::count(optional.begin(), optional.end(), operand.name)) present.insert(operand.name);
    }
    return present;
  }

  // Runs with one, two and three threads: bit for bit the same. Compares with the reference backend, where
  // there is one. Returns the first result.
  static KernelResult run(const KernelCall& call, double tolerance) {
    KernelResult first = backend_with_threads(1).run(call);
    for (int threads = 2; threads <= (is_slow() ? 2 : 3); ++threads) {
      const KernelResult other = backend_with_threads(threads).run(call);
      for (const auto& [name, bytes] : first.bytes) {
        EXPECT_TRUE(bytes == other.bytes.at(name))
            << call.kernel << ": " << name << " differs between 1 and " << threads << " threads";
      }
    }
    if (BackendFixture* reference = reference_backend()) {
      for (const auto& [name, array] : reference->run(call).written) {
        // What both rounded to 16 bits may lie one step apart, where the exact number is next to a tie.
        const double step = array.dtype == MLG_BF16 ? 0x1p-7 : array.dtype == MLG_F16 ? 0x1p-10 : 0.0;
        EXPECT_EQ(difference(first.written.at(name), array.values, std::max(tolerance, step)), "")
            << call.kernel << ": " << name << " differs from the other backend's";
      }
    }
    return first;
  }

  static std::int64_t elements_of(const Case& c) {
    std::int64_t elements = 0;
    for (const Operand& operand : c.inputs) elements += element_count(operand.shape);
    return elements;
  }

  // body(case, dtype, present inputs) for everything there is to try.
  template <typename Body>
  void for_each_setting(Body&& body) {
    constexpr std::int64_t kLong = 4000;  // elements
    std::int64_t shortest = std::numeric_limits<std::int64_t>::max();
    for (const Case& c : op_.cases) shortest = std::min(shortest, elements_of(c));
    int tried = 0;
    for (const Case& c : op_.cases) {
      if (is_slow() && elements_of(c) > std::max(kLong, shortest)) continue;
      if (leaves_out_forms() && ++tried > 2) break;
      for (const mlg_dtype dtype : op_.dtypes) {
        for (const std::set<std::string>& chosen : subsets(optional_inputs())) {
          if (left_out(dtype, chosen)) continue;
          SCOPED_TRACE(describe(c, dtype) + ", optional inputs:" + joined(chosen));
          body(c, dtype, with_required(c, chosen));
          if (HasFailure()) return;
        }
      }
    }
  }

  // Of a slow backend, which compiles a kernel for each of them: f16, bf16 but with all arguments, a third shape, and
  // all but one of many arguments.
  static bool leaves_out_forms() { return is_slow() && !all_forms(); }
  bool left_out(mlg_dtype dtype, const std::set<std::string>& chosen) const {
    if (!leaves_out_forms() || op_.dtypes.size() == 1 || dtype == MLG_F32) return false;
    return dtype == MLG_F16 || chosen.size() < optional_inputs().size();
  }

  KernelCall forward_call(const Case& c, const Arrays& inputs, mlg_dtype dtype,
                          const std::set<std::string>& absent_outputs) const {
    KernelCall call{.kernel = op_.forward, .arguments = inputs, .attributes = c.attributes};
    for (const Operand& output : c.outputs) {
      if (absent_outputs.count(output.name) || call.arguments.count(output.name)) continue;
      // An optional inout argument that was left out of the inputs is left out altogether.
      if (find(c.inputs, output.name)) continue;
      call.arguments[output.name] = {dtype_of(output, dtype), output.shape, {}};
    }
    return call;
  }

  // Settings come case by case.
  Arrays make_inputs(const Case& c, mlg_dtype dtype, const std::set<std::string>& present,
                     std::uint64_t seed) const {
    if (!drawn_ || !drawn_->are_of(c, seed)) drawn_.emplace(c, seed);
    return drawn_->rounded(dtype, present);
  }

  const Operator& op_;

 private:
  mutable std::optional<DrawnInputs> drawn_;
};

class ForwardTest : public OperatorTest {
 public:
  using OperatorTest::OperatorTest;

  void TestBody() override {
    std::vector<std::string> optional_outputs;
    for (const Parameter& p : backend_with_threads(1).signature(op_.forward).arguments) {
      if (p.optional && !p.read) optional_outputs.push_back(p.name);
    }
    for_each_setting([&](const Case& c, mlg_dtype dtype, const std::set<std::string>& present) {
      const Arrays inputs = make_inputs(c, dtype, present, 11);
      const Arrays expected = reference_outputs(op_, c, inputs, dtype);
      for (const std::set<std::string>& absent : subsets(optional_outputs)) {
        const KernelResult result = run(forward_call(c, inputs, dtype, absent), tolerance(dtype));
        for (const auto& [name, array] : result.written) {
          EXPECT_EQ(difference(array, expected.at(name).values, tolerance(dtype)), "")
              << op_.forward << " " << name;
        }
      }
    });
  }
};

class BackwardTest : public OperatorTest {
 public:
  using OperatorTest::OperatorTest;

  void TestBody() override {
    for_each_setting([&](const Case& c, mlg_dtype dtype, const std::set<std::string>& present) {
      const Signature signature = backend_with_threads(1).signature(op_.backward);
      const BackwardRoles roles(op_, c, signature);
      const Arrays inputs = make_inputs(c, dtype, present, 12);
      const Arrays outputs = reference_outputs(op_, c, inputs, dtype);
      const TracedFormula formula(op_, c, inputs);
      const Arrays all_cotangents = make_cotangents(c, roles, dtype);
      std::map<std::set<std::string>, Arrays> by_cotangents;  // what choices with the same ones share
      for (const Choice& choice : argument_choices(c, signature, roles, present)) {
        const std::set<std::string>& arguments = choice.arguments;
        Arrays cotangents;
        std::set<std::string> given;
        for (const auto& [name, cotangent] : all_cotangents) {
          if (!arguments.count(name)) continue;
          cotangents[name] = cotangent;
          given.insert(name);
        }
        Arrays& gradients = by_cotangents[given];
        if (gradients.empty()) gradients = formula.gradients(of_outputs(cotangents, roles));
        for (const bool accumulate : choice.accumulate) {
          SCOPED_TRACE("backward arguments:" + joined(arguments) + (accumulate ? ", accumulating" : ""));
          compare(c, signature, roles, arguments, inputs, outputs, cotangents, gradients, accumulate, dtype);
        }
      }
    });
  }

 private:
  // Arguments to call with, once for each entry of `accumulate`.
  struct Choice {
    std::set<std::string> arguments;
    std::vector<bool> accumulate = {false, true};
  };

  // Every choice of optional arguments that makes sense (no gradient of an absent input, at least one cotangent).
  std::vector<Choice> argument_choices(const Case& c, const Signature& signature, const BackwardRoles& roles,
                                       const std::set<std::string>& present_inputs) const {
    std::set<std::string> required;
    std::vector<std::string> optional;
    for (const Parameter& p : signature.arguments) {
      const auto gradient = roles.gradients.find(p.name);
      const std::string needs = gradient == roles.gradients.end() ? p.name : gradient->second;
      if (!p.optional) {
        required.insert(p.name);
      } else if (roles.saved.count(p.name)) {
        if (present_inputs.count(p.name)) required.insert(p.name);
      } else if (roles.cotangents.count(p.name) || present_inputs.count(needs)) {
        optional.push_back(p.name);
      }
    }
    const bool whole = present_inputs.size() == c.inputs.size();
    std::vector<Choice> choices;
    for (Choice choice : selections(optional, roles, c, whole)) {
      choice.arguments.insert(required.begin(), required.end());
      const bool driven = std::any_of(roles.cotangents.begin(), roles.cotangents.end(),
                                      [&](auto& entry) { return choice.arguments.count(entry.first); });
      if (driven) choices.push_back(std::move(choice));
    }
    return choices;
  }

  // Shapes at which every subset costs little. Of the others --long tries every subset.
  static bool small(const Case& c) { return !is_slow() && (elements_of(c) <= 6000 || long_tests()); }
  // Shapes at which each choice is made overwriting and accumulating, and next to every choice of inputs.
  static bool thorough(const Case& c) { return elements_of(c) <= 2000 || long_tests() || all_forms(); }

  // Every subset of up to six optional arguments; of more, and at large shapes: all, all but one (where forms are not
  // left out), and each gradient alone. Of these, beyond thorough shapes: all, overwriting and accumulating; the others only
  // next to all inputs (`whole`; at large shapes alone), each once, a gradient's own presence in turns in one of two ways and
  // its absence in the other. What a choice takes out of a kernel or puts into it, the thorough shapes have found to be right; a
  // large shape is there for its loops, its slices, and its sums over many rows, through which every argument goes in either way.
  // Where forms are left out, those of one gradient stand at the first shape alone.
  std::vector<Choice> selections(const std::vector<std::string>& optional, const BackwardRoles& roles,
                                 const Case& c, bool whole) const {
    std::vector<Choice> result;
    if (optional.size() <= (small(c) ? 6 : 2)) {
      for (const std::set<std::string>& one : is_slow() ? subsets(optional) : every_subset(optional))
        result.push_back({one});
      return result;
    }
    const std::set<std::string> all(optional.begin(), optional.end());
    result.push_back({all});
    if (leaves_out_forms() ? &c != &op_.cases.front() : !thorough(c) && !small(c) && !whole) return result;
    bool turn = false;
    for (const std::string& name : optional) {
      turn = !turn;
      const auto once = [&](bool way) {
        return thorough(c) ? std::vector<bool>{false, true} : std::vector<bool>{way};
      };
      if (!leaves_out_forms()) {
        result.push_back({all, once(turn)});
        result.back().arguments.erase(name);
      }
      if (roles.cotangents.count(name)) continue;
      std::set<std::string> alone = {name};
      for (const auto& [cotangent, output] : roles.cotangents) {
        if (all.count(cotangent)) alone.insert(cotangent);
      }
      result.push_back({std::move(alone), once(!turn)});
    }
    return result;
  }

  // By argument of the backward kernel.
  Arrays make_cotangents(const Case& c, const BackwardRoles& roles, mlg_dtype dtype) const {
    std::size_t drawn = 0;
    Arrays cotangents;
    for (const auto& [argument, output] : roles.cotangents) {
      const Operand& operand = *find(c.outputs, output);
      const bool f32 = op_.f32_cotangents.count(argument) > 0;
      Array array{f32 ? MLG_F32 : dtype_of(operand, dtype), operand.shape, {}};
      const std::size_t begin = drawn, end = drawn += element_count(operand.shape);
      const std::vector<double>& numbers = cotangent_numbers.first(end);
      for (std::size_t i = begin; i < end; ++i) array.values.push_back(round_to(array.dtype, numbers[i]));
      cotangents[argument] = std::move(array);
    }
    return cotangents;
  }

  // By output of the forward kernel: the sum of the arguments that stand for it.
  static Arrays of_outputs(const Arrays& cotangents, const BackwardRoles& roles) {
    Arrays sums;
    for (const auto& [argument, array] : cotangents) {
      const auto [sum, is_first] = sums.try_emplace(roles.cotangents.at(argument), array);
      for (std::size_t i = 0; !is_first && i < array.values.size(); ++i)
        sum->second.values[i] += array.values[i];
    }
    return sums;
  }

  void compare(const Case& c, const Signature& signature, const BackwardRoles& roles,
               const std::set<std::string>& arguments, const Arrays& inputs, const Arrays& outputs,
               const Arrays& cotangents, const Arrays& gradients, bool accumulate, mlg_dtype dtype) const {
    KernelCall call{.kernel = op_.backward, .arguments = {}};
    std::map<std::string, std::vector<double>> expected;
    std::size_t drawn = 0;
    for (const std::string& name : arguments) {
      if (roles.saved.count(name)) {
        call.arguments[name] = inputs.count(name) ? inputs.at(name) : outputs.at(name);
      } else if (roles.cotangents.count(name)) {
        call.arguments[name] = cotangents.at(name);
      } else {
        const Array& gradient = gradients.at(roles.gradients.at(name));
        const std::string flag = "accumulate_" + name;
        const bool has_flag = signature.has_attribute(flag);
        if (has_flag) call.attributes[flag] = accumulate ? 1 : 0;
        // What the kernel must add to holds numbers; what it must overwrite holds NaN.
        const bool adds = signature.find(name)->read && (accumulate || !has_flag);
        Array array{gradient_dtype(c, name, roles, dtype), gradient.shape, {}};
        const std::size_t count = gradient.values.size();
        std::vector<double>& sum = expected[name] = gradient.values;
        if (adds) {
          const std::vector<double>& numbers = numbers_before.first(drawn + count);
          array.values.reserve(count);
          for (std::size_t i = 0; i < count; ++i) {
            array.values.push_back(round_to(array.dtype, numbers[drawn + i]));
            sum[i] += array.values[i];
          }
          drawn += count;
        } else {
          array.values.assign(count, kUnset);
        }
        call.arguments[name] = std::move(array);
      }
    }
    for (const std::string& name : signature.attributes) {
      if (call.attributes.count(name)) continue;
      const auto forward = c.attributes.find(name);  // an absent gradient's flag has no effect
      call.attributes[name] = forward == c.attributes.end() ? 0 : forward->second;
    }
    const KernelResult result = run(call, tolerance(dtype));
    for (const auto& [name, values] : expected) {
      EXPECT_EQ(difference(result.written.at(name), values, tolerance(dtype)), "")
          << op_.backward << " " << name;
    }
  }

  // Gradients have their input's dtype, except those of matrices that only a kernel of their own
  // adds to (embedding).
  mlg_dtype gradient_dtype(const Case& c, const std::string& name, const BackwardRoles& roles,
                           mlg_dtype dtype) const {
    const auto fixed = op_.f32_gradients.find(name);
    return fixed != op_.f32_gradients.end() ? MLG_F32
                                            : dtype_of(*find(c.inputs, roles.gradients.at(name)), dtype);
  }
};

class FiniteDifferenceTest : public OperatorTest {
 public:
  using OperatorTest::OperatorTest;

  // The gradients that BackwardTest compares with are those of the formula.
  void TestBody() override {
    std::int64_t compared = 0;
    for (const Case& c : op_.cases) {
      if (elements_of(c) > 1500) continue;
      for (const std::set<std::string>& chosen : subsets(optional_inputs())) {
        SCOPED_TRACE(describe(c, MLG_F64) + ", optional inputs:" + joined(chosen));
        compared += compare(c, with_required(c, chosen));
      }
    }
    EXPECT_GT(compared, 0) << op_.forward << " needs a case of at most 1500 input elements";
  }

 private:
  std::int64_t compare(const Case& c, const std::set<std::string>& present) const {
    const BackwardRoles roles(op_, c, backend_with_threads(1).signature(op_.backward));
    const Arrays inputs = make_inputs(c, MLG_F32, present, 15);
    Random random(16);
    Arrays cotangents;
    for (const auto& [argument, output] : roles.cotangents) {
      const Operand& operand = *find(c.outputs, output);
      Array& array = cotangents[output] = {MLG_F64, operand.shape, {}};
      for (std::int64_t i = 0; i < element_count(operand.shape); ++i)
        array.values.push_back(normal()(random, i));
    }
    const Arrays gradients = TracedFormula(op_, c, inputs).gradients(cotangents);
    std::int64_t compared = 0;
    for (const auto& [argument, input] : roles.gradients) {
      if (!inputs.count(input)) continue;
      Array numeric{MLG_F64, inputs.at(input).shape, {}};
      for (std::size_t i = 0; i < inputs.at(input).values.size(); ++i) {
        numeric.values.push_back(
            finite_difference(op_, c, inputs, cotangents, input, static_cast<std::int64_t>(i)));
      }
      EXPECT_EQ(difference(numeric, gradients.at(input).values, 1e-6), "") << "d" << input;
      compared += static_cast<std::int64_t>(numeric.values.size());
    }
    return compared;
  }
};

class RefusalTest : public OperatorTest {
 public:
  using OperatorTest::OperatorTest;

  // Every argument of the forward kernel, made wrong alone, is refused before the first launch, by name.
  void TestBody() override {
    BackendFixture& backend = backend_with_threads(1);
    const Case& c = op_.cases.front();
    std::set<std::string> everything;
    for (const Operand& operand : c.inputs) everything.insert(operand.name);
    const Arrays inputs = make_inputs(c, op_.dtypes.front(), everything, 17);
    const KernelCall good = forward_call(c, inputs, op_.dtypes.front(), {});
    ASSERT_EQ(backend.refusal(good), "");
    for (const Parameter& parameter : backend.signature(op_.forward).arguments) {
      SCOPED_TRACE(op_.forward + " " + parameter.name);
      KernelCall call = good;
      call.arguments[parameter.name].dtype = MLG_U8;
      EXPECT_NE(backend.refusal(call).find("argument " + parameter.name), std::string::npos) << "dtype u8";
      if (!parameter.optional) {
        call = good;
        call.arguments.erase(parameter.name);
        EXPECT_NE(backend.refusal(call).find("argument " + parameter.name), std::string::npos) << "absent";
      }
      if (std::count(op_.free_extents.begin(), op_.free_extents.end(), parameter.name)) continue;
      call = good;
      call.arguments[parameter.name].shape.back() += 1;
      EXPECT_NE(backend.refusal(call).find("argument "), std::string::npos) << "last extent one too long";
    }
  }
};

template <typename Test>
void register_test(const std::shared_ptr<Operator>& op, const char* name) {
  ::testing::RegisterTest((op->suite.empty() ? op->forward : op->suite).c_str(), name, nullptr, nullptr,
                          __FILE__, __LINE__, [op]() -> OperatorTest* { return new Test(*op); });
}

}  // namespace

RegisterOperator::RegisterOperator(std::initializer_list<Operator> operators) {
  for (const Operator& op : operators) {
    const auto shared = std::make_shared<Operator>(op);
    CoversKernel::covered().insert(op.forward);
    register_test<ForwardTest>(shared, "Forward");
    register_test<RefusalTest>(shared, "WrongArgumentsAreRefused");
    if (op.backward.empty()) continue;
    CoversKernel::covered().insert(op.backward);
    register_test<BackwardTest>(shared, "Backward");
    register_test<FiniteDifferenceTest>(shared, "FiniteDifferences");
  }
}

std::set<std::string>& CoversKernel::covered() {
  static std::set<std::string> kernels;
  return kernels;
}

}  // namespace mulligan::kernel_test
