#include "tools/record_script/torch_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <stdexcept>

#include "tools/record_script/torch_pickle.h"
#include "tools/record_script/zip_file.h"

namespace mulligan::record_script {
namespace {

constexpr std::size_t most_dims = 8, most_tables = 8;

std::vector<std::int64_t> numbers_of(const Node& tuple) {
  std::vector<std::int64_t> numbers;
  for (const Node* item : tuple.items) {
    if (item->kind != Node::Kind::number || item->number < 0)
      throw std::runtime_error("has a damaged pickle");
    numbers.push_back(item->number);
  }
  return numbers;
}

// The storages of an archive and how many bytes may still be read out of them: views of one storage must not
// unpack to more than the file could hold.
class Storages {
 public:
  Storages(const std::map<std::string, std::string_view>& members, std::string prefix, std::size_t budget)
      : members_(members), prefix_(std::move(prefix)), budget_(budget) {}

  TorchTensor tensor(const Node& made) {
    const Node& storage = *made.items[0];
    TorchTensor out{std::string(storage_type(storage.items[0]->text)), numbers_of(*made.items[2]), {}};
    const std::size_t size = element_size(out.type);
    const std::string& key = storage.items[1]->text;
    const auto found = members_.find(prefix_ + "data/" + key);
    const std::int64_t held = storage.number;
    if (found == members_.end() || held < 0 ||
        found->second.size() / size != static_cast<std::size_t>(held) || found->second.size() % size != 0)
      throw std::runtime_error(fmt::format("has no storage '{}' of {} numbers", key, held));
    const std::vector<std::int64_t> strides = numbers_of(*made.items[3]);
    require_inside(out.shape, strides, made.items[1]->number, held);
    if (static_cast<std::size_t>(out.elements()) * size > budget_)
      throw std::runtime_error("has tensors of more bytes than it holds");
    budget_ -= static_cast<std::size_t>(out.elements()) * size;
    std::vector<std::int64_t> index(out.shape.size());
    for (std::int64_t left = out.elements(); left > 0; --left) {
      std::int64_t place = made.items[1]->number;
      for (std::size_t d = 0; d < index.size(); ++d) place += index[d] * strides[d];
      out.bytes.append(found->second.substr(static_cast<std::size_t>(place) * size, size));
      for (std::size_t d = index.size(); d-- > 0 && ++index[d] == out.shape[d];) index[d] = 0;
    }
    return out;
  }

 private:
  static void require_inside(const std::vector<std::int64_t>& shape, const std::vector<std::int64_t>& strides,
                             std::int64_t offset, std::int64_t held) {
    const auto beyond = [] { return std::runtime_error("has a tensor that reaches beyond its storage"); };
    if (shape.size() != strides.size() || shape.size() > most_dims || offset < 0 || offset > held)
      throw beyond();
    std::int64_t elements = 1, last = offset;
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (shape[d] == 0) return;
      // Each factor is at most `held`, which is a number of bytes in memory: no product overflows 64 bits.
      if (shape[d] > held || strides[d] > held) throw beyond();
      elements *= shape[d];
      last += (shape[d] - 1) * strides[d];
      if (elements > held || last >= held) throw beyond();
    }
    if (last >= held) throw beyond();
  }

  const std::map<std::string, std::string_view>& members_;
  std::string prefix_;
  std::size_t budget_;
};

}  // namespace

std::int64_t TorchTensor::elements() const {
  std::int64_t count = 1;
  for (const std::int64_t extent : shape) count *= extent;
  return count;
}

TorchTables read_torch_file(std::string_view archive) {
  const auto members = zip_members(archive);
  constexpr std::string_view program = "data.pkl";
  const auto found =
      std::ranges::find_if(members, [&](const auto& member) { return member.first.ends_with("/data.pkl"); });
  if (found == members.end()) throw std::runtime_error("holds no pickle of torch.save");
  const std::string prefix = found->first.substr(0, found->first.size() - program.size());
  const auto order = members.find(prefix + "byteorder");
  if (order != members.end() && order->second != "little")
    throw std::runtime_error("was written with another byte order");
  std::deque<Node> nodes;
  const Node& root = read_pickle(found->second, nodes);
  Storages storages(members, prefix, archive.size());
  TorchTables tables;
  const auto not_tables = [] { return std::runtime_error("holds something else than tables of tensors"); };
  if (root.kind != Node::Kind::table || root.items.size() > 2 * most_tables) throw not_tables();
  for (std::size_t i = 0; i + 1 < root.items.size(); i += 2) {
    const Node &name = *root.items[i], &table = *root.items[i + 1];
    if (name.kind != Node::Kind::text || table.kind != Node::Kind::table) throw not_tables();
    auto& entries = tables[name.text];
    for (std::size_t j = 0; j + 1 < table.items.size(); j += 2) {
      const Node &key = *table.items[j], &value = *table.items[j + 1];
      if (key.kind != Node::Kind::text) throw not_tables();
      if (value.kind == Node::Kind::text)
        entries[key.text] = value.text;
      else if (value.kind == Node::Kind::tensor)
        entries[key.text] = storages.tensor(value);
      else
        throw not_tables();
    }
  }
  return tables;
}

namespace {

class Pickler {
 public:
  template <typename T>
  void raw(T value) {
    program.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  void text(std::string_view value) {
    program += 'X';
    raw(static_cast<std::uint32_t>(value.size()));
    program += value;
  }
  // Eight bytes whatever it is: the shortest form saves nothing after compression.
  void number(std::int64_t value) {
    program += "\x8a\x08";
    raw(value);
  }
  void name(std::string_view module_and_name) {
    program += 'c';
    program += module_and_name;
    program[program.rfind(' ')] = '\n';
    program += '\n';
  }
  void numbers(const std::vector<std::int64_t>& values) {
    program += '(';
    for (const std::int64_t value : values) number(value);
    program += 't';
  }
  void tensor(const TorchTensor& value, const std::string& key) {
    name(rebuild_name);
    program += "((";
    text("storage");
    name(fmt::format("torch {}Storage", value.type));
    text(key);
    text("cpu");
    number(value.elements());
    program += "tQ";
    number(0);
    numbers(value.shape);
    std::vector<std::int64_t> strides(value.shape.size(), 1);
    for (std::size_t d = strides.size(); d-- > 1;) strides[d - 1] = strides[d] * value.shape[d];
    numbers(strides);
    program += '\x89';
    name(ordered_name);
    program += ")RtR";
  }

  std::string program = "\x80\x02";
};

}  // namespace

std::string write_torch_file(const TorchTables& tables) {
  Pickler pickler;
  std::map<std::string, std::string_view> members = {{"archive/byteorder", "little"},
                                                     {"archive/version", "3\n"}};
  pickler.program += "}(";
  int storages = 0;
  for (const auto& [name, entries] : tables) {
    pickler.text(name);
    pickler.program += "}(";
    for (const auto& [key, value] : entries) {
      pickler.text(key);
      if (const auto* text = std::get_if<std::string>(&value)) {
        pickler.text(*text);
        continue;
      }
      const auto& tensor = std::get<TorchTensor>(value);
      const std::string storage = std::to_string(storages++);
      pickler.tensor(tensor, storage);
      members["archive/data/" + storage] = tensor.bytes;
    }
    pickler.program += 'u';
  }
  pickler.program += "u.";
  members["archive/data.pkl"] = pickler.program;
  return zip_archive(members);
}

}  // namespace mulligan::record_script
