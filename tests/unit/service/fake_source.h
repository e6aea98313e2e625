// SPDX-License-Identifier: Apache-2.0
// State source with simulated rows, and a directory for sockets, for tests of service and
// rocegwctl.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "gateway/metrics/drop_reason.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/port/port_counters.h"
#include "gateway/service/identity.h"
#include "gateway/service/sources/state_source.h"

namespace rocegw::service {

inline constexpr int64_t kTestStart = 1790000000ll * 1000000000;

inline GatewayIdentity TestIdentity() {
  // Two hours, three minutes and four seconds after the start.
  return {"host-a", "0.1.0",    "abc123",
          "gcc 12", kTestStart, [] { return kTestStart + 7384ll * 1000000000; }};
}

class FakeSource : public StateSource {
 public:
  session::StateSnapshot state;
  bool answers = true;
  bool answers_about_peers = true;  // workers know those

  void Snapshot(const session::StateQuery& query,
                std::function<void(session::StateSnapshot)> done) override {
    if (!answers || (query.peers && !answers_about_peers)) {
      unanswered_.push_back(std::move(done));
      return;
    }
    session::StateSnapshot copy = state;
    if (!query.sessions) copy.sessions.clear();
    if (!query.qps) copy.qps.clear();
    if (!query.mrs) copy.mrs.clear();
    if (!query.connections) copy.connections.clear();
    if (!query.channels) copy.channels.clear();
    if (!query.peers) copy.peers.clear();
    if (!query.pools) copy.pools.clear();
    if (!query.events) copy.events.clear();
    if (!query.srqs) copy.srqs.clear();
    if (!query.OfWorkers()) copy.unanswered.clear();
    if (query.qpn != 0)
      std::erase_if(copy.qps, [&](const session::QpRow& row) { return row.qpn != query.qpn; });
    done(std::move(copy));
  }
  void AnswerAll() {
    for (auto& done : std::exchange(unanswered_, {})) done(state);
  }

 private:
  std::vector<std::function<void(session::StateSnapshot)>> unanswered_;
};

// Two workers, one session with an RC and a UD QP, two MRs, two windows, an SRQ. Counter i of
// worker w is 100 * w + i, for the first four.
inline session::StateSnapshot TestState() {
  session::StateSnapshot state;
  for (uint64_t id = 1; id <= 2; ++id) {
    session::PoolRow pool;
    pool.id = id;
    pool.name = "tenants/red/pools/p" + std::to_string(id);
    pool.uid = "uid-" + std::to_string(id);
    pool.limits = {{"qps", 10 + id, 5, 20, 3},
                   {"connects_per_second", 0, 0, tenant::kUnlimited, 4}};
    pool.sockets = {"/run/rocegw/a/uid/0/attach.sock"};
    if (id == 1) {
      pool.ready = {16, 15, 4194304, 30, 2};
      pool.set_up.Add(Microseconds(7));
      pool.set_up.Add(Microseconds(8));
      pool.set_up.Add(Seconds(2));
      pool.operations.Add(Microseconds(15));
    }
    state.pools.push_back(pool);
  }
  state.events.push_back({7, kTestStart, kTestStart + 1000000000, 5, "QUOTA_EXCEEDED",
                          "tenants/red/pools/p1", "limit of qps reached"});
  state.totals = {1, 2, 3, 2, 1, 4, 12ull << 20, 2ull << 20};
  session::PortRow port;
  port.device = "rocegw0";
  port.name = "port0";
  port.mode = "udp";
  port.interface = "eth0";
  port.up = true;
  port.interface_mtu = 1500;
  port.path_mtu = 1024;
  port.receive_buffer_bytes = 212992;
  port.segmentation = "on";
  port.gids = {wire::Gid::FromV4(0xC0000201), wire::Gid{}};
  port.note = "receive buffer is 208KiB instead of 16MiB; raise net.core.rmem_max";
  state.ports.push_back(port);
  for (uint16_t w = 0; w < 2; ++w) {
    session::WorkerRow worker;
    worker.index = w;
    worker.qps = 1;
    worker.counters.resize(metrics::AllCounters().size());
    for (size_t i = 0; i < 4; ++i) worker.counters[i] = 100u * w + i;
    worker.drops.resize(metrics::kDropReasonCount);
    worker.drops[static_cast<size_t>(metrics::DropReason::k_bad_icrc)] = 7u + w;
    worker.channels = 3 + worker.index;
    state.workers.push_back(worker);
    session::PortQueueRow queue;
    queue.port = "port0";
    queue.worker = w;
    queue.counters.resize(std::size(port::kPortCounters));
    queue.counters[0] = 10u + w;
    state.port_queues.push_back(queue);
  }
  state.discovery = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  state.control_drops.resize(metrics::kDropReasonCount);
  state.control_drops[static_cast<size_t>(metrics::DropReason::k_cm_unmatched)] = 2;
  session::SessionRow session;
  session.id = 3;
  session.pid = 4242;
  session.uid = 1000;
  session.comm = "ib_write_bw";
  session.pool = "tenants/default/pools/default";
  session.attached_ns = kTestStart + 7200ll * 1000000000;
  session.contexts = 1;
  session.pds = 1;
  session.cqs = 3;
  session.qps = 2;
  session.mrs = 2;
  session.cm_ids = 4;
  session.registered_bytes = 12ull << 20;
  session.segment_bytes = 2ull << 20;
  session.trusted = true;
  state.sessions.push_back(session);
  session::QpRow rc;
  rc.session = 3;
  rc.qpn = 0x0412AB;
  rc.type = ROCEGW_QPT_RC;
  rc.state = 3;
  rc.remote_qpn = 0x11;
  rc.local_gid = wire::Gid::FromV4(0xC0000201);
  rc.remote_gid = wire::Gid::FromV4(0xC0000202);
  rc.path_mtu = 1024;
  rc.send_psn = 0x100;
  rc.unacked_psn = 0xF0;
  rc.expected_psn = 0x77;
  rc.worker = 1;
  rc.sends_posted = 5000;
  rc.sends_completed = 4990;
  rc.outstanding = 10;
  rc.transport = "channel";
  rc.transport_reason = "a channel was agreed on by the CM";
  rc.channel = 0x40012;
  rc.beside = {0x40013, 0x11};
  session::QpRow ud;
  ud.session = 3;
  ud.qpn = 0x000012;
  ud.type = ROCEGW_QPT_UD;
  ud.state = 6;
  ud.error = "completion queue overrun";
  state.qps = {rc, ud};  // not in key order
  session::MrRow remapped;
  remapped.session = 3;
  remapped.handle = 1;
  remapped.rkey = 0x12345678;
  remapped.address = 0x7F0000000000;
  remapped.length = 8ull << 20;
  remapped.access = 0xF;
  remapped.way = ROCEGW_MEMORY_REMAPPED;
  session::MrRow cross = remapped;
  cross.handle = 2;
  cross.rkey = 0xCAFE0001;
  cross.address = 0x5500AA001000;
  cross.length = 100;
  cross.access = 0;
  cross.way = ROCEGW_MEMORY_CROSS;
  cross.reason = "smaller than the least length that is worth moving";
  session::MrRow bound;
  bound.session = 3;
  bound.handle = 1;
  bound.rkey = 0xBEEF0042;
  bound.address = 0x7F0000001000;
  bound.length = 4096;
  bound.access = 6;
  bound.window = 2;
  bound.bound_to = 1;
  bound.window_qpn = rc.qpn;
  session::MrRow unbound;
  unbound.session = 3;
  unbound.handle = 2;
  unbound.rkey = 0xBEEF0107;
  unbound.window = 1;
  remapped.windows = 1;
  state.mrs = {remapped, bound, cross, unbound};  // not in key order
  session::SrqRow srq;
  srq.session = 3;
  srq.handle = 1;
  srq.worker = 1;
  srq.size = 1024;
  srq.max_sge = 2;
  srq.limit = 16;
  srq.held = 900;
  srq.qps = 5;
  srq.taken = 123456;
  srq.limit_events = 3;
  state.srqs = {srq};
  session::ConnectionRow connection;
  connection.session = 3;
  connection.active = true;
  connection.state = "established";
  connection.local_comm_id = 0xA1B2C3D4;
  connection.remote_comm_id = 0x11;
  connection.local_qpn = rc.qpn;
  connection.remote_qpn = rc.remote_qpn;
  connection.local_gid = rc.local_gid;
  connection.remote_gid = rc.remote_gid;
  connection.path_mtu = 1024;
  connection.sent_vendor = connection.received_vendor = 0x02BADD;
  connection.sent_options = 0x307;
  connection.received_options = 0x207;
  connection.agreed = {"channel", "selective acknowledgement", "DCQCN"};
  connection.reason = "agreed between gateways";
  session::ConnectionRow refused;
  refused.state = "timewait";
  refused.local_comm_id = 0x12;
  refused.reason = "standard RoCEv2: request names no vendor";
  refused.rejected = "nobody listens on the service";
  state.connections = {connection, refused};  // not in key order
  session::ChannelRow channel;
  channel.number = 0x40012;
  channel.peer_number = 0x80034;
  channel.worker = 1;
  channel.peer_worker = 2;
  channel.local_gid = rc.local_gid;
  channel.remote_gid = rc.remote_gid;
  channel.traffic_class = 8;
  channel.path = 3;
  channel.state = "open";
  channel.agreed = {"channel", "proportional hints"};
  channel.congestion = "caqm";
  channel.window_bytes = 65536;
  channel.in_flight_bytes = 4096;
  channel.rtt_ns = 51000;
  channel.min_rtt_ns = 49000;
  channel.users = 5;
  channel.waiting = 6;
  channel.lost = 7;
  channel.resent = 8;
  channel.spurious = 9;
  channel.path_changes = 10;
  session::ChannelRow opening;
  opening.number = 0x11;
  opening.state = "opening";
  state.channels = {channel, opening};
  return state;
}

// Directory of the test, removed with its contents.
class TestDirectory {
 public:
  TestDirectory() {
    char pattern[] = "/tmp/rocegw-test-XXXXXX";
    const char* made = mkdtemp(pattern);
    EXPECT_NE(made, nullptr);
    path_ = made == nullptr ? "/nonexistent" : made;
  }
  ~TestDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TestDirectory(const TestDirectory&) = delete;
  TestDirectory& operator=(const TestDirectory&) = delete;
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

}  // namespace rocegw::service
