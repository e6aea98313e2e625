// SPDX-License-Identifier: Apache-2.0
// Bulk flows for rate scenarios: WRITEs of one size, a given number at a time, from a virtual host
// or an RNIC model to either. The sender knows when each was acknowledged. Contents are not checked
// (the oracle does that), so all hosts share one memory.
//
// A Site is one endpoint of either kind. Owned by a scenario; one thread.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "tests/sim/host/host.h"
#include "tests/sim/rnic/rnic.h"

namespace rocegw::sim {

enum class SiteKind : uint8_t { kGateway, kRnic };

class Site {
 public:
  // `host.shared_memory` is source and target of every WRITE.
  Site(Network& network, uint32_t number, SiteKind kind, const HostConfig& host,
       const RnicConfig& rnic);

  SiteKind kind() const { return host_ ? SiteKind::kGateway : SiteKind::kRnic; }
  Endpoint& endpoint();
  Host* host() { return host_.get(); }
  Rnic* rnic() { return rnic_.get(); }
  uint64_t base() const { return host_ ? Host::kBase : Rnic::kBase; }
  uint32_t key() const { return host_ ? host_->key() : rnic_->key(); }
  wire::Gid gid() const { return host_ ? host_->gid() : rnic_->gid(); }
  uint32_t TakeQpn() { return next_qpn_++; }
  // Counts of the whole site: packets sent again, timeouts, and CNPs received.
  uint64_t retransmitted() const;
  uint64_t timeouts() const;
  uint64_t probes() const;  // probes that channels sent because nothing came back
  uint64_t cnps() const;

 private:
  friend class BulkFlow;
  std::unique_ptr<Host> host_;
  std::unique_ptr<Rnic> rnic_;
  uint32_t next_qpn_ = 100;
  std::vector<std::function<void(const RnicCompletion&)>> rnic_flows_;  // by queue pair
};

struct BulkConfig {
  uint32_t message_bytes = 32 * 1024;
  uint32_t depth = 16;        // messages posted at once
  uint64_t total_bytes = 0;   // 0: unlimited
  uint8_t path_mtu = 3;       // enum ibv_mtu
  uint32_t window_bytes = 0;  // window of a gateway's flow; 0: the host's default
  bool channel = false;       // between gateways that have channels
};

class BulkFlow final : private Program {
 public:
  BulkFlow(Network& network, Site& from, Site& to, const BulkConfig& config);

  void Start();
  // Stops posting.
  void Stop() { stopped_ = true; }
  // Returns the bytes of completed requests.
  uint64_t bytes() const { return bytes_; }
  bool done() const { return config_.total_bytes != 0 && bytes_ >= config_.total_bytes; }
  bool failed() const { return failed_; }
  TimePoint started() const { return started_; }
  TimePoint finished() const { return finished_; }
  Site& from() { return from_; }

 private:
  void Look(TimePoint now) override;
  void Post();
  void OnDone(bool ok);

  Network& network_;
  Site& from_;
  Site& to_;
  const BulkConfig config_;
  RingEnd* end_ = nullptr;
  size_t rnic_qp_ = 0;
  uint64_t posted_ = 0;  // bytes
  uint64_t bytes_ = 0;
  bool begun_ = false;
  bool stopped_ = false;
  bool failed_ = false;
  TimePoint started_;
  TimePoint finished_ = kNever;
};

}  // namespace rocegw::sim
