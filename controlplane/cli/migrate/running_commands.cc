// SPDX-License-Identifier: Apache-2.0
// rocegwctl migrate start, status and so on: migrations that a controller drives.
#include <charconv>
#include <fstream>
#include <iostream>
#include <iterator>
#include <thread>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/exit_code.h"
#include "controlplane/cli/migrate/findings_view.h"
#include "controlplane/cli/migrate/migrate_commands.h"
#include "controlplane/cli/migrate/status_view.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/views/table.h"
#include "controlplane/migration/plan/plan.h"
#include "rocegw/admin/v1/migrations.pb.h"

namespace rocegw::cli {
namespace {

using admin::v1::Migration;

constexpr std::chrono::milliseconds kBetweenPreflightLooks(500);
constexpr std::chrono::milliseconds kWatchEvery(1000);
constexpr size_t kStatusColumns = 80;
constexpr char kMigrations[] = "/rocegw.admin.v1.Migrations/";

struct RunningQuery {
  std::string migration;
  std::string plan;
  std::string name;
  std::string node;
  std::string wave;
  bool all = false;
  bool watch = false;
  std::vector<std::string> settings;
};

std::string MigrationName(const std::string& id) { return NameIn("migrations", id); }

int Show(Program& program, const Migration& migration) {
  if (PrintDocument(program, NamedMessages{{"migration", &migration}})) return kOk;
  std::cout << MigrationStatusText(migration, StatusLimit(program));
  return kOk;
}

// Waits until the preflight has a result. A migration that did not pass it is a failure.
CallResult AwaitPreflight(Program& program, const std::string& id, Migration& migration) {
  const auto end = std::chrono::steady_clock::now() + program.patience();
  Progress line;
  while (migration.preflight_pending()) {
    if (std::chrono::steady_clock::now() > end)
      return {kDeadline, "the preflight has no result in time (--timeout); it goes on", {}};
    line.Show("preflight of " + std::to_string(migration.nodes_size()) + " nodes");
    std::this_thread::sleep_for(kBetweenPreflightLooks);
    if (auto result = GetMigration(program, id, migration); !result.ok()) return result;
  }
  line.Show("");
  if (program.is_table()) std::cerr << FindingsText(migration);
  if (migration.state() != "PLANNED") return {};
  return {kFailed, "the preflight failed: " + migration.reason(), {}};
}

CallResult Control(Program& program, const RunningQuery& query, admin::v1::MigrationVerb verb,
                   Migration& migration) {
  admin::v1::ControlMigrationRequest request;
  request.set_name(MigrationName(query.migration));
  request.set_verb(verb);
  request.set_node(query.node);
  request.set_wave(query.wave);
  return program.objects().Write(std::string(kMigrations) + "ControlMigration", request,
                                 program.options.write, migration);
}

int Start(Program& program, const RunningQuery& query) {
  std::ifstream file(query.plan, std::ios::binary);
  const std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  if (!file) return Fail({kNotFound, "cannot read " + query.plan, {}});
  std::string problem;
  const migration::Plan plan = migration::ReadPlan(text, problem);
  if (!problem.empty()) return Fail({kFailed, query.plan + ": " + problem, {}});
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  RunningQuery named = query;
  named.migration = query.name.empty() ? plan.name : query.name;
  admin::v1::CreateMigrationRequest request;
  request.set_name(MigrationName(named.migration));
  request.set_plan(text);
  Migration migration;
  if (auto result = program.objects().Write(std::string(kMigrations) + "CreateMigration", request,
                                            program.options.write, migration);
      !result.ok())
    return Fail(result);
  if (migration.state() == "PLANNED" && !migration.preflight_pending()) {
    if (auto result = Control(program, named, admin::v1::PREFLIGHT, migration); !result.ok())
      return Fail(result);
  }
  if (auto result = AwaitPreflight(program, named.migration, migration); !result.ok())
    return Fail(result);
  if (auto result = Control(program, named, admin::v1::START, migration); !result.ok())
    return Fail(result);
  return Show(program, migration);
}

int Order(Program& program, const RunningQuery& query, admin::v1::MigrationVerb verb) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  Migration migration;
  if (auto result = Control(program, query, verb, migration); !result.ok()) return Fail(result);
  if (verb == admin::v1::PREFLIGHT) {
    if (auto result = AwaitPreflight(program, query.migration, migration); !result.ok())
      return Fail(result);
  }
  return Show(program, migration);
}

int Delete(Program& program, const RunningQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::DeleteMigrationRequest request;
  request.set_name(MigrationName(query.migration));
  admin::v1::DeleteMigrationResponse response;
  if (auto result = program.objects().Write(std::string(kMigrations) + "DeleteMigration", request,
                                            program.options.write, response);
      !result.ok())
    return Fail(result);
  std::cout << request.name() << (program.is_table() ? " deleted\n" : "\n");
  return kOk;
}

int RollBack(Program& program, const RunningQuery& query) {
  const int chosen =
      (query.all ? 1 : 0) + (query.node.empty() ? 0 : 1) + (query.wave.empty() ? 0 : 1);
  if (chosen != 1) return FailUsage("which part? --all, --wave WAVE or --node NODE");
  return Order(program, query, admin::v1::ROLLBACK);
}

int Approve(Program& program, const RunningQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::ApproveWaveRequest request;
  request.set_name(MigrationName(query.migration));
  request.set_wave(query.wave);
  Migration migration;
  if (auto result = program.objects().Write(std::string(kMigrations) + "ApproveWave", request,
                                            program.options.write, migration);
      !result.ok())
    return Fail(result);
  return Show(program, migration);
}

// Reads "soak=10m" into the limits; returns what is wrong, or nothing.
std::string ReadSetting(const std::string& text, admin::v1::MigrationLimits& limits) {
  const size_t at = text.find('=');
  const std::string key = text.substr(0, at);
  const std::string value = at == std::string::npos ? "" : text.substr(at + 1);
  if (key == "approve") {
    if (value != "auto" && value != "manual") return "approve is auto or manual";
    limits.set_automatic_approval(value == "auto");
    return {};
  }
  if (key == "max-unavailable") {
    uint32_t count = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), count);
    if (error != std::errc() || end != value.data() + value.size())
      return "'" + value + "' is not a number";
    limits.set_max_unavailable(count);
    return {};
  }
  using Setter = void (admin::v1::MigrationLimits::*)(uint32_t);
  static constexpr std::pair<const char*, Setter> kTimes[] = {
      {"soak", &admin::v1::MigrationLimits::set_soak_seconds},
      {"step-deadline", &admin::v1::MigrationLimits::set_step_deadline_seconds},
      {"retry-after", &admin::v1::MigrationLimits::set_retry_after_seconds},
      {"lost-after", &admin::v1::MigrationLimits::set_lost_after_seconds},
      {"preflight-valid", &admin::v1::MigrationLimits::set_preflight_valid_seconds}};
  for (const auto& [name, setter] : kTimes) {
    if (key != name) continue;
    uint32_t seconds = 0;
    if (auto wrong = ReadSeconds(key, value, seconds); !wrong.empty()) return wrong;
    (limits.*setter)(seconds);
    return {};
  }
  return "'" + key +
         "' cannot be set: max-unavailable, soak, step-deadline, retry-after, lost-after, "
         "preflight-valid, approve";
}

int Set(Program& program, const RunningQuery& query) {
  admin::v1::SetMigrationLimitsRequest request;
  request.set_name(MigrationName(query.migration));
  for (const std::string& setting : query.settings) {
    if (const std::string wrong = ReadSetting(setting, *request.mutable_limits()); !wrong.empty())
      return FailUsage(wrong);
  }
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  Migration migration;
  if (auto result = program.objects().Write(std::string(kMigrations) + "SetMigrationLimits",
                                            request, program.options.write, migration);
      !result.ok())
    return Fail(result);
  return Show(program, migration);
}

bool ChangesByItself(const Migration& migration) {
  for (const char* const state :
       {"PLANNED", "PREFLIGHTED", "RUNNING", "ROLLING_BACK", "FINALIZING"}) {
    if (migration.state() == state) return true;
  }
  return false;
}

// Shows the status again and again, until the migration waits for a person or has ended.
int WatchStatus(Program& program, const RunningQuery& query) {
  Migration migration;
  for (std::string shown;;) {
    if (auto result = GetMigration(program, query.migration, migration); !result.ok())
      return Fail(result);
    const std::string text = MigrationStatusText(migration, StatusLimit(program));
    if (Program::colour()) {
      std::cout << "\033[H\033[J" << text << std::flush;
    } else if (text != shown) {
      std::cout << (shown.empty() ? "" : "\n") << text << std::flush;
    }
    shown = text;
    if (!ChangesByItself(migration)) return kOk;
    std::this_thread::sleep_for(kWatchEvery);
  }
}

int ListMigrations(Program& program) {
  const admin::v1::ListMigrationsRequest request;
  admin::v1::ListMigrationsResponse list;
  if (auto result = program.rpc().Call(std::string(kMigrations) + "ListMigrations", request, list);
      !result.ok())
    return Fail(result);
  if (PrintDocument(program, NamedMessages{{"list", &list}})) return kOk;
  std::cout << MigrationListText(list, StatusLimit(program));
  return kOk;
}

int ShowStatus(Program& program, const RunningQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  if (query.migration.empty()) return ListMigrations(program);
  if (query.watch) return WatchStatus(program, query);
  Migration migration;
  if (auto result = GetMigration(program, query.migration, migration); !result.ok())
    return Fail(result);
  return Show(program, migration);
}

CallResult AllEvents(Program& program, const std::string& id,
                     admin::v1::ListMigrationEventsResponse& all) {
  admin::v1::ListMigrationEventsRequest request;
  request.set_name(MigrationName(id));
  request.set_page_size(1000);
  admin::v1::ListMigrationEventsResponse page;
  do {
    page.Clear();
    if (auto result =
            program.rpc().Call(std::string(kMigrations) + "ListMigrationEvents", request, page);
        !result.ok())
      return result;
    all.mutable_events()->MergeFrom(page.events());
    if (!all.events().empty()) request.set_after(all.events(all.events_size() - 1).number());
  } while (page.more());
  return {};
}

int Events(Program& program, const RunningQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  admin::v1::ListMigrationEventsResponse all;
  if (auto result = AllEvents(program, query.migration, all); !result.ok()) return Fail(result);
  if (PrintDocument(program, NamedMessages{{"events", &all}})) return kOk;
  Table table;
  table.AddColumn("AFTER", Column::kRight);
  table.AddColumn("WHO", Column::kCut);
  table.AddColumn("WHAT", Column::kCut);
  table.AddColumn("TO", Column::kLeft);
  table.AddColumn("WHY", Column::kCut);
  for (const admin::v1::MigrationEvent& event : all.events()) {
    table.AddRow({AgeText(event.time().seconds() - all.events(0).time().seconds()), event.who(),
                  event.subject(), OrDash(event.after()), OrDash(event.reason())});
  }
  std::cout << table.Text(StatusLimit(program));
  return kOk;
}

int Report(Program& program, const RunningQuery& query) {
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  Migration migration;
  if (auto result = GetMigration(program, query.migration, migration); !result.ok())
    return Fail(result);
  admin::v1::ListMigrationEventsResponse events;
  if (auto result = AllEvents(program, query.migration, events); !result.ok()) return Fail(result);
  if (PrintDocument(program, NamedMessages{{"migration", &migration}, {"events", &events}}))
    return kOk;
  std::cout << MigrationReportText(migration, events);
  return kOk;
}

void AddRequestId(CLI::App* command, Program& program) {
  command
      ->add_option("--request-id", program.options.write.request_id,
                   "repeats the call of that id: nothing is done twice")
      ->type_name("UUID");
}

void AddMigrationName(CLI::App* command, const std::shared_ptr<RunningQuery>& query) {
  command->add_option("MIGRATION", query->migration, "its name")->required();
}

void AddOrders(CLI::App& migrate, Program& program, const std::shared_ptr<RunningQuery>& query) {
  struct Plain {
    const char* name;
    const char* help;
    admin::v1::MigrationVerb verb;
  };
  for (const Plain& plain :
       {Plain{"preflight", "measure again whether it may start", admin::v1::PREFLIGHT},
        Plain{"pause", "let no further node begin", admin::v1::PAUSE},
        Plain{"resume", "go on after a pause", admin::v1::RESUME},
        Plain{"abort", "end it; nodes in hand go back", admin::v1::ABORT},
        Plain{"finalize", "remove the old paths: there is no way back afterwards",
              admin::v1::FINALIZE}}) {
    AddMigrationName(
        program.Add(migrate, plain.name, plain.help, "",
                    [&program, query, verb = plain.verb] { return Order(program, *query, verb); }),
        query);
  }
  AddMigrationName(program.Add(migrate, "delete", "forget a migration that has ended", "",
                               [&program, query] { return Delete(program, *query); }),
                   query);
  for (const Plain& plain : {Plain{"retry", "try a node again", admin::v1::RETRY},
                             Plain{"skip", "take charge of a node yourself", admin::v1::SKIP}}) {
    CLI::App* const command =
        program.Add(migrate, plain.name, plain.help, "",
                    [&program, query, verb = plain.verb] { return Order(program, *query, verb); });
    AddMigrationName(command, query);
    command->add_option("--node", query->node, "its name")->required()->type_name("NODE");
  }
}

}  // namespace

CallResult GetMigration(Program& program, const std::string& id, Migration& migration) {
  admin::v1::GetMigrationRequest request;
  request.set_name(MigrationName(id));
  migration.Clear();
  return program.rpc().Call(std::string(kMigrations) + "GetMigration", request, migration);
}

size_t StatusLimit(const Program& program) {
  return program.wide() ? 0 : std::max(program.line_limit(), kStatusColumns);
}

void AddRunningCommands(CLI::App& migrate, Program& program) {
  const auto query = std::make_shared<RunningQuery>();
  CLI::App* const start = program.Add(
      migrate, "start", "give a plan to the controller, wait for the preflight, and begin",
      "  rocegwctl migrate start plan.json --name tcp-to-gateway",
      [&program, query] { return Start(program, *query); });
  start->add_option("PLAN", query->plan, "file with the plan")->required();
  start->add_option("--name", query->name, "of the migration; else the plan's")->type_name("NAME");
  AddOrders(migrate, program, query);
  CLI::App* const approve = program.Add(migrate, "approve", "let a wave begin",
                                        "  rocegwctl migrate approve tcp-to-gateway wave-2",
                                        [&program, query] { return Approve(program, *query); });
  AddMigrationName(approve, query);
  approve->add_option("WAVE", query->wave, "its name")->required();
  CLI::App* const back = program.Add(migrate, "rollback", "bring changed nodes back",
                                     "  rocegwctl migrate rollback tcp-to-gateway --all",
                                     [&program, query] { return RollBack(program, *query); });
  AddMigrationName(back, query);
  back->add_flag("--all", query->all, "every changed node");
  back->add_option("--wave", query->wave, "the nodes of one wave")->type_name("WAVE");
  back->add_option("--node", query->node, "one node")->type_name("NODE");
  CLI::App* const set = program.Add(migrate, "set", "change limits, also while it runs",
                                    "  rocegwctl migrate set tcp-to-gateway max-unavailable=2 "
                                    "soak=5m",
                                    [&program, query] { return Set(program, *query); });
  AddMigrationName(set, query);
  set->add_option("LIMIT=VALUE", query->settings,
                  "max-unavailable, soak, step-deadline, retry-after, lost-after, "
                  "preflight-valid, approve")
      ->required();
  AddRequestId(set, program);
  AddRequestId(approve, program);
  CLI::App* const status =
      program.Add(migrate, "status", "where it is, what it waits for, what would stop it",
                  "  rocegwctl migrate status\n  rocegwctl migrate status tcp-to-gateway --watch",
                  [&program, query] { return ShowStatus(program, *query); });
  status->add_option("MIGRATION", query->migration, "its name; none: all");
  status->add_flag("--watch", query->watch, "until it waits for a person or has ended");
  AddMigrationName(program.Add(migrate, "events", "each change of a state", "",
                               [&program, query] { return Events(program, *query); }),
                   query);
  AddMigrationName(program.Add(migrate, "report", "all of it as Markdown, or with -o json", "",
                               [&program, query] { return Report(program, *query); }),
                   query);
}

}  // namespace rocegw::cli
