// SPDX-License-Identifier: Apache-2.0
// rocegwctl migrate inventory and adapter-test: calls of an adapter on this host, of rocegw's own
// or of the site's.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <nlohmann/json.hpp>

#include "controlplane/cli/exit_code.h"
#include "controlplane/cli/migrate/inventory_view.h"
#include "controlplane/cli/migrate/migrate_commands.h"
#include "controlplane/cli/views/table.h"
#include "controlplane/migration/adapter_process/conformance.h"

namespace rocegw::cli {
namespace {

// Adapter that calls a program of the site: after -- here, from the cluster's description on hosts.
constexpr char kExec[] = "exec";

struct AdapterOptions {
  std::string cluster;
  std::string adapter;  // name of an installed one
  std::string folder = "/usr/libexec/rocegw/adapters";
  std::vector<std::string> words;
  std::string change_node;
  std::string to = "gateway";
};

// Programs of the folder, which are the adapters that are installed.
std::vector<std::string> Installed(const std::string& folder) {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error))
    if (entry.is_regular_file(error)) names.push_back(entry.path().filename());
  std::ranges::sort(names);
  return names;
}

// Finds the program of `options` and its arguments. Returns what is wrong; "": nothing.
std::string FindProgram(AdapterOptions& options) {
  const bool is_exec = options.adapter == kExec && !options.words.empty();
  if (!is_exec && options.adapter.empty() == options.words.empty())
    return "name an installed adapter with --adapter, or a program after --";
  if (options.adapter.empty() || is_exec) return "";
  const std::vector<std::string> installed = Installed(options.folder);
  if (std::ranges::find(installed, options.adapter) == installed.end()) {
    return "there is no adapter " + options.adapter + " in " + options.folder +
           "; there: " + Joined(installed, ", ");
  }
  options.words = {options.folder + "/" + options.adapter};
  return "";
}

int ShowInventory(const Program& program, AdapterOptions& options) {
  if (const std::string problem = FindProgram(options); !problem.empty()) return FailUsage(problem);
  const migration::Adapter adapter(options.words);
  std::string problem;
  migration::Inventory inventory = adapter.ReadInventory(options.cluster, problem);
  if (!problem.empty()) return Fail({kFailed, options.words[0] + ": " + problem, {}});
  // The agents call the adapter that the plan names: "exec", which finds the program again.
  if (options.adapter == kExec) inventory.adapter = kExec;
  std::cout << (program.is_table() ? InventoryText(inventory, StatusLimit(program), program.wide())
                                   : migration::InventoryJson(inventory));
  return kOk;
}

int TestAdapter(const Program& program, AdapterOptions& options) {
  if (const std::string problem = FindProgram(options); !problem.empty()) return FailUsage(problem);
  migration::ConformanceOptions chosen{.cluster = options.cluster,
                                       .change_node = options.change_node};
  chosen.to = *migration::FromWord<migration::Transport>(options.to);
  const bool json = program.options.format == "json";
  nlohmann::json checks = nlohmann::json::array();
  const size_t failed =
      migration::TestAdapter(options.words, chosen, [&](const migration::ConformanceCheck& check) {
        if (json) {
          checks.push_back({{"name", check.name}, {"passed", check.passed}, {"text", check.text}});
          return;
        }
        std::cout << (check.passed ? "ok      " : "FAILED  ") << check.name << "\n";
        if (!check.passed) std::cout << "        " << check.text << "\n";
        std::cout.flush();
      });
  if (json) {
    std::cout << nlohmann::json{{"failed", failed}, {"checks", std::move(checks)}}.dump(2) << "\n";
  } else {
    std::cout << (failed == 0 ? "the adapter conforms\n"
                              : std::to_string(failed) + " checks failed\n");
  }
  return failed == 0 ? kOk : kConditionFalse;
}

void AddProgram(CLI::App* command, const std::shared_ptr<AdapterOptions>& options) {
  command->add_option("CLUSTER", options->cluster, "name of the cluster")->required();
  command->add_option("PROGRAM", options->words, "an adapter and its arguments, after --");
  command
      ->add_option("--adapter", options->adapter,
                   "an installed adapter: ceph, exec, generic, iser, nvmeof")
      ->type_name("NAME");
  command->add_option("--adapters", options->folder, "folder of installed adapters")
      ->type_name("DIR")
      ->capture_default_str();
}

}  // namespace

void AddAdapterCommands(CLI::App& migrate, Program& program) {
  const auto options = std::make_shared<AdapterOptions>();
  AddProgram(program.Add(migrate, "inventory", "ask an adapter what the cluster consists of",
                         "  rocegwctl migrate inventory c1 --adapter ceph\n"
                         "  rocegwctl migrate inventory c1 --adapter ceph -o json > cluster.json\n"
                         "  rocegwctl migrate inventory c1 -o json -- ./adapter.py > cluster.json\n"
                         "  rocegwctl migrate inventory c1 --adapter exec -o json -- ./adapter.py",
                         [&program, options] { return ShowInventory(program, *options); }),
             options);
  CLI::App* const test =
      program.Add(migrate, "adapter-test", "check that an adapter keeps to the protocol",
                  "  rocegwctl migrate adapter-test c1 -- ./adapter.py\n"
                  "  rocegwctl migrate adapter-test c1 --change n1 -- ./adapter.py",
                  [&program, options] { return TestAdapter(program, *options); });
  AddProgram(test, options);
  test->add_option("--change", options->change_node, "change this node, and bring it back")
      ->type_name("NODE");
  test->add_option("--to", options->to, "with --change: gateway, rnic or tcp")
      ->check(CLI::IsMember({"gateway", "rnic", "tcp"}).description(""))
      ->type_name("PATH")
      ->capture_default_str();
}

}  // namespace rocegw::cli
