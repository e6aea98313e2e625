// SPDX-License-Identifier: Apache-2.0
#include "gateway/daemon/gateway_facts.h"

#include <algorithm>
#include <iterator>

#include "gateway/port/port_config.h"
#include "gateway/port/port_counters.h"
#include "gateway/port/xdp/xdp_port.h"

namespace rocegw::daemon {
namespace {

uint64_t OverflowsOf(const session::StateSnapshot& snapshot, const std::string& port) {
  const auto* const counter = std::ranges::find_if(port::kPortCounters, [](const auto& info) {
    return std::string(info.name) == "rx_overflow";
  });
  const auto index = static_cast<size_t>(counter - std::begin(port::kPortCounters));
  uint64_t overflows = 0;
  for (const session::PortQueueRow& queue : snapshot.port_queues)
    if (queue.port == port && index < queue.counters.size()) overflows += queue.counters[index];
  return overflows;
}

doctor::PortFacts PortOf(const PortConfig& config, const session::PortRow& row,
                         const session::StateSnapshot& snapshot) {
  doctor::PortFacts port;
  port.name = row.name;
  port.mode = row.mode;
  port.interface = row.interface;
  port.up = row.up;
  if (!row.up) port.note = row.note;
  port.interface_mtu = row.interface_mtu;
  port.path_mtu = row.path_mtu;
  port.addresses_without_gid = row.addresses_without_gid;
  for (const session::QpRow& qp : snapshot.qps) {
    if (qp.path_mtu <= row.path_mtu || std::ranges::find(row.gids, qp.local_gid) == row.gids.end())
      continue;
    ++port.longer_qps;
    port.longest_path_mtu = std::max(port.longest_path_mtu, qp.path_mtu);
  }
  port.receive_buffer = row.receive_buffer_bytes;
  if (config.mode == PortMode::kUdp) port.receive_buffer_asked = config.receive_buffer_bytes;
  port.receive_overflows = OverflowsOf(snapshot, row.name);
  return port;
}

uint64_t SessionsOf(const session::StateSnapshot& snapshot) {
  uint64_t sessions = 0;
  for (const session::PoolRow& pool : snapshot.pools) {
    for (const session::LimitRow& limit : pool.limits) {
      if (limit.limit != "sessions") continue;
      if (limit.peak == tenant::kUnlimited) return tenant::kUnlimited;
      sessions += limit.peak;
    }
  }
  return sessions;
}

// Returns the memory that programs can charge to the daemon's control group.
uint64_t ChargeableOf(const tenant::Amounts& capacity) {
  uint64_t sum = 0;
  for (const auto resource : {tenant::Resource::kSegmentBytes, tenant::Resource::kHeapBytes,
                              tenant::Resource::kRemappedBytes}) {
    if (__builtin_add_overflow(sum, capacity[resource], &sum)) return UINT64_MAX;
  }
  return sum;
}

}  // namespace

doctor::GatewayFacts FactsOf(const Config& config, const service::GatewayIdentity& identity,
                             const session::StateSnapshot& snapshot) {
  doctor::GatewayFacts facts;
  facts.gateway = "gateways/" + identity.name;
  facts.version = identity.version;
  for (const session::WorkerRow& row : snapshot.workers) facts.workers.push_back(row.silent);
  facts.sessions = SessionsOf(snapshot);
  facts.chargeable_memory = ChargeableOf(snapshot.capacity);
  facts.remap_allowed = config.default_pool.remap_allowed;
  for (const session::PoolRow& pool : snapshot.pools) {
    facts.pools.push_back(pool.name);
    if (pool.trusted) facts.trusted_pools.push_back(pool.name);
  }
  facts.runtime_dir = config.runtime_dir;
  facts.sockets = {{config.attach_socket.path, config.attach_socket.mode, true},
                   {config.grpc_socket.path, config.grpc_socket.mode, false}};
  uint64_t dpdk_memory = 0;  // ports and the copy engine share it
  const auto expect_dpdk = [&] {
    facts.huge_pages = config.dpdk.huge_pages;
    dpdk_memory = uint64_t{config.dpdk.memory_mb} << 20;
  };
  if (config.copy_engine.mode != CopyEngineMode::kOff) {
    expect_dpdk();
    facts.copy_engine = true;
    for (const session::WorkerRow& row : snapshot.workers)
      facts.engine_minimums.push_back(row.engine_minimum);
  }
  for (const session::PortRow& row : snapshot.ports) {
    const auto known = std::ranges::find(config.ports, row.name, &PortConfig::name);
    if (known == config.ports.end()) continue;
    facts.ports.push_back(PortOf(*known, row, snapshot));
    if (known->mode == PortMode::kUdp) {
      facts.send_buffer = port::UdpPortConfig().socket_send_buffer;
    } else if (known->mode == PortMode::kAfXdp) {
      facts.locked_memory +=
          port::XdpPortGroup::LockedMemory({}, snapshot.workers.size(), row.interface_mtu);
    } else {
      expect_dpdk();
    }
    if (!datapath::HasNoNetdev(known->mode)) facts.wants_udp_port = true;
  }
  facts.locked_memory += dpdk_memory;
  facts.library_minor = ROCEGW_ABI_MINOR;
  for (const session::SessionRow& session : snapshot.sessions)
    facts.libraries.push_back({session.pid, session.comm, session.library_minor});
  return facts;
}

}  // namespace rocegw::daemon
