// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/scenarios/scenarios.h"

#include <cstdio>
#include <cstdlib>

namespace rocegw::sim {
namespace {

// Settings that every rate scenario has.
#define ROCEGW_SIM_RATE_SETTINGS                                                           \
  {"gbps", "100", "rate of every link, Gbit/s"},                                           \
      {"delay_us", "1", "propagation delay of every link, microseconds"},                  \
      {"queue_kb", "4096", "room in a switch's output queue, KiB"},                        \
      {"ecn", "red", "marking: none, red (DCQCN's) or step (DCTCP's)"},                    \
      {"kmin_kb", "100", "where marking begins, KiB; the threshold of a step"},            \
      {"kmax_kb", "400", "where red marks everything, KiB"},                               \
      {"pmax", "0.2", "share that red marks just below kmax"},                             \
      {"hint_low_kb", "0", "hints: a queue up to that is as good as empty"},               \
      {"hint_high_kb", "0", "hints: a queue from that on is full; 0: switches give none"}, \
      {"mtu_code", "3", "path MTU of connections: 1 = 256 .. 3 = 1024 .. 5 = 4096 bytes"}, \
      {"cc", "dcqcn", "congestion control of gateways"},                                   \
      {"cc_set", "", "its parameters that are not preset: name=value, with commas"},       \
      {"channels", "0", "1: flows between gateways ride on channels"},                     \
      {"window_kb", "1024", "most that a flow of a gateway has in flight, KiB"},           \
      {"pool_window_kb", "0", "the same by its pool's policy; 0: there is none"},          \
      {"burst_us", "16", "how much lateness a paced flow makes up for at once"},           \
      {"nic_packets", "128", "transmit queue of a host's NIC"},                            \
      {"message_kb", "32", "size of a WRITE"}, {"depth", "64", "WRITEs posted at once"},   \
      {"ms", "20", "virtual milliseconds that are measured"}, {                            \
    "warmup_ms", "10", "virtual milliseconds before"                                       \
  }

constexpr Setting kPair[] = {ROCEGW_SIM_RATE_SETTINGS,
                             {"from", "gateway", "gateway or rnic"},
                             {"to", "gateway", "gateway or rnic"},
                             {"lose", "0", "share of packets that are lost on the way there"}};
constexpr Setting kLoss[] = {ROCEGW_SIM_RATE_SETTINGS,
                             {"losses", "0.001,0.003,0.01,0.03,0.05", "shares, with commas"}};
constexpr Setting kLossBeside[] = {
    ROCEGW_SIM_RATE_SETTINGS,
    {"losses", "0,0.001,0.005,0.01,0.02,0.05", "shares, with commas"},
    {"tcp", "", "figures of tests/bench/tcp_loss.py to put beside, a file"}};
constexpr Setting kFairness[] = {
    ROCEGW_SIM_RATE_SETTINGS,
    {"flows", "4", "senders, one flow each"},
    {"topology", "star", "star: all to one host; pairs: each to its own, over one trunk"}};
constexpr Setting kIncast[] = {ROCEGW_SIM_RATE_SETTINGS,
                               {"flows", "100", "senders to one receiver"},
                               {"each_kb", "1024", "what each sends, KiB"},
                               {"most_ms", "2000", "virtual milliseconds at most"}};
constexpr Setting kJoin[] = {ROCEGW_SIM_RATE_SETTINGS,
                             {"flows", "1", "flows that are there already"},
                             {"within", "0.25", "converged: so near to its fair share, and stays"}};
constexpr Setting kMixed[] = {ROCEGW_SIM_RATE_SETTINGS,
                              {"gateways", "1", "flows of gateways"},
                              {"rnics", "1", "flows of RNICs"},
                              {"receiver", "gateway", "gateway or rnic"}};
constexpr Setting kFleet[] = {ROCEGW_SIM_RATE_SETTINGS,
                              {"hosts", "1024", "each sends to one and receives from one"},
                              {"per_leaf", "32", "hosts of one leaf switch"},
                              {"spines", "16", "spine switches"},
                              {"each_kb", "64", "what each sends, KiB"}};
constexpr Setting kOracle[] = {
    {"seeds", "100", "random worlds, from --seed on"},
    {"packets", "0", "go on until so many packets were sent"},
    {"channels", "seed", "on channels: as the seed says, never, always"},
    {"hand_overs", "never", "hosts go over at random moments: never, queue_pairs, workers"},
    {"least_hand_overs", "0", "go on until so many hosts went over"}};

constexpr Scenario kScenarios[] = {
    {"pair", "one flow on one cable", kPair, RunPair},
    {"loss-sweep", "goodput under random loss, beside what Go-Back-N can reach", kLoss,
     RunLossSweep},
    {"loss", "goodput and repetitions under random loss: channels, Go-Back-N, measured TCP",
     kLossBeside, RunLoss},
    {"fairness", "long flows from many hosts to one: shares, queue, utilisation", kFairness,
     RunFairness},
    {"incast", "many send at once to one: how long, and what is lost", kIncast, RunIncast},
    {"join", "a flow joins others: how long until it has its share", kJoin, RunJoin},
    {"mixed-rnic", "gateways and RNICs with DCQCN share a link", kMixed, RunMixed},
    {"fleet", "a leaf-spine fabric of many hosts: what a host costs", kFleet, RunFleet},
    {"oracle", "random worlds with every byte checked", kOracle, RunOracleWorlds},
};

}  // namespace

double Settings::Number(const std::string& name) const {
  const std::string& text = values_.at(name);
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != '\0') {
    std::fprintf(stderr, "%s: '%s' is not a number\n", name.c_str(), text.c_str());
    std::exit(2);
  }
  return value;
}

std::span<const Scenario> AllScenarios() { return kScenarios; }

const Scenario* FindScenario(const std::string& name) {
  for (const Scenario& scenario : kScenarios) {
    if (name == scenario.name) return &scenario;
  }
  return nullptr;
}

Settings Presets(const Scenario& scenario) {
  Settings settings;
  for (const Setting& setting : scenario.settings) settings.Set(setting.name, setting.preset);
  return settings;
}

Report RunScenario(const std::string& name, uint64_t seed,
                   const std::vector<std::pair<std::string, std::string>>& changes) {
  const Scenario* scenario = FindScenario(name);
  if (scenario == nullptr) return {.failure = "no scenario " + name};
  Settings settings = Presets(*scenario);
  for (const auto& [key, value] : changes) {
    if (!settings.Has(key)) return {.failure = "no setting " + key};
    settings.Set(key, value);
  }
  return scenario->run(seed, settings);
}

}  // namespace rocegw::sim
