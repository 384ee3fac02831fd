// Which backend the kernel tests of a program talk to: linked in by tests/kernels/CMakeLists.txt.
#pragma once

#include <map>
#include <string>

namespace mulligan::kernel_test {

// The library of plugin `name`, found from where the test program lies: in a build folder and in an
// unpacked archive alike.
std::string plugin_file(const std::string& name);

struct BackendUnderTest {
  std::string file;                         // the plugin's library
  std::string kernel_plugins;               // names of plugins that bring kernels, separated by ':'
  std::map<std::string, std::string> keys;  // TOML text of the keys that are not at their default
  bool stops_on_bad_values;                 // true: run() fails; false: NaN where the result would be
  // A slow backend. Tests of operators then skip long shapes, f16, bf16 except with all arguments, and the third variant. Between all
  // optional arguments and none they test only two other choices.
  bool is_slow = false;
};

// `variant`, from 1 on: settings between which no bit of a result may differ. cpu: that many threads;
// emulated cuda: the order in which blocks and threads run; a GPU: the same again.
BackendUnderTest backend_under_test(int variant);
// Another backend whose results must be the same within the tests' tolerance; its file is empty where
// there is none.
BackendUnderTest reference_under_test();

}  // namespace mulligan::kernel_test
