// SPDX-License-Identifier: Apache-2.0
#include "tests/sim/scenarios/bench.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>

namespace rocegw::sim {
namespace {

double Milli(Duration d) { return static_cast<double>(d.ns) / 1e6; }

EcnRule EcnOf(const Settings& settings) {
  const std::string kind = settings.Text("ecn");
  EcnRule rule;
  rule.kind = kind == "red"    ? EcnRule::Kind::kRed
              : kind == "step" ? EcnRule::Kind::kStep
                               : EcnRule::Kind::kNone;
  rule.k_min = settings.Count("kmin_kb") * 1024;
  rule.k_max = settings.Count("kmax_kb") * 1024;
  rule.p_max = settings.Number("pmax");
  return rule;
}

LinkConfig EdgeOf(const Settings& settings) {
  LinkConfig edge;
  edge.bits_per_second = static_cast<int64_t>(settings.Number("gbps") * 1e9);
  edge.delay = Nanoseconds(static_cast<int64_t>(settings.Number("delay_us") * 1000));
  edge.queue_bytes = settings.Count("queue_kb") * 1024;
  edge.ecn = EcnOf(settings);
  edge.hints = {.low = settings.Count("hint_low_kb") * 1024,
                .high = settings.Count("hint_high_kb") * 1024};
  return edge;
}

// Parses "name=value,name=value".
void SetParameters(const std::string& text, flow::CcKind kind, flow::CcProfile& profile) {
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    const std::string one = text.substr(at, end - at);
    const size_t equals = std::min(one.find('='), one.size());
    char* rest = nullptr;
    const std::string value = one.substr(std::min(equals + 1, one.size()));
    const uint64_t number = std::strtoull(value.c_str(), &rest, 10);
    if (value.empty() || *rest != '\0' ||
        !profile.Set(kind, one.substr(0, equals).c_str(), number)) {
      std::fprintf(stderr, "cc_set: '%s' sets no parameter\n", one.c_str());
      std::exit(2);
    }
    at = end + 1;
  }
}

// Returns the MTU of the links, with space for a full packet of the path MTU and any headers.
size_t MtuOf(const Settings& settings) {
  return verbs::MtuBytes(static_cast<uint8_t>(settings.Count("mtu_code"))) + 128;
}

}  // namespace

Bench::Bench(uint64_t seed, const Settings& settings)
    : settings_(settings),
      network_({.seed = seed, .mtu = MtuOf(settings)}),
      edge_(EdgeOf(settings)),
      memory_(settings.Count("message_kb") * 1024) {}

HostConfig Bench::HostOf(const std::string& cc) {
  HostConfig host;
  host.shared_memory = memory_;
  host.channels = settings_.Count("channels") != 0;
  host.nic.transmit_packets = settings_.Count("nic_packets");
  host.congestion.kind = flow::FindCcKind(cc);
  if (host.congestion.kind == flow::CcKind::kCount) {
    std::fprintf(stderr, "there is no congestion control '%s'\n", cc.c_str());
    std::exit(2);
  }
  SetParameters(settings_.Text("cc_set"), host.congestion.kind, host.cc_profile);
  host.congestion.window_bytes = static_cast<uint32_t>(settings_.Count("window_kb") * 1024);
  host.cc_profile.burst = Nanoseconds(static_cast<int64_t>(settings_.Number("burst_us") * 1000));
  return host;
}

Site& Bench::AddSite(SiteKind kind) { return AddSite(kind, settings_.Text("cc")); }

Site& Bench::AddSite(SiteKind kind, const std::string& cc) {
  RnicConfig rnic;
  rnic.memory_bytes = memory_.size();
  return *sites_.emplace_back(std::make_unique<Site>(
      network_, static_cast<uint32_t>(sites_.size() + 1), kind, HostOf(cc), rnic));
}

std::vector<Endpoint*> Bench::endpoints() {
  std::vector<Endpoint*> all;
  for (const auto& site : sites_) all.push_back(&site->endpoint());
  return all;
}

BulkFlow& Bench::AddFlow(Site& from, Site& to, uint64_t total_bytes) {
  BulkConfig config;
  config.message_bytes = static_cast<uint32_t>(settings_.Count("message_kb") * 1024);
  config.depth = static_cast<uint32_t>(settings_.Count("depth"));
  config.path_mtu = static_cast<uint8_t>(settings_.Count("mtu_code"));
  config.total_bytes = total_bytes;
  config.window_bytes = static_cast<uint32_t>(settings_.Count("pool_window_kb") * 1024);
  config.channel = settings_.Count("channels") != 0;
  flows_.push_back(std::make_unique<BulkFlow>(network_, from, to, config));
  rates_.emplace_back(at_.size());
  sampled_bytes_.push_back(0);
  return *flows_.back();
}

void Bench::Run(Duration time, Link& link, size_t samples) {
  const TimePoint from = network_.now();
  for (size_t i = 1; i <= samples; ++i) {
    network_.RunUntil(from +
                      Duration{time.ns * static_cast<int64_t>(i) / static_cast<int64_t>(samples)});
    const TimePoint now = network_.now();
    const auto ns = static_cast<double>((now - std::max(sampled_, EventQueue::kStart)).ns);
    sampled_ = now;
    at_.push_back(Milli(now - EventQueue::kStart));
    queue_.push_back(static_cast<double>(link.queued_bytes(now)) / 1024);
    for (size_t f = 0; f < flows_.size(); ++f) {
      const uint64_t bytes = flows_[f]->bytes();
      rates_[f].push_back(static_cast<double>(bytes - sampled_bytes_[f]) * 8 / ns);
      sampled_bytes_[f] = bytes;
    }
  }
}

void Bench::BeginMeasuring(Link& link) {
  measured_from_ = at_.size();
  begun_ = network_.now();
  begun_bytes_.clear();
  for (const auto& flow : flows_) begun_bytes_.push_back(flow->bytes());
  begun_link_ = link.counters();
  begun_again_ = begun_timeouts_ = begun_probes_ = begun_cnps_ = 0;
  for (const auto& site : sites_) {
    begun_again_ += site->retransmitted();
    begun_timeouts_ += site->timeouts();
    begun_probes_ += site->probes();
    begun_cnps_ += site->cnps();
  }
}

double Bench::CableBytes() const {
  // BTH and ICRC in addition to the cable's overhead.
  return verbs::MtuBytes(static_cast<uint8_t>(settings_.Count("mtu_code"))) + wire::kBthLength +
         wire::kIcrcLength + kEthernetOverhead + 28;
}

double Bench::PayloadRate() const {
  const double mtu = verbs::MtuBytes(static_cast<uint8_t>(settings_.Count("mtu_code")));
  return static_cast<double>(edge_.bits_per_second) * mtu / CableBytes();
}

double Bench::IdleRoundTrip() const {
  const double packet_us = CableBytes() * 8e6 / static_cast<double>(edge_.bits_per_second);
  return 4 * static_cast<double>(edge_.delay.ns) / 1000 + 2 * packet_us;
}

void Bench::Measure(Link& link, Report& report) {
  const auto seconds = static_cast<double>((network_.now() - begun_).ns) / 1e9;
  std::vector<double> shares;
  double sum = 0;
  for (size_t i = 0; i < flows_.size(); ++i) {
    shares.push_back(static_cast<double>(flows_[i]->bytes() - begun_bytes_[i]) * 8 / seconds);
    sum += shares.back();
    if (flows_[i]->failed()) report.failure = "a request failed";
  }
  uint64_t again = 0, timeouts = 0, probes = 0, cnps = 0;
  for (const auto& site : sites_) {
    again += site->retransmitted();
    timeouts += site->timeouts();
    probes += site->probes();
    cnps += site->cnps();
  }
  const LinkCounters& now = link.counters();
  const std::vector<double> queue(queue_.begin() + static_cast<ptrdiff_t>(measured_from_),
                                  queue_.end());
  report.Add("goodput", sum / 1e9, "Gbit/s");
  report.Add("utilisation", sum / PayloadRate(), "of the payload that fits");
  report.Add("jain", JainIndex(shares), "");
  report.Add("slowest flow", *std::min_element(shares.begin(), shares.end()) / 1e9, "Gbit/s");
  report.Add("fastest flow", *std::max_element(shares.begin(), shares.end()) / 1e9, "Gbit/s");
  report.Add("queue mean", Mean(queue), "KiB");
  report.Add("queue p99", Percentile(queue, 0.99), "KiB");
  report.Add("queue most", static_cast<double>(now.queue_most) / 1024, "KiB");
  report.Add("marked", static_cast<double>(now.marked - begun_link_.marked), "packets");
  report.Add(
      "lost",
      static_cast<double>(now.lost + now.tail_drops - begun_link_.lost - begun_link_.tail_drops),
      "packets");
  report.Add("sent again", static_cast<double>(again - begun_again_), "packets");
  report.Add("timeouts", static_cast<double>(timeouts - begun_timeouts_), "");
  report.Add("probes", static_cast<double>(probes - begun_probes_), "of channels");
  report.Add("cnps", static_cast<double>(cnps - begun_cnps_), "");
}

void Bench::Plot(Report& report, size_t flows) const {
  report.series.push_back({"queue", "queue, KiB", at_, queue_});
  for (size_t i = 0; i < std::min(flows, flows_.size()); ++i) {
    // Samples are finer than the interval of acknowledgements, so a few are averaged.
    constexpr size_t kOver = 5;
    Series line{"flow " + std::to_string(i + 1), "rate, Gbit/s", {}, {}};
    for (size_t k = 0; k + kOver <= at_.size(); k += kOver) {
      const std::vector<double> part(rates_[i].begin() + static_cast<ptrdiff_t>(k),
                                     rates_[i].begin() + static_cast<ptrdiff_t>(k + kOver));
      line.at.push_back(at_[k + kOver - 1]);
      line.values.push_back(Mean(part));
    }
    report.series.push_back(std::move(line));
  }
}

}  // namespace rocegw::sim
