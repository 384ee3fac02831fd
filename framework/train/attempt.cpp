#include "framework/train/attempt.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "framework/core/error.h"
#include "framework/core/file.h"
#include "framework/core/parse_json.h"
#include "framework/ranks/launch_agent.h"
#include "framework/report/run_directory.h"

namespace mulligan {
namespace {

constexpr const char* torchrun = "torchrun";

bool share_an_agent(const Attempt& a, const Attempt& b) {
  return std::ranges::any_of(a.agents, [&](const std::string& agent) {
    return !agent.empty() && std::ranges::count(b.agents, agent) > 0;
  });
}

}  // namespace

Attempt own_attempt(RunRanks& ranks) {
  const LaunchEnvironment& environment = ranks.environment();
  Attempt attempt{environment.launcher, environment.run_id, {}, environment.restart_count};
  if (attempt.launcher != torchrun) return attempt;
  ranks.group().consult_texts(launch_agent("TORCHELASTIC_RUN_ID"), [&](const std::vector<std::string>& all) {
    const std::set<std::string> agents(all.begin(), all.end());
    attempt.agents.assign(agents.begin(), agents.end());
    return std::string();
  });
  return attempt;
}

std::optional<Attempt> noted_attempt(const std::filesystem::path& run_directory) {
  const std::filesystem::path path = RunFiles{run_directory}.attempt();
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::nullopt;
  try {
    const nlohmann::json json = parse_json(read_file(path, 1 << 20));
    return Attempt{json.at("launcher").get<std::string>(), json.at("run_id").get<std::string>(),
                   json.at("agents").get<std::vector<std::string>>(),
                   json.at("restarts").get<std::int64_t>()};
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  } catch (const Error&) {
    return std::nullopt;
  }
}

void note_attempt(const std::filesystem::path& run_directory, const Attempt& attempt) {
  if (attempt.launcher == "none") return;
  const nlohmann::json json = {{"launcher", attempt.launcher},
                               {"run_id", attempt.run_id},
                               {"agents", attempt.agents},
                               {"restarts", attempt.restarts}};
  write_file_atomically(RunFiles{run_directory}.attempt(),
                        json.dump(2, ' ', true, nlohmann::json::error_handler_t::replace) + "\n");
}

bool goes_on(const std::optional<Attempt>& before, Attempt& now) {
  if (now.launcher == "none") return now.restarts > 0;  // set by hand
  if (!before || before->launcher != now.launcher || before->run_id != now.run_id) return false;
  if (now.launcher == torchrun ? !share_an_agent(*before, now) : now.restarts == 0) return false;
  now.restarts = std::max(now.restarts, before->restarts + 1);
  return true;
}

}  // namespace mulligan
