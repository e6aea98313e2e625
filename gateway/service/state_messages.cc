// SPDX-License-Identifier: Apache-2.0
#include "gateway/service/state_messages.h"

#include <cstdio>

#include "gateway/apply/settings_reader.h"
#include "gateway/base/foreign_text.h"
#include "gateway/metrics/drop_reason.h"
#include "gateway/metrics/worker_counters.h"
#include "gateway/port/port_counters.h"

namespace rocegw::service {
namespace {

types::v1::MemoryWay Way(rocegw_memory_way way) {
  switch (way) {
    case ROCEGW_MEMORY_CROSS:
      return types::v1::CROSS_PROCESS;
    case ROCEGW_MEMORY_DESCRIPTOR:
      return types::v1::DESCRIPTOR;
    case ROCEGW_MEMORY_REMAPPED:
      return types::v1::REMAPPED;
    case ROCEGW_MEMORY_DMA_BUF:
      return types::v1::DMA_BUF;
    case ROCEGW_MEMORY_DEVICE:
      return types::v1::DEVICE;
    case ROCEGW_MEMORY_IN_PROCESS:
      break;  // a gateway inside a program serves no calls
  }
  return types::v1::MEMORY_WAY_UNSPECIFIED;
}

types::v1::QpType Type(uint8_t type) {
  switch (type) {
    case 1:
      return types::v1::GSI;
    case ROCEGW_QPT_RC:
      return types::v1::RC;
    case ROCEGW_QPT_UC:
      return types::v1::UC;
    case ROCEGW_QPT_UD:
      return types::v1::UD;
    case ROCEGW_QPT_XRC_SEND:
      return types::v1::XRC_SEND;
    case ROCEGW_QPT_XRC_RECV:
      return types::v1::XRC_RECV;
    case ROCEGW_QPT_ENDPOINT:
      return types::v1::ENDPOINT;
    default:
      return types::v1::QP_TYPE_UNSPECIFIED;
  }
}

// enum ibv_qp_state starts at RESET = 0.
types::v1::QpState State(uint8_t state) {
  return state <= 6 ? static_cast<types::v1::QpState>(state + 1) : types::v1::QP_STATE_UNSPECIFIED;
}

// Names of the bits of enum ibv_access_flags.
constexpr const char* kAccessNames[] = {"local_write",   "remote_write", "remote_read",
                                        "remote_atomic", "mw_bind",      "zero_based",
                                        "on_demand",     "huge_tlb"};
constexpr uint32_t kAccessRelaxedOrdering = 1u << 20;

// Returns the resource name of a queue pair or channel number.
std::string NumberText(uint32_t number) {
  char text[16];
  std::snprintf(text, sizeof text, "0x%06x", number);
  return text;
}

// Returns the port queue's counters of a worker; empty if it has no queue there.
const std::vector<uint64_t>& PortQueueCounters(const session::StateSnapshot& snapshot,
                                               const std::string& port, uint16_t worker) {
  static const std::vector<uint64_t> kNone;
  for (const session::PortQueueRow& row : snapshot.port_queues) {
    if (row.port == port && row.worker == worker) return row.counters;
  }
  return kNone;
}

}  // namespace

void FillTime(int64_t ns, google::protobuf::Timestamp& out) {
  out.set_seconds(ns / 1000000000);
  out.set_nanos(static_cast<int32_t>(ns % 1000000000));
}

void FillSession(const std::string& parent, const session::SessionRow& row,
                 types::v1::Session& out) {
  out.set_name(parent + "/sessions/" + std::to_string(row.id));
  out.set_id(row.id);
  out.set_pid(row.pid);
  out.set_uid(row.uid);
  out.set_command(row.comm);
  out.set_pool(row.pool);
  FillTime(row.attached_ns, *out.mutable_attach_time());
  out.set_contexts(row.contexts);
  out.set_pds(row.pds);
  out.set_cqs(row.cqs);
  out.set_qps(row.qps);
  out.set_mrs(row.mrs);
  out.set_cm_ids(row.cm_ids);
  out.set_registered_bytes(row.registered_bytes);
  out.set_segment_bytes(row.segment_bytes);
  out.set_memory_way(Way(row.memory_way));
  out.set_trusted(row.trusted);
  out.set_descriptors(row.descriptors);
  out.set_waiting_events(row.waiting_events);
  out.set_blocked_calls(row.blocked_calls);
}

void FillQp(const std::string& parent, const session::QpRow& row, types::v1::QueuePair& out) {
  out.set_name(parent + "/qps/" + NumberText(row.qpn));
  out.set_session(row.session);
  out.set_qpn(row.qpn);
  out.set_type(Type(row.type));
  out.set_state(State(row.state));
  out.set_remote_qpn(row.remote_qpn);
  out.set_local_address(wire::AddressText(row.local_gid));
  out.set_remote_address(wire::AddressText(row.remote_gid));
  out.set_path_mtu(row.path_mtu);
  out.set_send_psn(row.send_psn);
  out.set_unacked_psn(row.unacked_psn);
  out.set_expected_psn(row.expected_psn);
  out.set_worker(row.worker);
  out.set_sends_posted(row.sends_posted);
  out.set_sends_completed(row.sends_completed);
  out.set_receives_posted(row.receives_posted);
  out.set_receives_completed(row.receives_completed);
  out.set_outstanding(row.outstanding);
  out.set_error(row.error);
  out.set_transport(row.transport);
  out.set_transport_reason(row.transport_reason);
  out.set_channel(row.channel);
  if (row.channel != 0) out.add_channels(parent + "/channels/" + NumberText(row.channel));
  for (const uint32_t channel : row.beside)
    out.add_channels(parent + "/channels/" + NumberText(channel));
  if (!row.endpoint) return;
  types::v1::Endpoint& endpoint = *out.mutable_endpoint();
  endpoint.set_state(row.endpoint->state);
  endpoint.set_mode(row.endpoint->mode);
  endpoint.set_suspends_on_failure(row.endpoint->suspends_on_failure);
  endpoint.set_requests(row.endpoint->requests);
  endpoint.set_messages(row.endpoint->messages);
  endpoint.set_failures(row.endpoint->failures);
}

void FillConnection(const std::string& parent, const session::ConnectionRow& row,
                    types::v1::Connection& out) {
  char number[16];
  std::snprintf(number, sizeof number, "0x%08x", row.local_comm_id);
  out.set_name(parent + "/connections/" + number);
  out.set_session(row.session);
  out.set_active(row.active);
  out.set_state(row.state);
  out.set_local_comm_id(row.local_comm_id);
  out.set_remote_comm_id(row.remote_comm_id);
  out.set_local_qpn(row.local_qpn);
  out.set_remote_qpn(row.remote_qpn);
  out.set_local_address(wire::AddressText(row.local_gid));
  out.set_remote_address(wire::AddressText(row.remote_gid));
  out.set_path_mtu(row.path_mtu);
  out.mutable_sent()->set_vendor_id(row.sent_vendor);
  out.mutable_sent()->set_options(row.sent_options);
  out.mutable_received()->set_vendor_id(row.received_vendor);
  out.mutable_received()->set_options(row.received_options);
  for (const std::string& option : row.agreed) out.add_agreed(option);
  out.set_reason(row.reason);
  out.set_rejected(row.rejected);
}

void FillChannel(const std::string& parent, const session::ChannelRow& row,
                 types::v1::Channel& out) {
  out.set_name(parent + "/channels/" + NumberText(row.number));
  out.set_number(row.number);
  out.set_peer_number(row.peer_number);
  out.set_worker(row.worker);
  out.set_peer_worker(row.peer_worker);
  out.set_local_address(wire::AddressText(row.local_gid));
  out.set_remote_address(wire::AddressText(row.remote_gid));
  out.set_traffic_class(row.traffic_class);
  out.set_path(row.path);
  out.set_state(row.state);
  for (const std::string& option : row.agreed) out.add_agreed(option);
  out.set_congestion(row.congestion);
  out.set_window_bytes(row.window_bytes);
  out.set_in_flight_bytes(row.in_flight_bytes);
  out.set_rtt_ns(row.rtt_ns);
  out.set_min_rtt_ns(row.min_rtt_ns);
  out.set_users(row.users);
  out.set_waiting(row.waiting);
  out.set_lost(row.lost);
  out.set_resent(row.resent);
  out.set_spurious(row.spurious);
  out.set_path_changes(row.path_changes);
  out.set_protection(row.protection);
  out.set_key_id(row.key_id);
  out.set_peer_key_id(row.peer_key_id);
}

void FillMr(const std::string& parent, const session::MrRow& row, types::v1::MemoryRegion& out) {
  const std::string of_session = parent + "/mrs/" + std::to_string(row.session) + "-";
  out.set_name(of_session + (row.window != 0 ? "w" : "") + std::to_string(row.handle));
  out.set_session(row.session);
  out.set_handle(row.handle);
  char masked[16];
  std::snprintf(masked, sizeof masked, "0x******%02x", row.rkey & 0xFF);
  out.set_rkey_masked(masked);
  out.set_address(row.address);
  out.set_length(row.length);
  for (size_t bit = 0; bit < std::size(kAccessNames); ++bit) {
    if ((row.access >> bit & 1) != 0) out.add_access(kAccessNames[bit]);
  }
  if ((row.access & kAccessRelaxedOrdering) != 0) out.add_access("relaxed_ordering");
  out.set_windows(row.windows);
  if (row.window == 0) {
    out.set_way(Way(row.way));
    out.set_reason(row.reason);
    return;
  }
  out.set_window(row.window == 1 ? types::v1::WINDOW_TYPE_1 : types::v1::WINDOW_TYPE_2);
  if (row.bound_to != 0) out.set_bound_to(of_session + std::to_string(row.bound_to));
  out.set_qpn(row.window_qpn);
}

void FillSrq(const std::string& parent, const session::SrqRow& row,
             types::v1::SharedReceiveQueue& out) {
  out.set_name(parent + "/srqs/" + std::to_string(row.session) + "-" + std::to_string(row.handle));
  out.set_session(row.session);
  out.set_handle(row.handle);
  out.set_type(types::v1::BASIC);
  out.set_worker(row.worker);
  out.set_size(row.size);
  out.set_max_sge(row.max_sge);
  out.set_limit(row.limit);
  out.set_held(row.held);
  out.set_qps(row.qps);
  out.set_taken(row.taken);
  out.set_limit_events(row.limit_events);
}

namespace {

void FillReady(const session::PoolRow& row, types::v1::ReadyReserve& ready) {
  ready.set_wanted(row.ready.wanted);
  ready.set_ready(row.ready.ready);
  ready.set_bytes(row.ready.bytes);
  ready.set_hits(row.ready.hits);
  ready.set_misses(row.ready.misses);
}

}  // namespace

void FillPool(const session::PoolRow& row, types::v1::PoolUsage& out) {
  out.set_pool(row.name);
  out.set_uid(row.uid);
  out.set_leaving(row.leaving);
  for (const session::LimitRow& limit : row.limits) {
    types::v1::LimitUsage& usage = *out.add_limits();
    usage.set_limit(limit.limit);
    usage.set_used(limit.used);
    usage.set_committed(limit.committed);
    if (limit.peak != tenant::kUnlimited) usage.set_peak(limit.peak);
    usage.set_refused(limit.refused);
  }
  for (const std::string& socket : row.sockets) out.add_sockets(socket);
  if (row.ready.wanted != 0) FillReady(row, *out.mutable_ready());
}

void FillEvent(const session::EventRow& row, types::v1::GatewayEvent& out) {
  FillTime(row.first_ns, *out.mutable_first_time());
  FillTime(row.last_ns, *out.mutable_last_time());
  out.set_count(row.count);
  out.set_reason(row.reason);
  out.set_object(row.object);
  out.set_message(row.text);
}

void FillDrain(const session::DrainRow& row, types::v1::DrainProgress& out) {
  FillTime(row.start_ns, *out.mutable_start_time());
  out.set_empty(row.empty);
  out.set_sessions(row.sessions);
  out.set_qps(row.qps);
  out.set_outstanding_requests(row.outstanding);
  for (const std::string& holder : row.holders) out.add_holders(holder);
}

namespace {

void FillTakeOvers(const session::TakeOverRow& row, types::v1::TakeOvers& out) {
  out.set_count(row.count);
  if (row.count != 0) {
    FillDuration(row.last_blackout, *out.mutable_last_blackout());
    FillTime(row.last_ns, *out.mutable_last_time());
    out.set_from_version(row.from_version);
  }
  out.set_descriptors(row.descriptors);
  for (const auto& [reason, times] : row.refusals) {
    if (times != 0) (*out.mutable_refusals())[reason] = times;
  }
}

// Adds pools that hold objects or keep queue pairs ready.
void FillPoolTotals(const session::PoolRow& row, types::v1::GatewayStatus& out) {
  types::v1::PoolTotals pool;
  types::v1::GatewayTotals& totals = *pool.mutable_totals();
  const google::protobuf::Reflection& reflection = *totals.GetReflection();
  bool any = false;
  for (const session::LimitRow& limit : row.limits) {
    // The totals have the names of the limits.
    const auto* const field = totals.GetDescriptor()->FindFieldByName(limit.limit);
    if (field == nullptr || limit.used == 0) continue;
    reflection.SetUInt64(&totals, field, limit.used);
    any = true;
  }
  if (row.ready.wanted != 0) FillReady(row, *pool.mutable_ready());
  if (!any && row.ready.wanted == 0) return;
  pool.set_pool(row.name);
  out.add_pools()->Swap(&pool);
}

}  // namespace

void FillDuration(Duration from, google::protobuf::Duration& out) {
  constexpr int64_t kSecond = 1'000'000'000;
  out.set_seconds(from.ns / kSecond);
  out.set_nanos(static_cast<int32_t>(from.ns % kSecond));
}

void FillTotals(const session::Totals& from, types::v1::GatewayTotals& out) {
  out.set_sessions(from.sessions);
  out.set_qps(from.qps);
  out.set_cqs(from.cqs);
  out.set_mrs(from.mrs);
  out.set_pds(from.pds);
  out.set_cm_ids(from.cm_ids);
  out.set_registered_bytes(from.registered_bytes);
  out.set_segment_bytes(from.segment_bytes);
}

void FillStatus(const GatewayIdentity& identity, const std::string& not_ready_reason,
                const session::StateSnapshot& snapshot, types::v1::GatewayStatus& out) {
  out.set_name("gateways/" + identity.name);
  out.set_version(identity.version);
  out.set_revision(identity.revision);
  FillTime(identity.start_ns, *out.mutable_start_time());
  FillTime(identity.now_ns(), *out.mutable_read_time());
  out.set_ready(not_ready_reason.empty());
  out.set_not_ready_reason(not_ready_reason);
  for (const session::PortRow& row : snapshot.ports) {
    types::v1::Port& port = *out.add_ports();
    port.set_device(row.device);
    port.set_name(row.name);
    port.set_mode(row.mode);
    port.set_interface(ForeignText(row.interface));
    port.set_up(row.up);
    port.set_interface_mtu(row.interface_mtu);
    port.set_path_mtu(row.path_mtu);
    port.set_receive_buffer_bytes(row.receive_buffer_bytes);
    port.set_segmentation(row.segmentation);
    for (const wire::Gid& gid : row.gids) port.add_addresses(wire::AddressText(gid));
    port.set_note(row.note);
  }
  for (const session::WorkerRow& row : snapshot.workers) {
    types::v1::Worker& worker = *out.add_workers();
    worker.set_index(row.index);
    worker.set_cpu(row.cpu);
    worker.set_qps(row.qps);
  }
  FillTotals(snapshot.totals, *out.mutable_totals());
  for (const session::PoolRow& row : snapshot.pools) FillPoolTotals(row, out);
  out.set_admin_state(snapshot.drain.active ? types::v1::DRAINING : types::v1::ACTIVE);
  if (snapshot.drain.active) FillDrain(snapshot.drain, *out.mutable_drain());
  FillTakeOvers(snapshot.take_overs, *out.mutable_take_overs());
  out.set_config_source(snapshot.config_source);
  out.set_applied_revision(snapshot.applied_revision);
  apply::FillLimits(snapshot.capacity, *out.mutable_capacity());
}

void FillCounters(const session::StateSnapshot& snapshot, gateway::v1::GetCountersResponse& out) {
  for (const session::WorkerRow& row : snapshot.workers) out.add_workers(row.index);
  const auto value = [](const std::vector<uint64_t>& values, size_t i) {
    return i < values.size() ? values[i] : 0;
  };
  size_t index = 0;
  for (const metrics::CounterInfo& info : metrics::AllCounters()) {
    types::v1::Counter& counter = *out.add_counters();
    counter.set_name(metrics::CounterName(info));
    counter.set_help(info.help);
    for (const auto& row : snapshot.workers) counter.add_values(value(row.counters, index));
    ++index;
  }
  for (size_t i = 1; i < metrics::kDropReasonCount; ++i) {
    const auto reason = static_cast<metrics::DropReason>(i);
    types::v1::DropCounter& drop = *out.add_drops();
    drop.set_reason(metrics::DropReasonName(reason));
    drop.set_side(metrics::DropReasonSide(reason));
    drop.set_help(metrics::DropReasonHelp(reason));
    for (const auto& row : snapshot.workers) drop.add_values(value(row.drops, i));
    drop.set_control(value(snapshot.control_drops, i));
  }
  for (const session::PortRow& port : snapshot.ports) {
    for (index = 0; index < std::size(port::kPortCounters); ++index) {
      types::v1::PortCounter& counter = *out.add_port_counters();
      counter.set_port(port.name);
      counter.set_name(port::kPortCounters[index].name);
      counter.set_help(port::kPortCounters[index].help);
      for (const auto& worker : snapshot.workers) {
        counter.add_values(value(PortQueueCounters(snapshot, port.name, worker.index), index));
      }
    }
  }
}

}  // namespace rocegw::service
