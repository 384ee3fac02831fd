#include "framework/ttt/blind_checker.h"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <csignal>
#include <cstring>
#include <map>
#include <memory>

#include "framework/core/error.h"
#include "framework/run/run_plugins.h"
#include "framework/ttt/score_transform.h"
#include "framework/ttt/scoring_input.h"
#include "framework/ttt/ttt_plugins.h"
#include "framework/ttt/window_program.h"

namespace mulligan {
namespace {

using nlohmann::json;

template <typename T>
std::vector<T> unpacked(const json& binary) {
  const std::vector<std::uint8_t>& bytes = binary.get_binary();
  std::vector<T> values(bytes.size() / sizeof(T));
  std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
  return values;
}

// What download() left there, of as many bytes.
void upload(Backend& backend, std::span<const std::byte> from,
            const std::vector<std::span<std::byte>>& parts) {
  for (const std::span<std::byte> part : parts) {
    if (part.size() > from.size()) throw run_error("its tensors have other sizes than those of the run.");
    backend.upload(part.data(), from.data(), part.size());
    from = from.subspan(part.size());
  }
  if (!from.empty()) throw run_error("its tensors have other sizes than those of the run.");
}

void tell_confinement(BlindLink& link, const Confinement& confined) {
  link.send({{"answer", "confined"},
             {"files", confined.files},
             {"sockets", confined.sockets},
             {"missing", confined.missing}});
}

class Service {
 public:
  Service(BlindLink& link, LoadedConfig& loaded, PluginHost& host, const Confinement& confined)
      : link_(link),
        confined_(confined),
        config_(loaded.config),
        plugins_(make_backend_plugin(loaded, host)),
        rule_(loaded, host, plugins_),
        weights_(*plugins_.backend, loaded.config, base_masters(*loaded.config.ttt)),
        model_(base_model(weights_, loaded.config)),
        draws_(static_cast<std::uint64_t>(loaded.config.run.seed)),
        setup_(rule_.setup(loaded.config, draws_)),
        arena_(*plugins_.backend) {}

  void answer(const BlindLink::Message& message) {
    const std::string word = message.head.at("op");
    if (word == "plan") return plan(message.head);
    if (word == "told") return hear(message.head);
    if (word == "case") {
      const std::vector<float> losses = score(message.head, message.payload);
      return link_.send({{"answer", "losses"}}, std::as_bytes(std::span(losses)));
    }
    json reply = {{"answer", word}};
    if (word == "weights") load(message.payload);
    if (word == "finish") reply["transform"] = problem_;
    link_.send(reply);
  }

 private:
  void plan(const json& message) {
    WindowShapes shapes;
    for (const json& one : message.at("shapes")) shapes[one.at(0)].insert({one.at(1), one.at(2), one.at(3)});
    std::vector<Program*> programs;
    sets_ = make_adapter_sets(model_,
                              {setup_.adapters, setup_.optimizer, draws_, config_.ttt->config.context_tokens,
                               setup_.transform ? setup_.transform->biases() : 0},
                              shapes, programs);
    arena_.bind(programs, model_.store);
    upload_window_rope(model_, config_.ttt->config.context_tokens);
    if (config_.backend.plugin != "cpu") return;
    confined_ = both(confined_, confine_to_computing(link_.descriptor()));  // nothing is loaded any more
    tell_confinement(link_, confined_);
  }

  void load(std::span<const std::byte> masters) {
    upload(model_.store.backend(), masters, master_memory(model_));
    refresh_copies(model_.store, model_.layouts);
  }

  std::vector<float> score(const json& message, std::span<const std::byte> adapters) {
    AdapterSet& set = *sets_.at(message.at("documents"));
    const json& shape = message.at("shape");
    WindowProgram& program = set.window({shape.at(0), shape.at(1), shape.at(2)});
    upload(model_.store.backend(), adapters, set.memory(shape.at(0)));
    set.refresh();
    const auto positions = unpacked<std::int32_t>(message.at("positions"));
    std::vector<float> all;
    for (const json& pass : message.at("passes")) {
      program.set_inputs(unpacked<std::int32_t>(pass.at("tokens")), positions,
                         unpacked<std::int32_t>(pass.at("targets")));
      int number = 0;
      for (const json& tokens : pass.at("proposed"))
        program.set_proposal(number++, unpacked<std::int32_t>(tokens));
      program.forward();
      const auto append = [&](auto&& download) {
        all.resize(all.size() + positions.size());
        download(std::span(all).last(positions.size()));
      };
      append([&](std::span<float> losses) { program.download_losses(losses); });
      for (int of = 0; of < number; ++of)
        append([&](std::span<float> losses) { program.download_proposed_losses(of, losses); });
    }
    return all;
  }

  void hear(const json& message) {
    for (const auto& entry : unpacked<ToldLog::Entry>(message.at("entries"))) {
      if (entry.kind == ToldLog::open) {
        streams_[entry.stream] = setup_.transform->open({entry.a, entry.b, entry.c});
        continue;
      }
      Transform::Stream& stream = *streams_.at(entry.stream);
      const std::int32_t token = entry.b;
      if (entry.kind == ToldLog::begin) {
        stream.begin(entry.a, token);
        continue;
      }
      digest_ = ToldLog::with(digest_, stream.propose(entry.a));
      stream.observe(entry.a, token);
    }
    if (!message.contains("digest") || digest_ == message.at("digest") || !problem_.empty()) return;
    problem_ = fmt::format(
        "the run is void: of the first {} proposals of {} some are others in a "
        "process that has no files and knew no later token, so they were not made "
        "from the tokens before them alone; use another plugin in [ttt.transform]",
        message.at("proposals").get<std::int64_t>(), setup_.transform->plugin().description());
  }

  BlindLink& link_;
  Confinement confined_;
  const RunConfig& config_;
  RunPlugins plugins_;
  TttPlugins rule_;
  LoadedModel weights_;
  BaseModel model_;
  PhiloxDraws draws_;
  TttSetup setup_;
  AdapterSets sets_;
  SharedArena arena_;
  std::map<std::int64_t, std::unique_ptr<Transform::Stream>> streams_;
  std::uint64_t digest_ = ToldLog::no_proposals;
  std::string problem_;
};

}  // namespace

void serve_blind_checks(BlindLink& link, LoadedConfig& loaded, PluginHost& host) {
  ::prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);         // nobody looks into it or writes there
  ::prctl(PR_SET_PDEATHSIG, SIGKILL, 0, 0, 0);  // whoever asked is gone
  try {
    const Confinement confined =
        both(confine_files(files_for_scoring(loaded, host)), confine_calls_of(loaded, false));
    tell_confinement(link, confined);
    resolve_run_plugins(loaded, host, PluginUse::adapt);
    Service service(link, loaded, host, confined);
    while (const auto message = link.receive()) service.answer(*message);
  } catch (const std::exception& error) {
    try {
      link.send({{"answer", "failed"}, {"sentence", error.what()}});
    } catch (const Error&) {
      // Nobody hears it any more.
    }
  }
}

}  // namespace mulligan
