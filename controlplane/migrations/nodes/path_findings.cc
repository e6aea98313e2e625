// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migrations/nodes/path_findings.h"

#include <utility>

#include "gateway/base/foreign_text.h"

namespace rocegw::migrations {
namespace {

using migration::Finding;

// Share of lost datagrams, one in so many, from which on a migration does not start.
constexpr uint64_t kTooManyLost = 100;
constexpr uint64_t kSecond = 1'000'000'000;
constexpr uint64_t kClockWarns = kSecond;
constexpr uint64_t kClockBlocks = 60 * kSecond;
// RDMA that is slower than TCP by this factor is told of.
constexpr uint64_t kMuchSlower = 2;
constexpr size_t kLongestProblem = 160;

std::string Of(uint32_t part, uint32_t whole) {
  return std::to_string(part) + " of " + std::to_string(whole);
}

class PathReport {
 public:
  PathReport(std::string path, const types::v1::PlainPath& plain)
      : path_(std::move(path)), plain_(plain) {}

  void AddLoss() {
    if (plain_.sent() == 0) return;
    const uint32_t lost = plain_.sent() - plain_.received();
    if (plain_.received() == 0) {
      return Add(Finding::Class::kWarns,
                 "no datagram arrived on a UDP port beside 4791: loss, order, DSCP and ECN are not "
                 "measured",
                 "let UDP through between the hosts for the time of the preflight");
    }
    if (lost == 0) return;
    const bool blocks = lost * kTooManyLost >= plain_.sent();
    Add(blocks ? Finding::Class::kBlocks : Finding::Class::kWarns,
        Of(lost, plain_.sent()) + " datagrams are lost",
        "look at the error counters of the links and switches between the hosts");
  }
  void AddOrder() {
    if (plain_.reordered() == 0) return;
    Add(Finding::Class::kWarns,
        Of(plain_.reordered(), plain_.received()) + " datagrams arrive after a later one",
        "let switches and bonds keep the packets of a flow on one link");
  }
  void AddMarks() {
    if (plain_.dscp_kept() < plain_.received()) {
      Add(Finding::Class::kWarns,
          "the DSCP is changed on the way: kept for " + Of(plain_.dscp_kept(), plain_.received()),
          "trust the DSCP at each switch port and virtual switch; else RoCE is best effort");
    }
    const uint32_t capable = plain_.ecn_kept() + plain_.ecn_marked();
    if (capable < plain_.received()) {
      Add(Finding::Class::kWarns,
          "the ECN mark is removed on the way: kept for " + Of(capable, plain_.received()),
          "let switches and tunnels keep ECN; else congestion is noticed by loss and delay only");
    }
    if (plain_.ecn_marked() != 0) {
      Add(Finding::Class::kWarns,
          Of(plain_.ecn_marked(), plain_.received()) + " datagrams met congestion",
          "begin at a quieter time, or give RoCE a queue of its own");
    }
  }
  void AddClocks() {
    const int64_t ahead = plain_.clock_ahead_ns();
    // Without a sign: the opposite of the least number overflows.
    const uint64_t apart = ahead < 0 ? 0 - static_cast<uint64_t>(ahead) : ahead;
    if (apart < kClockWarns) return;
    Add(apart >= kClockBlocks ? Finding::Class::kBlocks : Finding::Class::kWarns,
        "the clocks differ by " + std::to_string(apart / kSecond) + " s",
        "synchronise the clocks of the hosts (chrony, systemd-timesyncd)");
  }
  void AddTcp(const NodeAnswer& answer) {
    const uint64_t tcp_ns = plain_.tcp_round_trip_median_ns();
    if (tcp_ns != 0 && answer.median_ns > kMuchSlower * tcp_ns) {
      Add(Finding::Class::kWarns,
          "round trips take " + std::to_string(answer.median_ns / 1000) + " us, over TCP " +
              std::to_string(tcp_ns / 1000) + " us",
          "give the gateway's workers CPUs of their own, or expect this");
    }
    const uint64_t tcp_rate = plain_.tcp_bytes_per_second();
    if (answer.bytes_per_second != 0 && tcp_rate > kMuchSlower * answer.bytes_per_second) {
      Add(Finding::Class::kWarns,
          "bulk passes with " + std::to_string(answer.bytes_per_second / 1'000'000) +
              " MB/s, over TCP with " + std::to_string(tcp_rate / 1'000'000) + " MB/s",
          "give the gateway more workers, or expect this");
    }
  }
  void AddUnmeasured() {
    if (plain_.problem().empty() && plain_.sent() != 0 && plain_.has_clock_ahead_ns()) return;
    const std::string why = plain_.problem().empty()
                                ? "the probes say nothing of datagrams or clocks"
                                : ForeignText(plain_.problem().substr(0, kLongestProblem));
    Add(Finding::Class::kWarns, "not all of the network beside RDMA is measured: " + why,
        "let TCP and UDP through between the hosts for the time of the preflight");
  }
  std::vector<Finding> Take() { return std::move(findings_); }

 private:
  void Add(Finding::Class kind, std::string text, const char* remedy) {
    findings_.push_back({kind, path_, std::move(text), remedy});
  }

  const std::string path_;
  const types::v1::PlainPath& plain_;
  std::vector<Finding> findings_;
};

}  // namespace

std::vector<Finding> PathFindings(const std::string& path, const NodeAnswer& answer) {
  if (!answer.plain.has_value()) {
    return {{Finding::Class::kWarns, path,
             "the network beside RDMA is not measured: loss, order, DSCP, ECN and clocks are not "
             "known",
             "upgrade rocegw-agent on both hosts, then: rocegwctl migrate preflight"}};
  }
  PathReport report(path, *answer.plain);
  report.AddLoss();
  report.AddOrder();
  report.AddMarks();
  report.AddClocks();
  report.AddTcp(answer);
  report.AddUnmeasured();
  return report.Take();
}

}  // namespace rocegw::migrations
