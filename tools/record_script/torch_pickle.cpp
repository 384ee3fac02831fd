#include "tools/record_script/torch_pickle.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <unordered_map>

namespace mulligan::record_script {
namespace {

constexpr std::pair<std::string_view, std::size_t> storage_types[] = {
    {"Half", 2}, {"BFloat16", 2}, {"Float", 4}, {"Double", 8}, {"Char", 1},
    {"Byte", 1}, {"Short", 2},    {"Int", 4},   {"Long", 8},   {"Bool", 1}};
// Of the record's model the pickle has 40 kB and no text more than 50; what lies far beyond would only take memory.
constexpr std::size_t longest_pickle = std::size_t{4} << 20, longest_text = 512;

class Unpickler {
 public:
  Unpickler(std::string_view program, std::deque<Node>& nodes) : program_(program), nodes_(nodes) {}

  const Node& run() {
    if (take(2) != "\x80\x02") throw std::runtime_error("has a pickle of another protocol than 2");
    while (true) {
      const auto instruction = static_cast<unsigned char>(take(1)[0]);
      if (instruction == '.') return *pop();
      step(instruction);
    }
  }

 private:
  static std::runtime_error damaged() { return std::runtime_error("has a damaged pickle"); }

  std::string_view take(std::size_t count) {
    if (count > program_.size()) throw damaged();
    const std::string_view part = program_.substr(0, count);
    program_.remove_prefix(count);
    return part;
  }
  template <typename T>
  T number() {
    T value{};
    std::memcpy(&value, take(sizeof value).data(), sizeof value);
    return value;
  }
  std::string_view line() {
    const std::size_t end = program_.find('\n');
    if (end == std::string_view::npos) throw damaged();
    const std::string_view text = take(end);
    if (end > longest_text) throw damaged();
    take(1);
    return text;
  }

  Node& push(Node::Kind kind, std::int64_t number = 0, std::string text = {}) {
    stack_.push_back(&nodes_.emplace_back(Node{kind, number, std::move(text), {}}));
    return *stack_.back();
  }
  Node* pop() {
    if (stack_.empty()) throw damaged();
    Node* top = stack_.back();
    stack_.pop_back();
    return top;
  }
  Node* pop(Node::Kind kind) {
    Node* top = pop();
    if (top->kind != kind) throw damaged();
    return top;
  }
  std::vector<Node*> pop_to_mark() {
    std::vector<Node*> items;
    for (Node* top = pop(); top->kind != Node::Kind::mark; top = pop()) items.push_back(top);
    std::ranges::reverse(items);
    return items;
  }
  void push_tuple(std::vector<Node*> items) { push(Node::Kind::tuple).items = std::move(items); }
  void push_last(std::size_t count) {
    std::vector<Node*> items(count);
    for (std::size_t i = count; i-- > 0;) items[i] = pop();
    push_tuple(std::move(items));
  }
  void set_items(const std::vector<Node*>& items) {
    if (items.size() % 2 != 0 || stack_.empty() || stack_.back()->kind != Node::Kind::table) throw damaged();
    std::vector<Node*>& all = stack_.back()->items;
    all.insert(all.end(), items.begin(), items.end());
  }
  void recall(std::uint32_t place) {
    const auto found = memo_.find(place);
    if (found == memo_.end()) throw damaged();
    stack_.push_back(found->second);
  }
  void remember(std::uint32_t place) {
    if (stack_.empty()) throw damaged();
    memo_[place] = stack_.back();
  }

  void push_name() {
    const std::string module(line());
    std::string name = fmt::format("{} {}", module, line());
    if (name != rebuild_name && name != ordered_name && storage_type(name).empty()) {
      std::ranges::replace(name, ' ', '.');
      throw std::runtime_error(fmt::format(
          "names '{}', which is no part of a tensor: nothing that a file names is executed", name));
    }
    push(Node::Kind::name, 0, std::move(name));
  }

  // A reference to a storage: ("storage", its type, its key, its device, its elements).
  void push_storage() {
    const std::vector<Node*> items = pop(Node::Kind::tuple)->items;
    if (items.size() != 5 || items[0]->text != "storage" || items[1]->kind != Node::Kind::name ||
        storage_type(items[1]->text).empty() || items[2]->kind != Node::Kind::text ||
        items[4]->kind != Node::Kind::number)
      throw damaged();
    push(Node::Kind::storage, items[4]->number).items = {items[1], items[2]};
  }

  // The two calls that are understood are done here; none is made.
  void push_result() {
    const std::vector<Node*> arguments = pop(Node::Kind::tuple)->items;
    const std::string& called = pop(Node::Kind::name)->text;
    if (called == ordered_name && arguments.empty()) {
      push(Node::Kind::table);
      return;
    }
    // (storage, offset, shape, strides, requires_grad, hooks)
    if (called != rebuild_name || arguments.size() != 6 || arguments[0]->kind != Node::Kind::storage ||
        arguments[1]->kind != Node::Kind::number || arguments[2]->kind != Node::Kind::tuple ||
        arguments[3]->kind != Node::Kind::tuple || !arguments[5]->items.empty())
      throw damaged();
    push(Node::Kind::tensor).items = arguments;
  }

  void step(unsigned char instruction) {
    switch (instruction) {
      case 'N':
      case 0x88:
      case 0x89:
        push(Node::Kind::nothing);
        return;
      case 'K':
        push(Node::Kind::number, number<std::uint8_t>());
        return;
      case 'M':
        push(Node::Kind::number, number<std::uint16_t>());
        return;
      case 'J':
        push(Node::Kind::number, number<std::int32_t>());
        return;
      case 0x8a:
        push_long();
        return;
      case 'X': {
        const auto length = number<std::uint32_t>();
        if (length > longest_text) throw damaged();
        push(Node::Kind::text, 0, std::string(take(length)));
        return;
      }
      case '}':
        push(Node::Kind::table);
        return;
      case ')':
        push_tuple({});
        return;
      case '(':
        push(Node::Kind::mark);
        return;
      case 't':
        push_tuple(pop_to_mark());
        return;
      case 0x85:
      case 0x86:
      case 0x87:
        push_last(instruction - 0x84U);
        return;
      case 's': {
        Node* value = pop();
        Node* key = pop();
        set_items({key, value});
        return;
      }
      case 'u':
        set_items(pop_to_mark());
        return;
      case 'q':
        remember(number<std::uint8_t>());
        return;
      case 'r':
        remember(number<std::uint32_t>());
        return;
      case 'h':
        recall(number<std::uint8_t>());
        return;
      case 'j':
        recall(number<std::uint32_t>());
        return;
      case 'c':
        push_name();
        return;
      case 'Q':
        push_storage();
        return;
      case 'R':
        push_result();
        return;
      default:
        throw std::runtime_error(
            fmt::format("has the pickle instruction {:#04x}, which no table of tensors needs", instruction));
    }
  }

  // Little-endian, two's complement, as many bytes as it says.
  void push_long() {
    const std::string_view bytes = take(number<std::uint8_t>());
    if (bytes.size() > sizeof(std::int64_t)) throw damaged();
    std::int64_t value = !bytes.empty() && (static_cast<unsigned char>(bytes.back()) & 0x80U) ? -1 : 0;
    std::memcpy(&value, bytes.data(), bytes.size());
    push(Node::Kind::number, value);
  }

  std::string_view program_;
  std::deque<Node>& nodes_;
  std::vector<Node*> stack_;
  std::unordered_map<std::uint32_t, Node*> memo_;
};

}  // namespace

std::string_view storage_type(std::string_view name) {
  for (const auto& [type, size] : storage_types)
    if (name == fmt::format("torch {}Storage", type)) return type;
  return {};
}

std::size_t element_size(std::string_view type) {
  for (const auto& [known, size] : storage_types)
    if (type == known) return size;
  throw std::logic_error("an unknown type of storage");
}

const Node& read_pickle(std::string_view program, std::deque<Node>& nodes) {
  if (program.size() > longest_pickle) throw std::runtime_error("has a pickle longer than any table's");
  return Unpickler(program, nodes).run();
}

}  // namespace mulligan::record_script
