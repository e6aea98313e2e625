// SPDX-License-Identifier: Apache-2.0
// Scenarios with many hosts or many worlds: incast, fleet, oracle.
#include <cstdio>
#include <ctime>

#include "tests/sim/oracle/scenario.h"
#include "tests/sim/scenarios/bench.h"

namespace rocegw::sim {
namespace {

// Returns the resident memory of this process in bytes.
double ResidentBytes() {
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return 0;
  unsigned long long size = 0, resident = 0;
  const int read = std::fscanf(file, "%llu %llu", &size, &resident);
  std::fclose(file);
  return read == 2 ? static_cast<double>(resident) * 4096 : 0;
}

// Returns the CPU time of this process; the machine is shared.
double CpuSeconds() { return static_cast<double>(std::clock()) / CLOCKS_PER_SEC; }

// Returns when the last flow finished, or kNever.
TimePoint Finished(const Bench& bench) {
  TimePoint last;
  for (const auto& flow : bench.flows()) last = std::max(last, flow->finished());
  return last;
}

void AddCompletionTimes(const Bench& bench, Report& report) {
  std::vector<double> times;
  for (const auto& flow : bench.flows()) {
    if (flow->done()) {
      times.push_back(static_cast<double>((flow->finished() - flow->started()).ns) / 1e6);
    }
  }
  report.Add("flows done", static_cast<double>(times.size()), "");
  report.Add("completion mean", Mean(times), "ms");
  report.Add("completion p99", Percentile(times, 0.99), "ms");
}

}  // namespace

Report RunIncast(uint64_t seed, const Settings& settings) {
  Report report;
  Bench bench(seed, settings);
  Site& sink = bench.AddSite(SiteKind::kGateway);
  const uint64_t flows = settings.Count("flows");
  for (uint64_t i = 0; i < flows; ++i) bench.AddSite(SiteKind::kGateway);
  const auto ends = bench.endpoints();
  const Wiring wiring = WireStar(bench.network(), ends, bench.edge());
  Link& link = *wiring.down[0];
  const uint64_t message = settings.Count("message_kb") * 1024;
  const uint64_t each = (settings.Count("each_kb") * 1024 + message - 1) / message * message;
  for (uint64_t i = 1; i <= flows; ++i) bench.AddFlow(bench.site(i), sink, each).Start();
  bench.BeginMeasuring(link);
  const TimePoint from = bench.network().now();
  // Steps of a fiftieth of the transfer time on an uncongested link.
  const auto step =
      static_cast<int64_t>(static_cast<double>(flows * each) * 8e9 / bench.PayloadRate() / 50);
  const TimePoint end = from + Nanoseconds(static_cast<int64_t>(settings.Number("most_ms") * 1e6));
  while (Finished(bench) == kNever && bench.network().now() < end) {
    bench.Run(Nanoseconds(step), link, 10);
  }
  bench.Measure(link, report);
  bench.Plot(report);
  AddCompletionTimes(bench, report);
  const TimePoint finished = Finished(bench);
  if (finished == kNever) {
    report.failure = "not all flows are done";
    return report;
  }
  const double rate =
      static_cast<double>(flows * each) * 8e9 / static_cast<double>((finished - from).ns);
  report.Add("goodput until all are done", rate / bench.PayloadRate(), "of the payload that fits");
  return report;
}

Report RunFleet(uint64_t seed, const Settings& settings) {
  Report report;
  const double before = ResidentBytes();
  const double started = CpuSeconds();
  Bench bench(seed, settings);
  const uint64_t hosts = settings.Count("hosts");
  for (uint64_t i = 0; i < hosts; ++i) bench.AddSite(SiteKind::kGateway);
  const auto ends = bench.endpoints();
  const Wiring wiring = WireLeafSpine(bench.network(), ends, settings.Count("per_leaf"),
                                      settings.Count("spines"), bench.edge(), bench.edge());
  const uint64_t message = settings.Count("message_kb") * 1024;
  const uint64_t each = (settings.Count("each_kb") * 1024 + message - 1) / message * message;
  // Every host sends to a host of another leaf.
  const uint64_t apart = settings.Count("per_leaf") + 1;
  for (uint64_t i = 0; i < hosts; ++i) {
    bench.AddFlow(bench.site(i), bench.site((i + apart) % hosts), each);
  }
  const double made = ResidentBytes();
  const double set_up = CpuSeconds() - started;
  for (const auto& flow : bench.flows()) flow->Start();
  const TimePoint from = bench.network().now();
  while (Finished(bench) == kNever && bench.network().now() - from < Seconds(10)) {
    bench.network().RunFor(Microseconds(100));
  }
  const double took = CpuSeconds() - started;
  AddCompletionTimes(bench, report);
  uint64_t lost = 0;
  for (const auto& link : bench.network().links()) lost += link->counters().tail_drops;
  report.Add("packets", static_cast<double>(bench.network().entered()), "");
  report.Add("lost", static_cast<double>(lost), "packets");
  report.Add("memory of a host", (made - before) / 1024 / static_cast<double>(hosts),
             "KiB, with its flow");
  report.Add("memory in all", ResidentBytes() / 1048576, "MiB");
  report.Add("set up in", set_up, "s of CPU time");
  report.Add("run in", took - set_up, "s of CPU time");
  if (Finished(bench) == kNever) report.failure = "not all flows are done";
  return report;
}

Report RunOracleWorlds(uint64_t seed, const Settings& settings) {
  Report report;
  const uint64_t seeds = settings.Count("seeds");
  const uint64_t wanted = settings.Count("packets");
  const std::string which = settings.Text("channels");
  if (which != "seed" && which != "never" && which != "always") {
    report.failure = "channels is seed, never or always";
    return report;
  }
  const OracleChannels channels = which == "seed"    ? OracleChannels::kBySeed
                                  : which == "never" ? OracleChannels::kNever
                                                     : OracleChannels::kAlways;
  const std::string replaced = settings.Text("hand_overs");
  if (replaced != "never" && replaced != "queue_pairs" && replaced != "workers") {
    report.failure = "hand_overs is never, queue_pairs or workers";
    return report;
  }
  const OracleHandOvers hand_overs = replaced == "never"         ? OracleHandOvers::kNone
                                     : replaced == "queue_pairs" ? OracleHandOvers::kRandom
                                                                 : OracleHandOvers::kWorkers;
  const uint64_t least_hand_overs = settings.Count("least_hand_overs");
  uint64_t handed_over = 0, objects = 0;
  uint64_t worlds = 0, packets = 0, lost = 0, again = 0, requests = 0, bytes = 0, frames = 0;
  double virtual_seconds = 0;
  const double started = CpuSeconds();
  while (worlds < seeds || packets < wanted || handed_over < least_hand_overs) {
    OracleResult one = RunOracle(seed + worlds, Sabotage::kNone, channels, hand_overs);
    // Queue pairs go over at once, so that nothing in the network may change.
    if (hand_overs == OracleHandOvers::kRandom && one.ok() &&
        one.trace_hash != RunOracle(seed + worlds, Sabotage::kNone, channels).trace_hash)
      one.failure = "another trace than without hand-overs";
    ++worlds;
    handed_over += one.hand_overs;
    objects += one.handed_over;
    packets += one.packets;
    lost += one.lost;
    again += one.retransmitted;
    frames += one.channel_frames;
    requests += one.requests;
    bytes += one.bytes;
    virtual_seconds += one.virtual_seconds;
    if (!one.ok()) {
      report.failure =
          "seed " + std::to_string(seed + worlds - 1) + ": " + one.failure + " (" + one.world + ")";
      break;
    }
  }
  const double took = CpuSeconds() - started;
  report.Add("first seed", static_cast<double>(seed), "");
  report.Add("last seed", static_cast<double>(seed + worlds - 1), "");
  report.Add("worlds", static_cast<double>(worlds), "");
  report.Add("packets", static_cast<double>(packets), "");
  report.Add("lost", static_cast<double>(lost), "packets");
  report.Add("sent again", static_cast<double>(again), "packets");
  report.Add("channel frames", static_cast<double>(frames), "delivered");
  report.Add("requests", static_cast<double>(requests), "");
  report.Add("payload", static_cast<double>(bytes) / 1e9, "GB");
  report.Add("virtual time", virtual_seconds, "s");
  report.Add("hand-overs", static_cast<double>(handed_over), "of hosts");
  report.Add("objects handed over", static_cast<double>(objects), "");
  report.Add("cpu time", took, "s");
  return report;
}

}  // namespace rocegw::sim
