// A CUDA launch states its kernel once (MLG_INSTANCE), and a kernel its constants (MLG_KERNEL): what does not
// go together is refused. A name or an instance that differs from the function that the emulated device runs
// cannot be written any more; that both are the same is shown here from the compilers' own names.
#include <mulligan/cuda/element_plan.hpp>

#include <cxxabi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <memory>
#include <typeinfo>

#include "tests/kernels/backend_fixture.h"
#include "tests/support/nvrtc.h"
#include "tests/support/sentence.h"

namespace mulligan::kernel_test {
namespace {

#include "launch_statements.cu.inc"

constexpr std::int64_t kCount = 256;

// A kernel whose plan the running test sets.
struct Kernel {
  static constexpr const char* name = "stated";
  static constexpr const char* signature = "in x, inout y; factor accumulate of_another";
  enum Argument : std::uint32_t { x, y };
  enum Attribute : std::uint32_t { factor, accumulate, of_another };
  static inline std::function<void(sdk::CudaCall&)> body;
  static void plan(sdk::CudaCall& call) { body(call); }
};

void launch_scale(sdk::CudaCall& call) {
  call.launch(MLG_INSTANCE(scale_elements, float, 4), {1, 1, 1}, {64, 1, 1}, call.tensor(Kernel::x),
              call.tensor(Kernel::y), kCount);
}

// All that the kernel needs.
void state(sdk::CudaCall& call) {
  call.numbers({Kernel::factor});
  call.flags({Kernel::accumulate});
  launch_scale(call);
}

KernelCall call_of(mlg_dtype dtype = MLG_F32) {
  Array x{dtype, {kCount}, std::vector<double>(kCount, 2.0)};
  return {"stated", {{"x", x}, {"y", x}}, {{"factor", 3}, {"accumulate", 1}, {"of_another", 0}}, {}};
}

BackendFixture& backend(const char* device) {
  static const mlg_kernel kernel = sdk::cuda_kernel<Kernel>(kSource);
  static std::map<std::string, std::unique_ptr<BackendFixture>> fixtures;
  auto& fixture = fixtures[device];
  if (!fixture) {
    fixture = std::make_unique<BackendFixture>(
        BackendUnderTest{plugin_file("cuda"), "", {{"device", '"' + std::string(device) + '"'}}, false});
    sdk::check(fixture->table().add_kernels(fixture->instance(), &kernel, 1, 0));
  }
  return *fixture;
}

// What the backend says when a call is prepared by `plan`; "" when it passes.
std::string refusal(std::function<void(sdk::CudaCall&)> plan, mlg_dtype dtype = MLG_F32) {
  Kernel::body = std::move(plan);
  return backend("emulated").refusal(call_of(dtype));
}

TEST(LaunchStatement, RunsWhatItStates) {
  Kernel::body = state;
  EXPECT_EQ(backend("emulated").run(call_of()).written.at("y").values.at(kCount - 1), 8.0);
}

// What a function does not name does not tell it from another call's.
TEST(LaunchStatement, AFunctionIsGivenTheConstantsThatItNames) {
  Kernel::body = [](sdk::CudaCall& call) {
    state(call);
    call.launch(MLG_INSTANCE(forgetful_scale), {1, 1, 1}, {64, 1, 1}, call.tensor(Kernel::x),
                call.tensor(Kernel::y), kCount);
  };
  const mlg_tensor tensor{nullptr, MLG_F32, 1, {kCount}};
  const mlg_tensor tensors[] = {tensor, tensor};
  const double attributes[] = {3, 0, 0};
  const mlg_launch launch{tensors, 2, attributes, nullptr, nullptr, nullptr};
  sdk::CudaCall call("stated", Kernel::signature, &launch);
  Kernel::body(call);
  auto* plan = static_cast<mlg_cuda_plan*>(call.take_plan());
  std::vector<std::vector<double>> given;
  for (std::uint32_t i = 0; i < plan->launch_count; ++i) {
    for (std::uint32_t j = 0; j < plan->launches[i].constant_count; ++j) {
      given.resize(i + 1);
      given[i].push_back(plan->launches[i].constants[j].value);
    }
  }
  sdk::CudaCall::release_plan(plan);
  // factor, accumulate, of_another
  EXPECT_EQ(given, (std::vector<std::vector<double>>{{3, 0, 1}, {3, 1, 1}}));
}

TEST(LaunchStatement, MissingConstantIsRefusedWhereTheLaunchIsDropped) {
  EXPECT_TRUE(contains(refusal([](sdk::CudaCall& call) {
                         call.launch(MLG_INSTANCE(scale_elements, float, 4), {0, 1, 1}, {64, 1, 1},
                                     call.tensor(Kernel::x), call.tensor(Kernel::y), kCount);
                       }),
                       "gives no value to the constant"));
}

TEST(LaunchStatement, ConstantsThatDoNotFitAreRefused) {
  using Constants = std::vector<std::uint32_t>;
  const auto said = [](const Constants& numbers, const Constants& flags, const char* more = nullptr) {
    return refusal([=](sdk::CudaCall& call) {
      for (const std::uint32_t number : numbers) call.numbers({number});
      for (const std::uint32_t flag : flags) call.flags({flag});
      if (more) call.constant(more, 1);
      launch_scale(call);
    });
  };
  const std::uint32_t factor = Kernel::factor, accumulate = Kernel::accumulate;
  EXPECT_EQ(said({factor}, {}),
            "kernel stated gives no value to the constant accumulate, which its function "
            "scale_elements<float, 4> names");
  EXPECT_EQ(said({factor}, {accumulate}, "acumulate"),
            "the source of kernel stated declares no constant acumulate");
  EXPECT_EQ(said({factor}, {accumulate, Kernel::of_another}),
            "kernel stated gives the constant of_another, which none of the functions it launches names");
  EXPECT_EQ(said({factor, factor}, {accumulate}), "kernel stated gives the constant factor twice");
  EXPECT_EQ(said({factor, accumulate}, {}), "kernel stated gives the constant accumulate, an int, as float");
}

TEST(LaunchStatement, ReadOfAConstantThatTheKernelDoesNotNameIsFound) {
  Kernel::body = [](sdk::CudaCall& call) {
    call.numbers({Kernel::factor});
    call.launch(MLG_INSTANCE(forgetful_scale), {kCount / 64, 1, 1}, {64, 1, 1}, call.tensor(Kernel::x),
                call.tensor(Kernel::y), kCount);
  };
  const std::string said = said_by([] { backend("emulated").run(call_of()); });
  EXPECT_TRUE(contains(said, "reads the constant accumulate, which its MLG_KERNEL statement does not name"));
}

TEST(LaunchStatement, TensorOfAnotherDtypeIsRefused) {
  EXPECT_EQ(
      refusal(state, MLG_BF16),
      "kernel stated: argument x must be f32 as parameter 1 of scale_elements<float, 4>, but it is bf16 "
      "[256]");
}

// ---- arguments of another number or type do not compile ----

template <typename... Arguments>
concept scale_takes = requires(sdk::CudaCall& call, const Arguments&... arguments) {
  call.launch(MLG_INSTANCE(scale_elements, float, 4), {1, 1, 1}, {64, 1, 1}, arguments...);
};
using sdk::CudaArgument;
static_assert(scale_takes<CudaArgument, CudaArgument, std::int64_t>);
static_assert(scale_takes<CudaArgument, CudaArgument, long long>);
static_assert(!scale_takes<CudaArgument, CudaArgument>);
static_assert(!scale_takes<CudaArgument, CudaArgument, std::int64_t, int>);
static_assert(!scale_takes<CudaArgument, CudaArgument, int>);
static_assert(!scale_takes<CudaArgument, CudaArgument, float>);
static_assert(!scale_takes<CudaArgument, std::int64_t, std::int64_t>);
static_assert(!scale_takes<CudaArgument, CudaArgument, CudaArgument>);

template <typename... Arguments>
concept all_kinds_takes = requires(sdk::CudaCall& call, const Arguments&... arguments) {
  call.launch(MLG_INSTANCE(all_kinds, float, int, 1, true), {1, 1, 1}, {1, 1, 1}, arguments...);
};
static_assert(all_kinds_takes<CudaArgument, CudaArgument, int, long, float>);
static_assert(!all_kinds_takes<CudaArgument, CudaArgument, long, int, float>);
static_assert(!all_kinds_takes<CudaArgument, CudaArgument, int, long, double>);
static_assert(!all_kinds_takes<CudaArgument, CudaArgument, unsigned, long, float>);

// ---- the text for NVRTC is the name of the function that the emulated device runs ----

// The compiler's name of an instance's function, without namespaces and parameters.
template <typename Instance>
std::string name_of(const Instance&) {
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(typeid(Instance).name(), nullptr, nullptr, nullptr), &std::free);
  std::string name = text.get();
  for (const std::string space : {"mulligan::kernel_test::", "(anonymous namespace)::"}) {
    for (std::size_t at = 0; (at = name.find(space, at)) != name.npos;) name.erase(at, space.size());
  }
  return name;
}

template <typename Instance>
void expect_same_name(const Instance& instance, const std::string& text) {
  EXPECT_EQ(instance.text(), text);
  EXPECT_TRUE(contains(name_of(instance), text + '('));
}

template <typename T, int N>
void expect_same_name_of_scale(const std::string& text) {
  expect_same_name(MLG_INSTANCE(scale_elements, T, N), text);
}

TEST(LaunchStatement, TextIsTheNameOfTheFunction) {
  expect_same_name_of_scale<float, 1>("scale_elements<float, 1>");
  expect_same_name_of_scale<float, 4>("scale_elements<float, 4>");
  expect_same_name_of_scale<bf16, 8>("scale_elements<bf16, 8>");
  expect_same_name(MLG_INSTANCE(all_kinds, double, f16, -3, true), "all_kinds<double, f16, -3, true>");
  EXPECT_EQ(MLG_INSTANCE(forgetful_scale).text(), "forgetful_scale");
  const std::string plain = name_of(MLG_INSTANCE(forgetful_scale));
  EXPECT_TRUE(plain.find("&forgetful_scale,") != plain.npos || plain.find("&(forgetful_scale(") != plain.npos)
      << plain;
}

TEST(LaunchStatement, TextNamesTheFunctionForTheCompiler) {
  try {
    backend("compile");
  } catch (const std::runtime_error& error) {
    if (says_no_nvrtc(error.what())) GTEST_SKIP() << error.what();
    throw;
  }
  Kernel::body = [](sdk::CudaCall& stated) {
    state(stated);
    stated.launch(MLG_INSTANCE(scale_elements, float, 1), {1, 1, 1}, {64, 1, 1}, stated.tensor(Kernel::x),
                  stated.tensor(Kernel::y), kCount);
  };
  EXPECT_EQ(backend("compile").refusal_when_bound(call_of()), "");
}

}  // namespace
}  // namespace mulligan::kernel_test
