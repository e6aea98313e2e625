// SPDX-License-Identifier: Apache-2.0
// Command line of the simulator: lists scenarios, runs one, prints its figures and writes them as
// CSV and as a plot. scripts/sim builds and calls it.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "tests/sim/scenarios/scenarios.h"

namespace {

using rocegw::sim::AllScenarios;
using rocegw::sim::Report;
using rocegw::sim::Scenario;
using rocegw::sim::Setting;
using rocegw::sim::Settings;

constexpr const char* kUsage =
    "Runs gateways in a simulated network: the daemon's own workers, in virtual time, seeded.\n"
    "\n"
    "  list                 scenarios\n"
    "  help SCENARIO        what a scenario does and its settings\n"
    "  run SCENARIO         runs it and prints figures; 1 when something is wrong\n"
    "      --seed N         the same seed and settings give the same run (1)\n"
    "      --set NAME=VALUE changes a setting; as often as wanted\n"
    "      --csv FILE       figures and lines as text\n"
    "      --json FILE      figures alone\n"
    "      --svg FILE       queue and rates over time as a picture\n"
    "\n"
    "For instance:\n"
    "  run fairness --set flows=8 --set cc=dctcp --set ecn=step --svg shares.svg\n"
    "  run mixed-rnic --set gbps=25\n"
    "  run oracle --seed 4711 --set seeds=1      repeats what a test said of seed 4711\n";

int Refuse(const std::string& text) {
  std::fprintf(stderr, "rocegw_sim: %s\n", text.c_str());
  return 2;
}

int List() {
  for (const Scenario& scenario : AllScenarios()) {
    std::printf("%-12s %s\n", scenario.name, scenario.summary);
  }
  return 0;
}

int Help(const char* name) {
  const Scenario* scenario = rocegw::sim::FindScenario(name);
  if (scenario == nullptr) return Refuse(std::string("no scenario '") + name + "'; try list");
  std::printf("%s: %s\n\n", scenario->name, scenario->summary);
  for (const Setting& setting : scenario->settings) {
    std::printf("  %-14s %-8s %s\n", setting.name, setting.preset, setting.meaning);
  }
  return 0;
}

bool Write(const char* path, const std::string& text) {
  std::FILE* file = std::fopen(path, "w");
  if (file == nullptr) return false;
  const bool written = std::fwrite(text.data(), 1, text.size(), file) == text.size();
  return std::fclose(file) == 0 && written;
}

int Run(int count, char** arguments) {
  const char* name = arguments[0];
  const Scenario* scenario = rocegw::sim::FindScenario(name);
  if (scenario == nullptr) return Refuse(std::string("no scenario '") + name + "'; try list");
  Settings settings = rocegw::sim::Presets(*scenario);
  uint64_t seed = 1;
  const char* csv = nullptr;
  const char* svg = nullptr;
  const char* json = nullptr;
  for (int i = 1; i < count; i += 2) {
    const std::string option = arguments[i];
    if (i + 1 == count) return Refuse(option + " needs a value");
    const char* value = arguments[i + 1];
    if (option == "--seed") {
      seed = std::strtoull(value, nullptr, 0);
    } else if (option == "--csv") {
      csv = value;
    } else if (option == "--json") {
      json = value;
    } else if (option == "--svg") {
      svg = value;
    } else if (option == "--set") {
      const char* equals = std::strchr(value, '=');
      if (equals == nullptr) return Refuse("--set NAME=VALUE");
      const std::string key(value, equals);
      if (!settings.Has(key)) return Refuse("no setting '" + key + "'; try help " + name);
      settings.Set(key, equals + 1);
    } else {
      return Refuse("unknown option " + option);
    }
  }
  const Report report = scenario->run(seed, settings);
  std::printf("%s, seed %llu\n%s", name, static_cast<unsigned long long>(seed),
              rocegw::sim::Text(report).c_str());
  const std::string title =
      std::string(name) + ", seed " + std::to_string(seed) + ": " + scenario->summary;
  if (csv != nullptr && !Write(csv, rocegw::sim::Csv(report))) return Refuse("cannot write CSV");
  if (json != nullptr && !Write(json, rocegw::sim::Json(report))) {
    return Refuse("cannot write JSON");
  }
  if (svg != nullptr && !Write(svg, rocegw::sim::Svg(report, title))) {
    return Refuse("cannot write SVG");
  }
  return report.failure.empty() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "list") return List();
  if (command == "help" && argc == 3) return Help(argv[2]);
  if (command == "run" && argc > 2) return Run(argc - 2, argv + 2);
  std::fputs(kUsage, command.empty() || command == "help" || command == "--help" ? stdout : stderr);
  return command.empty() || command == "help" || command == "--help" ? 0 : 2;
}
