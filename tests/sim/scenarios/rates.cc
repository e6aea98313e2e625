// SPDX-License-Identifier: Apache-2.0
// Scenarios with long flows: pair, loss-sweep, fairness, join, mixed-rnic.
#include <cmath>
#include <cstdio>
#include <cstdlib>

#include "tests/sim/scenarios/bench.h"

namespace rocegw::sim {
namespace {

Duration Ms(const Settings& settings, const char* name) {
  return Nanoseconds(static_cast<int64_t>(settings.Number(name) * 1e6));
}

SiteKind KindOf(const std::string& text) {
  if (text == "gateway") return SiteKind::kGateway;
  if (text == "rnic") return SiteKind::kRnic;
  std::fprintf(stderr, "'%s' is neither gateway nor rnic\n", text.c_str());
  std::exit(2);
}

std::string Number(const char* format, double value) {
  char text[64];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

// Runs one flow on one cable with that loss.
Report OnePair(uint64_t seed, const Settings& settings, SiteKind from, SiteKind to, double lose) {
  Report report;
  Bench bench(seed, settings);
  Site& a = bench.AddSite(from);
  Site& b = bench.AddSite(to);
  const Wiring wiring = WirePair(bench.network(), a.endpoint(), b.endpoint(), bench.edge());
  Link& link = *wiring.up[0];
  link.faults().Set({.lose = lose});
  bench.AddFlow(a, b).Start();
  bench.Run(Ms(settings, "warmup_ms"), link);
  bench.BeginMeasuring(link);
  bench.Run(Ms(settings, "ms"), link);
  bench.Measure(link, report);
  bench.Plot(report);
  return report;
}

}  // namespace

Report RunPair(uint64_t seed, const Settings& settings) {
  return OnePair(seed, settings, KindOf(settings.Text("from")), KindOf(settings.Text("to")),
                 settings.Number("lose"));
}

Report RunLossSweep(uint64_t seed, const Settings& settings) {
  Report report;
  const auto goodput = [&](double lose, Report& one) {
    one = OnePair(seed, settings, SiteKind::kGateway, SiteKind::kGateway, lose);
    return one.Value("goodput");
  };
  Report calm;
  const double whole = goodput(0, calm);
  // Packets that a loss makes useless: those that leave in the round trip until the sender learns
  // of it (propagation plus the NIC's queue), at most the window.
  const double mtu = verbs::MtuBytes(static_cast<uint8_t>(settings.Count("mtu_code")));
  const double packets_per_us = settings.Number("gbps") * 1000 / 8 / (mtu + 82);
  const double rtt_us = 2 * settings.Number("delay_us") +
                        static_cast<double>(settings.Count("nic_packets")) / packets_per_us;
  const double window =
      std::min(rtt_us * packets_per_us, settings.Number("window_kb") * 1024 / mtu);
  report.Add("lossless goodput", whole, "Gbit/s");
  report.Add("round trip", rtt_us, "us, with a full NIC queue");
  report.Add("window W", window, "packets in a round trip");
  report.table.push_back({"loss", "goodput", "of lossless", "go-back-n bound", "of the bound",
                          "lost", "sent again", "again/lost", "timeouts"});
  Series line{"goodput", "of lossless", {}, {}},
      bound_line{"(1-p)/(1-p+pW)", "of lossless", {}, {}};
  const std::string losses = settings.Text("losses");
  for (const char* at = losses.c_str(); *at != '\0';) {
    char* end = nullptr;
    const double p = std::strtod(at, &end);
    if (end == at) break;
    at = *end == ',' ? end + 1 : end;
    Report one;
    const double share = goodput(p, one) / whole;
    const double bound = (1 - p) / (1 - p + p * window);
    const double lost = one.Value("lost");
    report.table.push_back({Number("%g", p), Number("%.2f", share * whole), Number("%.4f", share),
                            Number("%.4f", bound), Number("%.3f", share / bound),
                            Number("%.0f", lost), Number("%.0f", one.Value("sent again")),
                            Number("%.2f", one.Value("sent again") / std::max(lost, 1.0)),
                            Number("%.0f", one.Value("timeouts"))});
    report.Add("bound share at " + Number("%g", p), share / bound, "");
    report.Add("lossless share at " + Number("%g", p), share, "");
    // The x axis of this plot is percent.
    line.at.push_back(p * 100);
    line.values.push_back(share);
    bound_line.at.push_back(p * 100);
    bound_line.values.push_back(bound);
    if (!one.failure.empty()) report.failure = one.failure;
  }
  report.series = {line, bound_line};
  return report;
}

namespace {

struct TcpRow {
  double loss, mbps, lost, again;
};

// Reads the output of tests/bench/tcp_loss.py.
std::vector<TcpRow> ReadTcp(const std::string& path, std::string& failure) {
  std::vector<TcpRow> rows;
  if (path.empty()) return rows;
  std::FILE* file = std::fopen(path.c_str(), "r");
  if (file == nullptr) {
    failure = "cannot read " + path;
    return rows;
  }
  char line[512];
  while (std::fgets(line, sizeof line, file) != nullptr) {
    TcpRow row{};
    double least = 0, most = 0;
    if (std::sscanf(line, "%lf,%lf,%lf,%lf,%lf,%lf", &row.loss, &row.mbps, &least, &most, &row.lost,
                    &row.again) == 6) {
      rows.push_back(row);
    }
  }
  std::fclose(file);
  return rows;
}

std::vector<double> ListOf(const std::string& text) {
  std::vector<double> values;
  for (const char* at = text.c_str(); *at != '\0';) {
    char* end = nullptr;
    const double value = std::strtod(at, &end);
    if (end == at) break;
    values.push_back(value);
    at = *end == ',' ? end + 1 : end;
  }
  return values;
}

}  // namespace

Report RunLoss(uint64_t seed, const Settings& settings) {
  Report report;
  report.x = "loss, %";
  const std::vector<TcpRow> tcp = ReadTcp(settings.Text("tcp"), report.failure);
  report.table.push_back(
      {"loss", "1-p", "channel", "again/lost", "go-back-n", "again/lost", "tcp", "again/lost"});
  const char* const kGoodput = "goodput, of lossless";
  const char* const kAgain = "sent again, of lost";
  Series rates[3] = {{"channels", kGoodput, {}, {}},
                     {"Go-Back-N", kGoodput, {}, {}},
                     {"kernel TCP, measured", kGoodput, {}, {}}};
  Series agains[3] = {{"channels", kAgain, {}, {}},
                      {"Go-Back-N", kAgain, {}, {}},
                      {"kernel TCP, measured", kAgain, {}, {}}};
  double whole[2] = {};
  const auto note = [&](size_t which, double p, double share, double again) {
    rates[which].at.push_back(p * 100);
    rates[which].values.push_back(share);
    if (p == 0) return;
    agains[which].at.push_back(p * 100);
    agains[which].values.push_back(again);
  };
  // The first run of each is the baseline of the others.
  std::vector<double> losses = ListOf(settings.Text("losses"));
  losses.insert(losses.begin(), 0);
  for (size_t i = 0; i < losses.size(); ++i) {
    const double p = losses[i];
    std::vector<std::string> row = {Number("%g", p), Number("%.4f", 1 - p)};
    for (size_t which = 0; which < 2; ++which) {
      Settings own = settings;
      own.Set("channels", which == 0 ? "1" : "0");
      const Report one = OnePair(seed, own, SiteKind::kGateway, SiteKind::kGateway, p);
      if (!one.failure.empty()) report.failure = one.failure;
      const double goodput = one.Value("goodput");
      if (i == 0) {
        whole[which] = goodput;
        report.Add(which == 0 ? "lossless channel" : "lossless go-back-n", goodput, "Gbit/s");
        continue;
      }
      const double share = goodput / whole[which];
      const double again = one.Value("sent again") / std::max(one.Value("lost"), 1.0);
      row.push_back(Number("%.4f", share));
      row.push_back(p == 0 ? "" : Number("%.3f", again));
      note(which, p, share, again);
      const char* const name = which == 0 ? "channel" : "go-back-n";
      report.Add(name + Number(" at %g", p), share, "of lossless");
      if (p != 0) report.Add(name + Number(" again/lost at %g", p), again, "packets");
    }
    if (i == 0) continue;
    for (const TcpRow& measured : tcp) {
      if (measured.loss != p || tcp.front().loss != 0) continue;
      const double share = measured.mbps / tcp.front().mbps;
      const double again = measured.again / std::max(measured.lost, 1.0);
      row.push_back(Number("%.4f", share));
      row.push_back(p == 0 ? "" : Number("%.3f", again));
      note(2, p, share, again);
    }
    report.table.push_back(row);
  }
  for (size_t which = 0; which < (tcp.empty() ? 2 : 3); ++which)
    report.series.push_back(rates[which]);
  for (size_t which = 0; which < (tcp.empty() ? 2 : 3); ++which)
    report.series.push_back(agains[which]);
  return report;
}

Report RunFairness(uint64_t seed, const Settings& settings) {
  Report report;
  Bench bench(seed, settings);
  const uint64_t flows = settings.Count("flows");
  const bool pairs = settings.Text("topology") == "pairs";
  if (!pairs && settings.Text("topology") != "star") {
    report.failure = "topology is star or pairs";
    return report;
  }
  // Receivers first.
  const uint64_t sinks = pairs ? flows : 1;
  for (uint64_t i = 0; i < sinks + flows; ++i) bench.AddSite(SiteKind::kGateway);
  const auto ends = bench.endpoints();
  const Wiring wiring = pairs
                            ? WireDumbbell(bench.network(), ends, sinks, bench.edge(), bench.edge())
                            : WireStar(bench.network(), ends, bench.edge());
  Link& link = pairs ? *wiring.trunk[1] : *wiring.down[0];
  Random random(seed);
  for (uint64_t i = 0; i < flows; ++i) {
    bench.AddFlow(bench.site(sinks + i), bench.site(pairs ? i : 0)).Start();
    // Flows must not start in the same nanosecond.
    bench.network().RunFor(Nanoseconds(static_cast<int64_t>(random.Below(20'000))));
  }
  bench.Run(Ms(settings, "warmup_ms"), link);
  bench.BeginMeasuring(link);
  bench.Run(Ms(settings, "ms"), link);
  bench.Measure(link, report);
  bench.Plot(report);
  return report;
}

Report RunJoin(uint64_t seed, const Settings& settings) {
  Report report;
  Bench bench(seed, settings);
  Site& sink = bench.AddSite(SiteKind::kGateway);
  const uint64_t before = settings.Count("flows");
  for (uint64_t i = 0; i <= before; ++i) bench.AddSite(SiteKind::kGateway);
  const auto ends = bench.endpoints();
  const Wiring wiring = WireStar(bench.network(), ends, bench.edge());
  Link& link = *wiring.down[0];
  for (uint64_t i = 1; i <= before; ++i) bench.AddFlow(bench.site(i), sink).Start();
  BulkFlow& joins = bench.AddFlow(bench.site(before + 1), sink);
  bench.Run(Ms(settings, "warmup_ms"), link);
  const size_t from = bench.sampled_at().size();
  const double joined_at = bench.sampled_at().back();
  joins.Start();
  bench.BeginMeasuring(link);
  constexpr size_t kSamples = 2000;
  bench.Run(Ms(settings, "ms"), link, kSamples);
  bench.Measure(link, report);
  bench.Plot(report);
  // The first time at which the mean rate over the last 25 round trips is near the fair share and
  // stays there for fifty.
  const double rtt_us = bench.IdleRoundTrip() +
                        report.Value("queue mean") * 1024 * 8 / (settings.Number("gbps") * 1000);
  const std::vector<double>& rate = bench.rates(before);
  const double fair = report.Value("goodput") / static_cast<double>(before + 1);
  const double sample_us = settings.Number("ms") * 1000 / kSamples;
  const auto mean_of = static_cast<size_t>(std::max(1.0, std::round(25 * rtt_us / sample_us)));
  const auto stays = static_cast<size_t>(std::max(1.0, 50 * rtt_us / sample_us));
  double converged = -1;
  size_t near = 0;
  for (size_t i = from + mean_of; i <= rate.size(); ++i) {
    double mean = 0;
    for (size_t k = i - mean_of; k < i; ++k) mean += rate[k] / static_cast<double>(mean_of);
    near = std::abs(mean - fair) <= settings.Number("within") * fair ? near + 1 : 0;
    if (near == stays) {
      converged = bench.sampled_at()[i - stays] - joined_at;
      break;
    }
  }
  report.Add("round trip", rtt_us, "us, with the mean queue");
  report.Add("converged after", converged, "ms; -1: not at all");
  report.Add("converged after round trips", converged < 0 ? -1 : converged * 1000 / rtt_us, "");
  return report;
}

Report RunMixed(uint64_t seed, const Settings& settings) {
  Report report;
  Bench bench(seed, settings);
  const uint64_t gateways = settings.Count("gateways");
  const uint64_t rnics = settings.Count("rnics");
  Site& sink = bench.AddSite(KindOf(settings.Text("receiver")));
  for (uint64_t i = 0; i < gateways; ++i) bench.AddSite(SiteKind::kGateway);
  for (uint64_t i = 0; i < rnics; ++i) bench.AddSite(SiteKind::kRnic);
  const auto ends = bench.endpoints();
  const Wiring wiring = WireStar(bench.network(), ends, bench.edge());
  Link& link = *wiring.down[0];
  for (uint64_t i = 1; i <= gateways + rnics; ++i) bench.AddFlow(bench.site(i), sink).Start();
  bench.Run(Ms(settings, "warmup_ms"), link);
  bench.BeginMeasuring(link);
  std::vector<uint64_t> from;
  for (const auto& flow : bench.flows()) from.push_back(flow->bytes());
  bench.Run(Ms(settings, "ms"), link);
  bench.Measure(link, report);
  bench.Plot(report);
  double kinds[2] = {0, 0};
  for (size_t i = 0; i < bench.flows().size(); ++i) {
    kinds[i < gateways ? 0 : 1] += static_cast<double>(bench.flows()[i]->bytes() - from[i]) * 8 /
                                   (settings.Number("ms") * 1e6);
  }
  const double gateway = kinds[0] / static_cast<double>(std::max<uint64_t>(gateways, 1));
  const double rnic = kinds[1] / static_cast<double>(std::max<uint64_t>(rnics, 1));
  report.Add("gateway flow", gateway, "Gbit/s, mean");
  report.Add("rnic flow", rnic, "Gbit/s, mean");
  report.Add("larger to smaller", std::max(gateway, rnic) / std::max(std::min(gateway, rnic), 1e-9),
             "");
  return report;
}

}  // namespace rocegw::sim
