// SPDX-License-Identifier: Apache-2.0
// Scenarios that tests and the command line run by name, and their settings. A scenario is a
// function from a seed and settings to a report; equal arguments give equal reports.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/scenarios/report.h"

namespace rocegw::sim {

// Names and values as text. Reading a missing one is a bug in the scenario's table.
class Settings {
 public:
  void Set(const std::string& name, const std::string& value) { values_[name] = value; }
  bool Has(const std::string& name) const { return values_.contains(name); }
  std::string Text(const std::string& name) const { return values_.at(name); }
  double Number(const std::string& name) const;
  uint64_t Count(const std::string& name) const { return static_cast<uint64_t>(Number(name)); }

 private:
  std::map<std::string, std::string> values_;
};

struct Setting {
  const char* name;
  const char* preset;
  const char* meaning;
};

struct Scenario {
  const char* name;
  const char* summary;
  std::span<const Setting> settings;
  Report (*run)(uint64_t seed, const Settings& settings);
};

std::span<const Scenario> AllScenarios();
// Returns nullptr if there is no scenario of this name.
const Scenario* FindScenario(const std::string& name);
Settings Presets(const Scenario& scenario);

// Runs with the presets except for the given changes, for example {"flows", "8", "cc", "dctcp"}.
Report RunScenario(const std::string& name, uint64_t seed,
                   const std::vector<std::pair<std::string, std::string>>& changes);

// Functions of the scenarios in the list.
Report RunPair(uint64_t seed, const Settings& settings);
Report RunLossSweep(uint64_t seed, const Settings& settings);
Report RunLoss(uint64_t seed, const Settings& settings);
Report RunFairness(uint64_t seed, const Settings& settings);
Report RunIncast(uint64_t seed, const Settings& settings);
Report RunJoin(uint64_t seed, const Settings& settings);
Report RunMixed(uint64_t seed, const Settings& settings);
Report RunFleet(uint64_t seed, const Settings& settings);
Report RunOracleWorlds(uint64_t seed, const Settings& settings);

}  // namespace rocegw::sim
