#include "tests/ptx/forms.h"

namespace mulligan::ptx {

const Form* find_form(const std::string& name) {
  static const Forms forms = [] {
    Forms all;
    add_integer_forms(all);
    add_float_forms(all);
    add_conversion_forms(all);
    return all;
  }();
  const auto found = forms.find(name);
  return found == forms.end() ? nullptr : &found->second;
}

}  // namespace mulligan::ptx
