// SPDX-License-Identifier: Apache-2.0
// rocegwctl migrate: plans of migrations, compared and simulated from files, without a controller.
#include "controlplane/cli/migrate/migrate_commands.h"

#include <algorithm>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>

#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/exit_code.h"
#include "controlplane/cli/migrate/migration_views.h"
#include "controlplane/cli/program.h"
#include "controlplane/cli/views/wrapped.h"
#include "controlplane/migration/plan/planner.h"

namespace rocegw::cli {
namespace {

struct PlanOptions {
  std::string inventory;
  std::string name = "migration";
  std::string target;
  std::string waves = "canary=1,10%,50%,100%";
  std::string per_domain;
  std::string soak = "10m";
  std::string step_deadline = "10m";
  uint32_t max_unavailable = 1;
  std::vector<std::string> gates;
  bool flag_day = false;
  bool auto_approve = false;
  std::string file;
};

struct SimulateOptions {
  std::string plan;
  std::string inventory;  // for diff
  std::vector<std::string> failures;
  std::vector<std::string> then;
  uint64_t seed = 1;
  bool events = false;
};

CallResult ReadWhole(const std::string& path, size_t most, std::string& text) {
  std::ifstream file;
  if (path != "-") file.open(path, std::ios::binary);
  std::istream& input = path == "-" ? std::cin : file;
  if (!input) return {kNotFound, "cannot read " + path, {}};
  text.resize(most + 1);
  input.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<size_t>(input.gcount()));
  if (text.size() > most) return {kFailed, path + " is larger than " + std::to_string(most), {}};
  return {};
}

CallResult LoadInventory(const std::string& path, migration::Inventory& inventory) {
  std::string text;
  std::string problem;
  if (auto result = ReadWhole(path, migration::kMostInventoryBytes, text); !result.ok())
    return result;
  inventory = migration::ReadInventory(text, problem);
  if (problem.empty()) return {};
  return {kFailed, path + ": " + problem, {}};
}

CallResult LoadPlan(const std::string& path, migration::Plan& plan) {
  std::string text;
  std::string problem;
  if (auto result = ReadWhole(path, migration::kMostPlanBytes, text); !result.ok()) return result;
  plan = migration::ReadPlan(text, problem);
  if (problem.empty()) return {};
  return {kFailed, path + ": " + problem, {}};
}

bool IsJson(const Program& program) {
  return program.options.format == "json" || program.options.format == "yaml";
}

int MakePlan(const Program& program, const PlanOptions& options) {
  migration::Inventory inventory;
  if (auto result = LoadInventory(options.inventory, inventory); !result.ok()) return Fail(result);
  migration::PlanRequest request{.name = options.name};
  request.target = *migration::FromWord<migration::Transport>(options.target);
  std::string problem;
  request.waves = migration::ReadWaveSizes(options.waves, problem);
  if (!problem.empty()) return FailUsage("--waves: " + problem);
  request.per_domain = options.per_domain;
  request.allow_flag_day = options.flag_day;
  request.gates = options.gates;
  request.knobs.max_unavailable = options.max_unavailable;
  request.knobs.automatic_approval = options.auto_approve;
  uint32_t seconds = 0;
  if (auto wrong = ReadSeconds("--soak", options.soak, seconds); !wrong.empty())
    return FailUsage(wrong);
  request.knobs.soak = seconds;
  if (auto wrong = ReadSeconds("--step-deadline", options.step_deadline, seconds); !wrong.empty())
    return FailUsage(wrong);
  request.knobs.step_deadline = seconds;
  const migration::PlanResult made = migration::MakePlan(inventory, request);
  if (!made.problems.empty()) {
    std::string text = "there is no such plan:";
    for (const std::string& each : made.problems) text += "\n  " + each;
    return Fail({kFailed, text, {}});
  }
  if (!options.file.empty()) {
    std::ofstream file(options.file, std::ios::binary | std::ios::trunc);
    file << migration::PlanJson(made.plan);
    file.close();
    if (!file) return Fail({kFailed, "cannot write " + options.file, {}});
  }
  std::cout << (IsJson(program) ? migration::PlanJson(made.plan)
                                : PlanText(made.plan, StatusLimit(program)));
  return kOk;
}

int Diff(const Program& program, const SimulateOptions& options) {
  migration::Plan plan;
  migration::Inventory inventory;
  if (auto result = LoadPlan(options.plan, plan); !result.ok()) return Fail(result);
  if (auto result = LoadInventory(options.inventory, inventory); !result.ok()) return Fail(result);
  const auto differences = migration::DifferencesOf(plan, inventory);
  std::cout << (IsJson(program) ? DifferencesJson(differences)
                                : DifferencesText(differences, StatusLimit(program)));
  return differences.empty() ? kOk : kConditionFalse;
}

// Finds the accepted order that a person would type so; "retry" alone is the first one that fits.
bool GiveOrder(const migration::Plan& plan, migration::Simulation& simulation,
               const std::string& text) {
  for (const migration::Order& order : migration::Exits(plan, simulation.record())) {
    const std::string typed = migration::OrderText(plan, order);
    if (typed == text || typed.substr(0, typed.find(' ')) == text)
      return simulation.Give(order).empty();
  }
  return false;
}

int Simulate(const Program& program, const SimulateOptions& options) {
  migration::Plan plan;
  if (auto result = LoadPlan(options.plan, plan); !result.ok()) return Fail(result);
  migration::Simulation::Options chosen{.failures = {}, .seed = options.seed};
  for (const std::string& text : options.failures) {
    std::string problem;
    chosen.failures.push_back(migration::ReadFailure(text, plan, problem));
    if (!problem.empty()) return FailUsage("--fail: " + problem);
  }
  migration::Simulation simulation(plan, chosen);
  const int64_t begun_at = simulation.now();
  if (std::string refusal = simulation.Begin(); !refusal.empty())
    return Fail({kFailed, "the plan cannot be started: " + refusal, {}});
  simulation.RunUntilQuiet();
  for (const std::string& order : options.then) {
    if (!GiveOrder(plan, simulation, order)) {
      return FailUsage("--then: '" + order + "' is not accepted in the state " +
                       std::string(WordOf(simulation.record().state)));
    }
    simulation.RunUntilQuiet();
  }
  const SimulationView view{plan, simulation, begun_at, options.events};
  std::cout << (IsJson(program) ? SimulationJson(view)
                                : SimulationText(view, StatusLimit(program)));
  if (!simulation.violations().empty() || simulation.exhausted()) return kFailed;
  const auto state = simulation.record().state;
  const bool ended = state == migration::MigrationState::kCompleted ||
                     state == migration::MigrationState::kFinalized ||
                     state == migration::MigrationState::kRolledBack ||
                     state == migration::MigrationState::kAborted;
  return ended ? kOk : kConditionFalse;
}

void AddPlan(CLI::App& migrate, Program& program) {
  const auto options = std::make_shared<PlanOptions>();
  CLI::App* const plan =
      program.Add(migrate, "plan", "make a plan from an inventory; nothing is changed",
                  "  rocegwctl migrate plan cluster.json --to gateway --per-domain rack -f p.json\n"
                  "  rocegwctl migrate plan cluster.json --to rnic --waves canary=1,50%,100%",
                  [&program, options] { return MakePlan(program, *options); });
  plan->add_option("INVENTORY", options->inventory, "file with the inventory, - for stdin")
      ->required();
  plan->add_option("--to", options->target, "gateway, rnic or tcp")
      ->required()
      ->check(CLI::IsMember({"gateway", "rnic", "tcp"}).description(""))
      ->type_name("PATH");
  plan->add_option("--name", options->name, "of the plan")->type_name("NAME");
  plan->add_option("--waves", options->waves, "numbers, or percentages of all; NAME= before each")
      ->type_name("WAVES")
      ->capture_default_str();
  plan->add_option("--max-unavailable", options->max_unavailable,
                   "nodes that may be out of service at a time")
      ->type_name("N")
      ->capture_default_str();
  plan->add_option("--per-domain", options->per_domain,
                   "of one domain at a time, by this label of the nodes")
      ->type_name("LABEL");
  plan->add_option("--soak", options->soak, "wait after each wave, before its gates")
      ->type_name("TIME")
      ->capture_default_str();
  plan->add_option("--step-deadline", options->step_deadline, "for each step of a node")
      ->type_name("TIME")
      ->capture_default_str();
  plan->add_option("--gate", options->gates, "PromQL that must hold after each wave")
      ->type_name("EXPR");
  plan->add_flag("--flag-day", options->flag_day, "a window without service is accepted");
  plan->add_flag("--auto-approve", options->auto_approve, "no person approves the waves");
  plan->add_option("-f,--file", options->file, "write the plan here")->type_name("FILE");
}

void AddSimulate(CLI::App& migrate, Program& program) {
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App* const simulate =
      program.Add(migrate, "simulate", "run a plan against a cluster in memory, with failures",
                  "  rocegwctl migrate simulate plan.json\n"
                  "  rocegwctl migrate simulate plan.json --fail node=3,step=switch\n"
                  "  rocegwctl migrate simulate plan.json --fail node=7,kind=lost,back=600\n"
                  "      --then retry --then resume\n"
                  "Kinds of failures:\n" +
                      Wrapped(migration::FailureKinds(), "  "),
                  [&program, options] { return Simulate(program, *options); });
  simulate->add_option("PLAN", options->plan, "file with the plan")->required();
  simulate->add_option("--fail", options->failures, "node=NODE,step=STEP,kind=KIND, or wave=WAVE")
      ->type_name("WHAT");
  simulate->add_option("--then", options->then, "what a person does when it stops")
      ->type_name("ORDER");
  simulate->add_option("--seed", options->seed, "of the durations of steps")->type_name("N");
  simulate->add_flag("--events", options->events, "each change of a state");
}

}  // namespace

void AddMigrateCommands(CLI::App& app, Program& program) {
  CLI::App* const migrate =
      program.Add(app, "migrate", "plan, rehearse and run migrations of a storage cluster",
                  "  rocegwctl migrate plan cluster.json --to gateway -f plan.json\n"
                  "  rocegwctl migrate simulate plan.json --fail node=3,step=switch",
                  nullptr);
  AddPlan(*migrate, program);
  const auto options = std::make_shared<SimulateOptions>();
  CLI::App* const diff = program.Add(*migrate, "diff", "what a plan and the cluster disagree about",
                                     "  rocegwctl migrate diff plan.json cluster.json",
                                     [&program, options] { return Diff(program, *options); });
  diff->add_option("PLAN", options->plan, "file with the plan")->required();
  diff->add_option("INVENTORY", options->inventory, "file with the inventory")->required();
  AddSimulate(*migrate, program);
  AddAdapterCommands(*migrate, program);
  AddRunningCommands(*migrate, program);
  AddVerifyCommand(*migrate, program);
}

}  // namespace rocegw::cli
