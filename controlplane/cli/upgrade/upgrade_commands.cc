// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/upgrade/upgrade_commands.h"

#include <chrono>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/exit_code.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/upgrade/upgrade_view.h"
#include "rocegw/admin/v1/upgrades.pb.h"

namespace rocegw::cli {
namespace {

using admin::v1::Upgrade;
using admin::v1::UpgradedGateway;

constexpr char kUpgrades[] = "/rocegw.admin.v1.Upgrades/";
constexpr std::chrono::milliseconds kLookEvery(1000);

struct UpgradeQuery {
  std::string upgrade;
  std::vector<std::string> gateways;
  std::string selector;
  bool all = false;
  bool watch = false;
  std::vector<std::string> waves;
  std::string soak;
  std::string lost_after;
  std::string time_limit;
  std::string version;
  uint32_t max_unavailable = 1;
  uint32_t max_failures = 0;
  bool pause_after_waves = false;
  bool sessions_may_end = false;
};

std::string UpgradeName(const std::string& id) { return NameIn("upgrades", id); }

int Show(Program& program, const Upgrade& upgrade) {
  if (PrintDocument(program, NamedMessages{{"upgrade", &upgrade}})) return kOk;
  std::cout << UpgradeStatusText(upgrade, program.line_limit());
  return kOk;
}

CallResult Get(Program& program, const std::string& id, Upgrade& upgrade) {
  admin::v1::GetUpgradeRequest request;
  request.set_name(UpgradeName(id));
  upgrade.Clear();
  return program.rpc().Call(std::string(kUpgrades) + "GetUpgrade", request, upgrade);
}

bool WaitsForPerson(const Upgrade& upgrade) {
  return upgrade.state() != Upgrade::RUNNING && upgrade.state() != Upgrade::ABORTING;
}

// Returns the exit status of an upgrade that has ended or waits for a person.
int ResultOf(const Upgrade& upgrade) {
  if (upgrade.state() != Upgrade::DONE) {
    return Fail({kFailed,
                 upgrade.name() + " is " + Upgrade::State_Name(upgrade.state()) +
                     (upgrade.reason().empty() ? "" : ": " + upgrade.reason()),
                 {}});
  }
  return upgrade.reason().empty() ? kOk : Fail({kPartlyFailed, upgrade.reason(), {}});
}

// Shows the upgrade again and again, until it has ended or waits for a person.
int Watch(Program& program, const std::string& id) {
  Upgrade upgrade;
  for (std::string shown;;) {
    if (auto result = Get(program, id, upgrade); !result.ok()) return Fail(result);
    const bool over = WaitsForPerson(upgrade);
    if (program.is_table()) {
      // Ages alone are no reason to print it again.
      Upgrade timeless = upgrade;
      *timeless.mutable_read_time() = timeless.since();
      const std::string text = UpgradeStatusText(timeless, program.line_limit());
      if (Program::colour()) {
        std::cout << "\033[H\033[J" << UpgradeStatusText(upgrade, program.line_limit())
                  << std::flush;
      } else if (text != shown) {
        std::cout << (shown.empty() ? "" : "\n") << UpgradeStatusText(upgrade, program.line_limit())
                  << std::flush;
      }
      shown = text;
    } else if (over) {
      (void)Show(program, upgrade);
    }
    if (over) return ResultOf(upgrade);
    std::this_thread::sleep_for(kLookEvery);
  }
}

// Fills the spec; returns what is wrong, or an empty text.
std::string ReadSpec(const UpgradeQuery& query, admin::v1::UpgradeSpec& spec) {
  const int chosen =
      (query.all ? 1 : 0) + (query.gateways.empty() ? 0 : 1) + (query.selector.empty() ? 0 : 1);
  if (chosen != 1) return "which gateways? GATEWAY ..., --selector LABELS or --all";
  for (const std::string& gateway : query.gateways) spec.add_gateways(NameIn("gateways", gateway));
  spec.set_label_selector(query.selector);
  for (const std::string& wave : query.waves) spec.add_waves(wave);
  uint32_t seconds = 0;
  if (!query.soak.empty()) {
    if (auto wrong = ReadSeconds("--soak", query.soak, seconds); !wrong.empty()) return wrong;
    spec.set_soak_seconds(seconds);
  }
  if (!query.lost_after.empty()) {
    if (auto wrong = ReadSeconds("--lost-after", query.lost_after, seconds); !wrong.empty())
      return wrong;
    spec.set_lost_after_seconds(seconds);
  }
  if (!query.time_limit.empty()) {
    if (auto wrong = ReadSeconds("--time-limit", query.time_limit, seconds); !wrong.empty())
      return wrong;
    spec.set_time_limit_seconds(seconds);
  }
  spec.set_max_unavailable(query.max_unavailable);
  spec.set_max_failures(query.max_failures);
  spec.set_version(query.version);
  spec.set_pause_after_waves(query.pause_after_waves);
  spec.set_sessions_may_end(query.sessions_may_end);
  return {};
}

int Start(Program& program, const UpgradeQuery& query) {
  admin::v1::CreateUpgradeRequest request;
  request.set_name(UpgradeName(query.upgrade));
  if (const std::string wrong = ReadSpec(query, *request.mutable_spec()); !wrong.empty())
    return FailUsage(wrong);
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  Upgrade upgrade;
  if (auto result = program.objects().Write(std::string(kUpgrades) + "CreateUpgrade", request,
                                            program.options.write, upgrade);
      !result.ok())
    return Fail(result);
  return query.watch ? Watch(program, query.upgrade) : Show(program, upgrade);
}

int Order(Program& program, const UpgradeQuery& query, admin::v1::UpgradeVerb verb) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::ControlUpgradeRequest request;
  request.set_name(UpgradeName(query.upgrade));
  request.set_verb(verb);
  Upgrade upgrade;
  if (auto result = program.objects().Write(std::string(kUpgrades) + "ControlUpgrade", request,
                                            program.options.write, upgrade);
      !result.ok())
    return Fail(result);
  return query.watch ? Watch(program, query.upgrade) : Show(program, upgrade);
}

int ShowStatus(Program& program, const UpgradeQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  if (query.upgrade.empty()) {
    const admin::v1::ListUpgradesRequest request;
    admin::v1::ListUpgradesResponse list;
    if (auto result = program.rpc().Call(std::string(kUpgrades) + "ListUpgrades", request, list);
        !result.ok())
      return Fail(result);
    if (PrintDocument(program, NamedMessages{{"list", &list}})) return kOk;
    std::cout << UpgradeListText(list, program.line_limit());
    return kOk;
  }
  if (query.watch) return Watch(program, query.upgrade);
  Upgrade upgrade;
  if (auto result = Get(program, query.upgrade, upgrade); !result.ok()) return Fail(result);
  return Show(program, upgrade);
}

int Delete(Program& program, const UpgradeQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::DeleteUpgradeRequest request;
  request.set_name(UpgradeName(query.upgrade));
  admin::v1::DeleteUpgradeResponse response;
  if (auto result = program.objects().Write(std::string(kUpgrades) + "DeleteUpgrade", request,
                                            program.options.write, response);
      !result.ok())
    return Fail(result);
  std::cout << request.name() << (program.is_table() ? " deleted\n" : "\n");
  return kOk;
}

void AddStart(CLI::App& upgrade, Program& program, const std::shared_ptr<UpgradeQuery>& query) {
  CLI::App* const start = program.Add(
      upgrade, "start", "have gateways replaced by what is installed on their hosts, in waves",
      "  rocegwctl upgrade start to-0-2 --all --to 0.2.0 --watch\n"
      "  rocegwctl upgrade start zone-a --selector zone=a --waves 1,25% --max-unavailable 2\n"
      "  rocegwctl upgrade start canary host-a host-b",
      [&program, query] { return Start(program, *query); });
  start->add_option("UPGRADE", query->upgrade, "a name for it")->required();
  start->add_option("GATEWAY", query->gateways, "gateways, replaced in this order");
  start->add_flag("--all", query->all, "every gateway of the fleet");
  start->add_option("-l,--selector", query->selector, "gateways by labels: key=value,!key")
      ->type_name("LABELS");
  start
      ->add_option("--waves", query->waves,
                   "sizes, the last one repeated: gateways, or parts of all (1,10%,50%)")
      ->delimiter(',')
      ->type_name("SIZE,..");
  start->add_option("--max-unavailable", query->max_unavailable, "replaced at the same time (1)")
      ->type_name("N");
  start->add_option("--max-failures", query->max_failures, "failures without a pause (0)")
      ->type_name("N");
  start->add_option("--soak", query->soak, "time after each wave (10s)")->type_name("TIME");
  start
      ->add_option("--lost-after", query->lost_after,
                   "a gateway that is away for so long in its wave is LOST, a failure (5m)")
      ->type_name("TIME");
  start->add_option("--time-limit", query->time_limit, "of one replacement (60s)")
      ->type_name("TIME");
  start
      ->add_option("--to", query->version,
                   "version that gateways must have afterwards; those that have it are skipped")
      ->type_name("VERSION");
  start->add_flag("--pause-after-waves", query->pause_after_waves, "wait for `resume` each time");
  start->add_flag("--sessions-may-end", query->sessions_may_end,
                  "fewer sessions afterwards are no failure");
  start->add_flag("--watch", query->watch, "until it waits for a person or has ended");
  start
      ->add_option("--request-id", program.options.write.request_id,
                   "repeats the call of that id: nothing is done twice")
      ->type_name("UUID");
}

}  // namespace

void AddUpgradeCommands(CLI::App& app, Program& program) {
  CLI::App* const upgrade =
      program.Add(app, "upgrade", "replace the fleet's gateways while they run, in waves",
                  "  rocegwctl upgrade start to-0-2 --all --to 0.2.0 --watch\n"
                  "  rocegwctl upgrade status to-0-2",
                  nullptr);
  const auto query = std::make_shared<UpgradeQuery>();
  AddStart(*upgrade, program, query);
  struct Plain {
    const char* name;
    const char* help;
    admin::v1::UpgradeVerb verb;
  };
  for (const Plain& plain :
       {Plain{"pause", "let no further gateway be replaced", admin::v1::PAUSE_UPGRADE},
        Plain{"resume", "go on after a pause, without failed and lost gateways",
              admin::v1::RESUME_UPGRADE},
        Plain{"retry", "go on with the failed and lost gateways", admin::v1::RETRY_UPGRADE},
        Plain{"abort", "end it; replaced gateways stay replaced", admin::v1::ABORT_UPGRADE}}) {
    CLI::App* const command =
        program.Add(*upgrade, plain.name, plain.help, "",
                    [&program, query, verb = plain.verb] { return Order(program, *query, verb); });
    command->add_option("UPGRADE", query->upgrade, "its name")->required();
    command->add_flag("--watch", query->watch, "until it waits for a person or has ended");
  }
  CLI::App* const status =
      program.Add(*upgrade, "status", "where it is, and what became of each gateway",
                  "  rocegwctl upgrade status\n  rocegwctl upgrade status to-0-2 --watch",
                  [&program, query] { return ShowStatus(program, *query); });
  status->add_option("UPGRADE", query->upgrade, "its name; none: all");
  status->add_flag("--watch", query->watch, "until it waits for a person or has ended");
  program
      .Add(*upgrade, "delete", "forget an upgrade that has ended, or that cannot be read", "",
           [&program, query] { return Delete(program, *query); })
      ->add_option("UPGRADE", query->upgrade, "its name")
      ->required();
}

}  // namespace rocegw::cli
