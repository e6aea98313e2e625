// SPDX-License-Identifier: Apache-2.0
// State of the daemon as plain rows: a copy, taken on the control thread at one moment. The session
// server fills sessions, QPs and MRs; the owner of ports and workers fills theirs. The gRPC service
// and rocegwctl use these rows only, never live objects. Numbers are in host order, times in ns
// since 1970 (CLOCK_REALTIME); enumerations have the values of rocegw_abi.h, which are those of
// libibverbs.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "gateway/abi/rocegw_abi.h"
#include "gateway/metrics/duration_histogram.h"
#include "gateway/tenant/amounts.h"
#include "gateway/tenant/attach_outcome.h"
#include "gateway/wire/gid.h"

namespace rocegw::session {

// Attached process.
struct SessionRow {
  uint32_t id = 0;
  int32_t pid = 0;   // in the daemon's PID namespace; 0: not visible
  uint32_t uid = 0;  // effective user id at attach
  std::string comm;  // /proc/PID/comm at attach
  std::string pool;  // "tenants/T/pools/P"
  int64_t attached_ns = 0;
  uint32_t contexts = 0;
  uint32_t pds = 0;
  uint32_t cqs = 0;
  uint32_t qps = 0;
  uint32_t mrs = 0;
  uint32_t cm_ids = 0;
  uint64_t registered_bytes = 0;
  uint64_t segment_bytes = 0;                          // shared memory of this process
  uint32_t library_minor = 0;                          // from its greeting, see ROCEGW_ABI_MINOR
  rocegw_memory_way memory_way = ROCEGW_MEMORY_CROSS;  // access mode of MRs that are not remapped
  bool trusted = false;         // workers access client memory themselves, without a copier thread
  uint64_t descriptors = 0;     // descriptors of the daemon
  uint64_t waiting_events = 0;  // unread events in the daemon
  // Calls of an ended session that its program's memory or descriptors still block; 0 while the
  // program is attached.
  uint32_t blocked_calls = 0;
};

// Facts of an endpoint beside those of a queue pair.
struct EndpointRow {
  std::string state;  // "ready", "draining", ...: a word for each value of enum rocegw_ep_state
  std::string mode;   // "by initiator" or "unordered": enum rocegw_service_mode
  bool suspends_on_failure = false;
  uint32_t requests = 0;  // begun and not complete
  uint32_t messages = 0;  // messages of others: begun, or not answered yet
  uint64_t failures = 0;  // requests that failed
};

struct QpRow {
  uint32_t session = 0;
  uint32_t qpn = 0;
  uint8_t type = 0;         // enum rocegw_qp_type; 1 is the gateway's own GSI
  uint8_t state = 0;        // enum ibv_qp_state, 0 RESET .. 6 ERR
  uint32_t remote_qpn = 0;  // connected types from RTR on, else 0
  wire::Gid local_gid;
  wire::Gid remote_gid;
  uint32_t path_mtu = 0;      // bytes of payload per packet, 0: not set yet
  uint32_t send_psn = 0;      // next PSN of a request
  uint32_t unacked_psn = 0;   // oldest unacknowledged PSN
  uint32_t expected_psn = 0;  // next PSN expected from the peer
  uint16_t worker = 0;
  uint64_t sends_posted = 0;
  uint64_t sends_completed = 0;
  uint64_t receives_posted = 0;
  uint64_t receives_completed = 0;
  uint32_t outstanding = 0;      // send requests taken from the ring and not completed
  std::string error;             // reason for ERR, one line; empty otherwise
  std::string transport;         // "native", "channel"; empty: not connected
  std::string transport_reason;  // text of one line
  uint32_t channel = 0;          // on a channel: our number of the channel
  std::vector<uint32_t> beside;  // further channels that it uses
  std::optional<EndpointRow> endpoint;
};

// Connection of the connection manager; addresses and numbers as in cm/describe.h.
struct ConnectionRow {
  uint32_t session = 0;  // 0: its program has exited
  bool active = false;
  std::string state;
  uint32_t local_comm_id = 0;  // unique
  uint32_t remote_comm_id = 0;
  uint32_t local_qpn = 0;
  uint32_t remote_qpn = 0;
  wire::Gid local_gid;
  wire::Gid remote_gid;
  uint32_t path_mtu = 0;  // bytes
  uint32_t sent_vendor = 0;
  uint32_t sent_options = 0;
  uint32_t received_vendor = 0;
  uint32_t received_options = 0;
  std::vector<std::string> agreed;  // names of options
  std::string reason;               // text of one line
  std::string rejected;             // reason of a REJ in either direction; empty: none
};

// Channel to another gateway.
struct ChannelRow {
  uint32_t number = 0;  // unique
  uint32_t peer_number = 0;
  uint16_t worker = 0;
  uint32_t peer_worker = 0;
  wire::Gid local_gid;
  wire::Gid remote_gid;
  uint8_t traffic_class = 0;
  uint8_t path = 0;
  std::string state;
  std::vector<std::string> agreed;  // names of options
  std::string congestion;           // algorithm
  uint64_t window_bytes = 0;
  uint64_t in_flight_bytes = 0;
  uint64_t rtt_ns = 0;  // 0: unknown
  uint64_t min_rtt_ns = 0;
  uint32_t users = 0;
  uint32_t waiting = 0;
  uint32_t lost = 0;  // packets
  uint32_t resent = 0;
  uint32_t spurious = 0;
  uint32_t path_changes = 0;
  std::string protection;
  uint32_t key_id = 0;  // ID of the fleet's key that seals; 0: none
  uint32_t peer_key_id = 0;
};

struct MrRow {
  uint32_t session = 0;
  uint32_t handle = 0;
  uint32_t rkey = 0;  // the service shows only the index part
  uint64_t address = 0;
  uint64_t length = 0;
  uint32_t access = 0;  // enum ibv_access_flags
  rocegw_memory_way way = ROCEGW_MEMORY_CROSS;
  std::string reason;       // reason for this access mode and no faster one; empty for remapped
  uint32_t windows = 0;     // windows bound to it
  uint8_t window = 0;       // window: type 1 or 2; its binding is in the fields above and below
  uint32_t bound_to = 0;    // bound window: handle of the region
  uint32_t window_qpn = 0;  // bound window of type 2: queue pair that may use it
};

// Shared receive queue.
struct SrqRow {
  uint32_t session = 0;
  uint32_t handle = 0;
  uint16_t worker = 0;
  uint32_t size = 0;  // receives that may be posted
  uint32_t max_sge = 0;
  uint32_t limit = 0;  // 0: not armed
  uint32_t held = 0;   // taken receives that wait for messages
  uint32_t qps = 0;
  uint64_t taken = 0;
  uint64_t limit_events = 0;
};

struct PortRow {
  std::string device;     // "rocegw0"
  std::string name;       // name in the configuration
  std::string mode;       // "udp", "af_packet", "af_xdp", "pci", "vdev"
  std::string interface;  // netdev; empty: none
  bool up = false;
  uint32_t interface_mtu = 0;          // bytes
  uint32_t path_mtu = 0;               // largest RoCE payload that fits
  uint64_t receive_buffer_bytes = 0;   // granted by the system; 0: not applicable
  std::string segmentation;            // "on", "off (reason)"
  std::vector<wire::Gid> gids;         // by index; zero: unused
  uint32_t addresses_without_gid = 0;  // beyond the size of the GID table
  std::string note;                    // degradation and its remedy; empty: none
};

// Queue of a port.
struct PortQueueRow {
  std::string port;  // PortRow::name
  uint16_t worker = 0;
  std::vector<uint64_t> counters;  // in the order of port::kPortCounters
};

struct WorkerRow {
  uint16_t index = 0;
  int32_t cpu = -1;  // pinned CPU, -1: not pinned
  uint32_t qps = 0;
  uint32_t channels = 0;           // channels to other gateways
  uint32_t engine_minimum = 0;     // shortest payload for its copy engine; 0: it uses none
  Duration silent;                 // how long it has not answered, while it owes an answer
  std::vector<uint64_t> counters;  // in the order of metrics::AllCounters()
  std::vector<uint64_t> drops;     // by metrics::DropReason, kNone first
};

// Limit of a pool and its use; a rate has no held amount.
struct LimitRow {
  std::string limit;  // "qps"
  uint64_t used = 0;
  uint64_t committed = 0;
  uint64_t peak = tenant::kUnlimited;
  uint64_t refused = 0;
};

// Queue pairs that a pool keeps ready; 0 wanted: no reserve.
struct ReadyRow {
  uint32_t wanted = 0;
  uint32_t ready = 0;
  uint64_t bytes = 0;
  uint64_t hits = 0;
  uint64_t misses = 0;
};

struct PoolRow {
  uint64_t id = 0;
  std::string name;  // "tenants/T/pools/P"
  std::string uid;
  bool leaving = false;     // removed, waits for its last session
  bool trusted = false;     // workers access its programs' memory themselves
  uint64_t sent_bytes = 0;  // headers included
  uint64_t sent_packets = 0;
  std::vector<LimitRow> limits;
  ReadyRow ready;
  metrics::DurationHistogram set_up;  // queue pairs, from creation until they could send
  metrics::DurationHistogram
      operations;  // requests, from the time they were taken until completion
  tenant::AttachCounts attaches{};
  std::vector<std::string> sockets;
};

// Attach that waits for the agent's verdict.
struct HeldRow {
  uint64_t id = 0;
  std::string pool;
  std::string socket;  // path of the attach socket; empty: none
  int32_t pid = 0;
  uint32_t uid = 0;
  uint32_t gid = 0;
  uint64_t start_time = 0;  // clock ticks after boot
  std::string cgroup;
  std::string comm;
};

// Event for operators.
struct EventRow {
  uint64_t id = 0;  // counts up
  int64_t first_ns = 0;
  int64_t last_ns = 0;
  uint64_t count = 0;
  std::string reason;  // "QUOTA_EXCEEDED"
  std::string object;  // "tenants/T/pools/P"
  std::string text;    // text of the last occurrence, one line
};

// Activity and results of discovery (cm/path/discovery.h).
struct DiscoveryRow {
  uint64_t asked = 0;
  uint64_t answered_as_gateway = 0;
  uint64_t refused = 0;
  uint64_t silent = 0;
  uint64_t answers = 0;       // answers to questions of others
  uint64_t not_answered = 0;  // questions beyond the rate limit
  uint64_t not_asked = 0;     // not asked because the table was full
  uint64_t gateways = 0;      // currently known
  uint64_t rdma_devices = 0;
  // Addresses of the fleet's other gateways: those that answered as gateways, and the others.
  uint64_t members_answering = 0;
  uint64_t members_mute = 0;
  uint64_t members_not_asked = 0;
  uint64_t unauthenticated =
      0;  // part of answered_as_gateway: answered without a tag although this gateway has keys
};

// Traffic of the channels to another gateway of the fleet.
struct PeerRow {
  uint64_t channels = 0;
  uint64_t in_flight_bytes = 0;
  uint64_t arrived_bytes = 0;
  uint64_t resent_packets = 0;
  Duration rtts;  // sum over channels
  uint64_t channels_rtt = 0;

  double rtt_seconds() const {
    return channels_rtt == 0
               ? 0
               : static_cast<double>(rtts.ns) / 1e9 / static_cast<double>(channels_rtt);
  }
};

// Progress of a drain.
struct DrainRow {
  bool active = false;
  int64_t start_ns = 0;
  bool empty = false;
  uint64_t sessions = 0;
  uint64_t qps = 0;
  uint64_t outstanding = 0;          // send requests
  std::vector<std::string> holders;  // the first sessions with queue pairs, for display
};

// Take-overs of the gateway, in which a new process replaced the running one.
struct TakeOverRow {
  uint64_t count = 0;
  metrics::DurationHistogram blackouts;  // from the rest of the old process until the new one acts
  Duration last_blackout;
  int64_t last_ns = 0;       // since 1970; 0: none yet
  uint64_t descriptors = 0;  // handed over in all take-overs
  std::string from_version;  // version of the process before the last take-over
  std::vector<std::pair<std::string, uint64_t>> refusals;  // by label of the reason
};

struct Totals {
  uint64_t sessions = 0;
  uint64_t qps = 0;
  uint64_t cqs = 0;
  uint64_t mrs = 0;
  uint64_t pds = 0;
  uint64_t cm_ids = 0;
  uint64_t registered_bytes = 0;
  uint64_t segment_bytes = 0;
};

// Tables that a caller needs; other data is cheap and always included. For qps, channels, peers,
// srqs and outstanding the workers are asked. If one hangs, the answer waits until the daemon
// counts it as hung; later answers come without them.
struct StateQuery {
  bool sessions = false;
  bool qps = false;
  uint32_t qpn = 0;  // only this one; 0: all
  bool mrs = false;
  bool connections = false;
  bool channels = false;
  bool peers = false;
  bool pools = false;
  bool events = false;
  bool srqs = false;
  bool outstanding = false;  // requests that a drain waits for; asks the workers, as qps does

  // Returns true if lists of the workers are needed.
  bool OfWorkers() const { return qps || channels || peers || srqs; }
};

struct StateSnapshot {
  Totals totals;
  std::vector<PortRow> ports;
  std::vector<PortQueueRow> port_queues;
  std::vector<WorkerRow> workers;
  std::vector<uint32_t> qps_by_worker;
  std::vector<Duration> silent_by_worker;
  // "worker 1 has not answered for 12 s": requested qps, channels, peers or srqs are missing.
  std::string unanswered;
  // Management datagrams that the connection manager ignored, by metrics::DropReason.
  std::vector<uint64_t> control_drops;
  DiscoveryRow discovery;
  DrainRow drain;
  TakeOverRow take_overs;
  // Name of the running configuration.
  std::string config_source;
  int64_t applied_revision = 0;
  tenant::Amounts capacity = tenant::Amounts::Of(tenant::kUnlimited);
  std::vector<SessionRow> sessions;  // any order
  std::vector<QpRow> qps;
  std::vector<MrRow> mrs;
  std::vector<ConnectionRow> connections;
  std::vector<ChannelRow> channels;
  std::map<std::string, PeerRow> peers;  // by label (fleet_peers.h)
  std::vector<PoolRow> pools;
  std::vector<EventRow> events;
  std::vector<SrqRow> srqs;
};

}  // namespace rocegw::session
