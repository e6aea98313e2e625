// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/views/state_views.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <utility>
#include <vector>

#include "controlplane/cli/views/table.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::cli {
namespace {

constexpr size_t kLineLimit = 80;
// Limit of worker columns beside the totals.
constexpr int kMostWorkerColumns = 4;

size_t Limit(bool wide) { return wide ? 0 : kLineLimit; }

std::string Hex(uint64_t value, int digits) {
  char text[32];
  std::snprintf(text, sizeof text, "0x%0*llx", digits, static_cast<unsigned long long>(value));
  return text;
}

std::string WayText(types::v1::MemoryWay way) {
  switch (way) {
    case types::v1::CROSS_PROCESS:
      return "cross";
    case types::v1::DESCRIPTOR:
      return "descriptor";
    case types::v1::REMAPPED:
      return "remapped";
    case types::v1::DMA_BUF:
      return "dma_buf";
    case types::v1::DEVICE:
      return "device";
    default:
      return "-";
  }
}

// Returns "lw,rw,rr,ra": local write, remote write, remote read, remote atomic.
std::string AccessText(const types::v1::MemoryRegion& mr) {
  static constexpr std::pair<const char*, const char*> kShort[] = {{"local_write", "lw"},
                                                                   {"remote_write", "rw"},
                                                                   {"remote_read", "rr"},
                                                                   {"remote_atomic", "ra"}};
  std::string text;
  for (const std::string& access : mr.access()) {
    std::string word = access;
    for (const auto& [name, brief] : kShort) {
      if (access == name) word = brief;
    }
    text += (text.empty() ? "" : ",") + word;
  }
  return text.empty() ? "lr" : text;
}

std::string MrTypeText(const types::v1::MemoryRegion& mr) {
  switch (mr.window()) {
    case types::v1::WINDOW_TYPE_1:
      return "mw1";
    case types::v1::WINDOW_TYPE_2:
      return "mw2";
    default:
      return "mr";
  }
}

// Returns "in 3-1", the name of the region; with the queue pair if the window is for one only.
std::string BindingText(const types::v1::MemoryRegion& window) {
  if (window.bound_to().empty()) return "not bound";
  std::string text = "in " + window.bound_to().substr(window.bound_to().rfind('/') + 1);
  if (window.qpn() != 0) text += " for QP " + Hex(window.qpn(), 6);
  return text;
}

template <typename E>
std::string EnumText(const std::string& name, E value) {
  return static_cast<int>(value) == 0 ? "-" : name;
}

template <typename Rows>
size_t Shown(const Rows& rows, const ViewOptions& options) {
  const auto count = static_cast<size_t>(rows.size());
  return options.most_rows == 0 ? count : std::min(count, options.most_rows);
}

std::string Finish(const Table& table, size_t total, const ViewOptions& options) {
  std::string text = table.Text(Limit(options.wide));
  if (table.rows() < total) {
    text +=
        "... and " + std::to_string(total - table.rows()) + " more: " + options.how_to_list + "\n";
  }
  return text;
}

uint64_t Sum(const google::protobuf::RepeatedField<uint64_t>& values) {
  uint64_t sum = 0;
  for (const uint64_t value : values) sum += value;
  return sum;
}

// Empty: there was none, and none was refused.
std::string TakeOversText(const types::v1::TakeOvers& take_overs) {
  std::string text;
  if (take_overs.count() != 0) {
    char pause[32];
    std::snprintf(pause, sizeof pause, "%.1f",
                  static_cast<double>(take_overs.last_blackout().seconds()) * 1e3 +
                      take_overs.last_blackout().nanos() / 1e6);
    text += "take-overs " + std::to_string(take_overs.count()) + ", last pause " + pause +
            " ms, from version " + ForeignText(take_overs.from_version()) + "\n";
  }
  std::map<std::string, uint64_t> refusals(take_overs.refusals().begin(),
                                           take_overs.refusals().end());
  for (const auto& [reason, times] : refusals)
    text += "take-overs not done: " + ForeignText(reason) + " " + std::to_string(times) + "\n";
  return text;
}

// The states of an endpoint are its own; those of its queue pair say less.
std::string StateOf(const types::v1::QueuePair& row) {
  return row.has_endpoint() ? row.endpoint().state()
                            : EnumText(types::v1::QpState_Name(row.state()), row.state());
}

}  // namespace

std::string StatusView(const types::v1::GatewayStatus& status, bool wide) {
  std::string version = status.version();
  if (!status.revision().empty()) version += " (" + status.revision() + ")";
  std::string text = ForeignText(status.name() + "  rocegwd " + version) + "\n";
  text += (status.ready() ? "ready" : "NOT READY: " + ForeignText(status.not_ready_reason())) +
          ", up " + AgeText(status.read_time().seconds() - status.start_time().seconds()) + "\n\n";

  Table ports;
  ports.AddColumn("DEVICE", Column::kLeft);
  ports.AddColumn("PORT", Column::kLeft);
  ports.AddColumn("MODE", Column::kLeft);
  ports.AddColumn("INTERFACE", Column::kLeft);
  ports.AddColumn("STATE", Column::kLeft);
  ports.AddColumn("MTU", Column::kRight);
  ports.AddColumn("PATH", Column::kRight);
  if (wide) {
    ports.AddColumn("BUFFER", Column::kRight);
    ports.AddColumn("SEGMENTATION", Column::kLeft);
  }
  ports.AddColumn("ADDRESSES", Column::kCut);
  std::string notes;
  for (const types::v1::Port& port : status.ports()) {
    std::string addresses;
    for (const std::string& address : port.addresses()) {
      if (!address.empty()) addresses += (addresses.empty() ? "" : " ") + address;
    }
    std::vector<std::string> row = {port.device(),
                                    port.name(),
                                    port.mode(),
                                    OrDash(port.interface()),
                                    port.up() ? "up" : "DOWN",
                                    std::to_string(port.interface_mtu()),
                                    std::to_string(port.path_mtu())};
    if (wide) {
      row.push_back(BytesText(port.receive_buffer_bytes()));
      row.push_back(OrDash(port.segmentation()));
    }
    row.push_back(OrDash(addresses));
    ports.AddRow(std::move(row));
    if (!port.note().empty())
      notes += "note: " + ForeignText(port.name() + ": " + port.note()) + "\n";
  }
  text += ports.Text(Limit(wide)) + notes;

  const types::v1::GatewayTotals& totals = status.totals();
  text += "\nworkers " + std::to_string(status.workers_size()) + ", sessions " +
          std::to_string(totals.sessions()) + ", QPs " + std::to_string(totals.qps()) + ", CQs " +
          std::to_string(totals.cqs()) + ", MRs " + std::to_string(totals.mrs()) + "\n" +
          BytesText(totals.registered_bytes()) + " registered, " +
          BytesText(totals.segment_bytes()) + " of shared memory in use by programs\n";
  text += TakeOversText(status.take_overs());
  return text;
}

std::string SessionsView(const gateway::v1::ListSessionsResponse& list,
                         const ViewOptions& options) {
  Table table;
  table.AddColumn("SESSION", Column::kRight);
  table.AddColumn("PID", Column::kRight);
  table.AddColumn("UID", Column::kRight);
  table.AddColumn("COMMAND", Column::kLeft);
  table.AddColumn("QPS", Column::kRight);
  table.AddColumn("CQS", Column::kRight);
  table.AddColumn("MRS", Column::kRight);
  table.AddColumn("REGISTERED", Column::kRight);
  table.AddColumn("MEMORY", Column::kLeft);
  table.AddColumn("AGE", Column::kRight);
  if (options.wide) {
    table.AddColumn("PDS", Column::kRight);
    table.AddColumn("CM-IDS", Column::kRight);
    table.AddColumn("SEGMENTS", Column::kRight);
    table.AddColumn("FDS", Column::kRight);
    table.AddColumn("TRUSTED", Column::kLeft);
    table.AddColumn("POOL", Column::kLeft);
  }
  const size_t shown = Shown(list.sessions(), options);
  for (size_t i = 0; i < shown; ++i) {
    const types::v1::Session& row = list.sessions(static_cast<int>(i));
    std::vector<std::string> cells = {
        std::to_string(row.id()),
        row.pid() == 0 ? "-" : std::to_string(row.pid()),
        std::to_string(row.uid()),
        OrDash(row.command()) + (row.blocked_calls() != 0 ? " (ended, blocks)" : ""),
        std::to_string(row.qps()),
        std::to_string(row.cqs()),
        std::to_string(row.mrs()),
        BytesText(row.registered_bytes()),
        WayText(row.memory_way()),
        AgeText(list.read_time().seconds() - row.attach_time().seconds())};
    if (options.wide) {
      cells.push_back(std::to_string(row.pds()));
      cells.push_back(std::to_string(row.cm_ids()));
      cells.push_back(BytesText(row.segment_bytes()));
      cells.push_back(std::to_string(row.descriptors()));
      cells.push_back(row.trusted() ? "yes" : "no");
      cells.push_back(OrDash(row.pool()));
    }
    table.AddRow(std::move(cells));
  }
  return Finish(table, static_cast<size_t>(list.sessions_size()), options);
}

std::string QpsView(const gateway::v1::ListQpsResponse& list, const ViewOptions& options) {
  Table table;
  table.AddColumn("QPN", Column::kLeft);
  table.AddColumn("TYPE", Column::kLeft);
  table.AddColumn("STATE", Column::kLeft);
  table.AddColumn("SESS", Column::kRight);
  table.AddColumn("W", Column::kRight);
  table.AddColumn("MTU", Column::kRight);
  table.AddColumn("POSTED", Column::kRight);
  table.AddColumn("DONE", Column::kRight);
  table.AddColumn("OPEN", Column::kRight);
  table.AddColumn("REMOTE", Column::kCut);
  if (options.wide) {
    table.AddColumn("LOCAL", Column::kLeft);
    table.AddColumn("RECEIVES", Column::kRight);
    table.AddColumn("RECEIVED", Column::kRight);
    table.AddColumn("SEND-PSN", Column::kLeft);
    table.AddColumn("UNACKED", Column::kLeft);
    table.AddColumn("EXPECTED", Column::kLeft);
    table.AddColumn("MODE", Column::kLeft);
    table.AddColumn("BEGUN", Column::kRight);
    table.AddColumn("MESSAGES", Column::kRight);
    table.AddColumn("FAILED", Column::kRight);
    table.AddColumn("VIA", Column::kLeft);
    table.AddColumn("WHY", Column::kLeft);
    table.AddColumn("ERROR", Column::kLeft);
  }
  const size_t shown = Shown(list.qps(), options);
  for (size_t i = 0; i < shown; ++i) {
    const types::v1::QueuePair& row = list.qps(static_cast<int>(i));
    const std::string remote = row.remote_qpn() == 0 && row.remote_address().empty()
                                   ? "-"
                                   : Hex(row.remote_qpn(), 6) + "@" + OrDash(row.remote_address());
    std::vector<std::string> cells = {Hex(row.qpn(), 6),
                                      EnumText(types::v1::QpType_Name(row.type()), row.type()),
                                      StateOf(row),
                                      std::to_string(row.session()),
                                      std::to_string(row.worker()),
                                      row.path_mtu() == 0 ? "-" : std::to_string(row.path_mtu()),
                                      std::to_string(row.sends_posted()),
                                      std::to_string(row.sends_completed()),
                                      std::to_string(row.outstanding()),
                                      remote};
    if (options.wide) {
      cells.push_back(OrDash(row.local_address()));
      cells.push_back(std::to_string(row.receives_posted()));
      cells.push_back(std::to_string(row.receives_completed()));
      cells.push_back(Hex(row.send_psn(), 6));
      cells.push_back(Hex(row.unacked_psn(), 6));
      cells.push_back(Hex(row.expected_psn(), 6));
      const types::v1::Endpoint& endpoint = row.endpoint();
      const auto of_endpoint = [&](uint64_t count) {
        return row.has_endpoint() ? std::to_string(count) : "-";
      };
      cells.push_back(OrDash(endpoint.mode()));
      cells.push_back(of_endpoint(endpoint.requests()));
      cells.push_back(of_endpoint(endpoint.messages()));
      cells.push_back(of_endpoint(endpoint.failures()));
      cells.push_back(OrDash(row.transport()));
      cells.push_back(OrDash(row.transport_reason()));
      cells.push_back(OrDash(row.error()));
    }
    table.AddRow(std::move(cells));
  }
  return Finish(table, static_cast<size_t>(list.qps_size()), options);
}

std::string ConnectionsView(const gateway::v1::ListConnectionsResponse& list,
                            const ViewOptions& options) {
  Table table;
  table.AddColumn("COMM-ID", Column::kLeft);
  table.AddColumn("SIDE", Column::kLeft);
  table.AddColumn("STATE", Column::kLeft);
  table.AddColumn("SESS", Column::kRight);
  table.AddColumn("QPN", Column::kLeft);
  table.AddColumn("REMOTE", Column::kCut);
  if (options.wide) {
    table.AddColumn("LOCAL", Column::kLeft);
    table.AddColumn("MTU", Column::kRight);
    table.AddColumn("SENT", Column::kLeft);
    table.AddColumn("RECEIVED", Column::kLeft);
    table.AddColumn("AGREED", Column::kLeft);
    table.AddColumn("REASON", Column::kLeft);
    table.AddColumn("REJECTED", Column::kLeft);
  }
  const auto ece = [](const types::v1::Ece& value) {
    return Hex(value.vendor_id(), 6) + "/" + Hex(value.options(), 0);
  };
  const size_t shown = Shown(list.connections(), options);
  for (size_t i = 0; i < shown; ++i) {
    const types::v1::Connection& row = list.connections(static_cast<int>(i));
    std::vector<std::string> cells = {
        Hex(row.local_comm_id(), 8),
        row.active() ? "active" : "passive",
        row.state(),
        row.session() == 0 ? "-" : std::to_string(row.session()),
        Hex(row.local_qpn(), 6),
        Hex(row.remote_qpn(), 6) + "@" + OrDash(row.remote_address())};
    if (options.wide) {
      cells.push_back(OrDash(row.local_address()));
      cells.push_back(row.path_mtu() == 0 ? "-" : std::to_string(row.path_mtu()));
      cells.push_back(ece(row.sent()));
      cells.push_back(ece(row.received()));
      cells.push_back(Joined(row.agreed(), ", "));
      cells.push_back(OrDash(row.reason()));
      cells.push_back(OrDash(row.rejected()));
    }
    table.AddRow(std::move(cells));
  }
  return Finish(table, static_cast<size_t>(list.connections_size()), options);
}

std::string ChannelsView(const gateway::v1::ListChannelsResponse& list,
                         const ViewOptions& options) {
  Table table;
  table.AddColumn("NUMBER", Column::kLeft);
  table.AddColumn("STATE", Column::kLeft);
  table.AddColumn("WORKER", Column::kRight);
  table.AddColumn("CC", Column::kLeft);
  table.AddColumn("RTT-US", Column::kRight);
  table.AddColumn("IN-FLIGHT", Column::kRight);
  table.AddColumn("USERS", Column::kRight);
  table.AddColumn("RESENT", Column::kRight);
  table.AddColumn("REMOTE", Column::kCut);
  if (options.wide) {
    table.AddColumn("LOCAL", Column::kLeft);
    table.AddColumn("CLASS", Column::kRight);
    table.AddColumn("PATH", Column::kRight);
    table.AddColumn("WINDOW", Column::kRight);
    table.AddColumn("MIN-RTT-US", Column::kRight);
    table.AddColumn("WAITING", Column::kRight);
    table.AddColumn("LOST", Column::kRight);
    table.AddColumn("SPURIOUS", Column::kRight);
    table.AddColumn("PATH-CHANGES", Column::kRight);
    table.AddColumn("PROTECTION", Column::kLeft);
    table.AddColumn("KEYS", Column::kLeft);
    table.AddColumn("AGREED", Column::kLeft);
  }
  const auto microseconds = [](uint64_t ns) -> std::string {
    return ns == 0 ? "-" : std::to_string((ns + 999) / 1000);
  };
  const size_t shown = Shown(list.channels(), options);
  for (size_t i = 0; i < shown; ++i) {
    const types::v1::Channel& row = list.channels(static_cast<int>(i));
    std::vector<std::string> cells = {Hex(row.number(), 6),
                                      row.state(),
                                      std::to_string(row.worker()),
                                      row.congestion(),
                                      microseconds(row.rtt_ns()),
                                      std::to_string(row.in_flight_bytes()),
                                      std::to_string(row.users()),
                                      std::to_string(row.resent()),
                                      Hex(row.peer_number(), 6) + "@" +
                                          OrDash(row.remote_address()) + "/" +
                                          std::to_string(row.peer_worker())};
    if (options.wide) {
      cells.push_back(OrDash(row.local_address()));
      cells.push_back(std::to_string(row.traffic_class()));
      cells.push_back(std::to_string(row.path()));
      cells.push_back(std::to_string(row.window_bytes()));
      cells.push_back(microseconds(row.min_rtt_ns()));
      cells.push_back(std::to_string(row.waiting()));
      cells.push_back(std::to_string(row.lost()));
      cells.push_back(std::to_string(row.spurious()));
      cells.push_back(std::to_string(row.path_changes()));
      cells.push_back(OrDash(row.protection()));
      const auto key = [](uint32_t id) { return id == 0 ? std::string("-") : Hex(id, 8); };
      cells.push_back(key(row.key_id()) + "/" + key(row.peer_key_id()));
      cells.push_back(Joined(row.agreed(), ", "));
    }
    table.AddRow(std::move(cells));
  }
  return Finish(table, static_cast<size_t>(list.channels_size()), options);
}

std::string MrsView(const gateway::v1::ListMrsResponse& list, const ViewOptions& options) {
  Table table;
  table.AddColumn("SESS", Column::kRight);
  table.AddColumn("HANDLE", Column::kRight);
  table.AddColumn("TYPE", Column::kLeft);
  table.AddColumn("ADDRESS", Column::kLeft);
  table.AddColumn("LENGTH", Column::kRight);
  table.AddColumn("ACCESS", Column::kLeft);
  table.AddColumn("MEMORY", Column::kLeft);
  if (options.wide) table.AddColumn("RKEY", Column::kLeft);
  table.AddColumn("REASON", Column::kCut);
  const size_t shown = Shown(list.mrs(), options);
  for (size_t i = 0; i < shown; ++i) {
    const types::v1::MemoryRegion& row = list.mrs(static_cast<int>(i));
    const bool is_window = row.window() != types::v1::WINDOW_TYPE_UNSPECIFIED;
    const bool bound = !is_window || !row.bound_to().empty();
    std::vector<std::string> cells = {std::to_string(row.session()),
                                      std::to_string(row.handle()),
                                      MrTypeText(row),
                                      bound ? Hex(row.address(), 0) : "-",
                                      bound ? BytesText(row.length()) : "-",
                                      bound ? AccessText(row) : "-",
                                      WayText(row.way())};
    if (options.wide) cells.push_back(row.rkey_masked());
    cells.push_back(is_window ? BindingText(row) : OrDash(row.reason()));
    table.AddRow(std::move(cells));
  }
  return Finish(table, static_cast<size_t>(list.mrs_size()), options);
}

std::string SrqsView(const gateway::v1::ListSrqsResponse& list, const ViewOptions& options) {
  Table table;
  table.AddColumn("SESS", Column::kRight);
  table.AddColumn("HANDLE", Column::kRight);
  table.AddColumn("TYPE", Column::kLeft);
  table.AddColumn("W", Column::kRight);
  table.AddColumn("SIZE", Column::kRight);
  table.AddColumn("HELD", Column::kRight);
  table.AddColumn("LIMIT", Column::kRight);
  table.AddColumn("QPS", Column::kRight);
  table.AddColumn("TAKEN", Column::kRight);
  if (options.wide) {
    table.AddColumn("MAX-SGE", Column::kRight);
    table.AddColumn("LIMIT-EVENTS", Column::kRight);
  }
  const size_t shown = Shown(list.srqs(), options);
  for (size_t i = 0; i < shown; ++i) {
    const types::v1::SharedReceiveQueue& row = list.srqs(static_cast<int>(i));
    std::vector<std::string> cells = {std::to_string(row.session()),
                                      std::to_string(row.handle()),
                                      EnumText(types::v1::SrqType_Name(row.type()), row.type()),
                                      std::to_string(row.worker()),
                                      std::to_string(row.size()),
                                      std::to_string(row.held()),
                                      row.limit() == 0 ? "-" : std::to_string(row.limit()),
                                      std::to_string(row.qps()),
                                      std::to_string(row.taken())};
    if (options.wide) {
      cells.push_back(std::to_string(row.max_sge()));
      cells.push_back(std::to_string(row.limit_events()));
    }
    table.AddRow(std::move(cells));
  }
  return Finish(table, static_cast<size_t>(list.srqs_size()), options);
}

std::string CountersView(const gateway::v1::GetCountersResponse& counters, bool wide, bool all) {
  const bool by_worker =
      wide || (counters.workers_size() > 1 && counters.workers_size() <= kMostWorkerColumns);
  const auto add_columns = [&](Table& table, const char* first, const char* second) {
    table.AddColumn(first, Column::kLeft);
    if (second != nullptr) table.AddColumn(second, Column::kLeft);
    table.AddColumn("TOTAL", Column::kRight);
    for (const uint32_t worker : counters.workers()) {
      if (by_worker) table.AddColumn("WORKER-" + std::to_string(worker), Column::kRight);
    }
    if (wide) table.AddColumn("MEANING", Column::kLeft);
  };
  const auto add_row = [&](Table& table, std::vector<std::string> cells,
                           const google::protobuf::RepeatedField<uint64_t>& values,
                           const std::string& help) {
    const uint64_t sum = Sum(values);
    if (sum == 0 && !all) return;
    cells.push_back(std::to_string(sum));
    for (const uint64_t value : values) {
      if (by_worker) cells.push_back(std::to_string(value));
    }
    if (wide) cells.push_back(help);
    table.AddRow(std::move(cells));
  };

  Table table;
  add_columns(table, "COUNTER", nullptr);
  for (const types::v1::Counter& counter : counters.counters()) {
    add_row(table, {counter.name()}, counter.values(), counter.help());
  }
  std::string text = table.rows() == 0 ? "all counters are zero\n" : table.Text(Limit(wide));

  Table drops;
  drops.AddColumn("DROPPED-BECAUSE", Column::kLeft);
  drops.AddColumn("FAULT-OF", Column::kLeft);
  drops.AddColumn("TOTAL", Column::kRight);
  for (const uint32_t worker : counters.workers()) {
    if (by_worker) drops.AddColumn("WORKER-" + std::to_string(worker), Column::kRight);
  }
  drops.AddColumn("CONTROL", Column::kRight);
  if (wide) drops.AddColumn("MEANING", Column::kLeft);
  for (const types::v1::DropCounter& drop : counters.drops()) {
    const uint64_t sum = Sum(drop.values()) + drop.control();
    if (sum == 0 && !all) continue;
    std::vector<std::string> cells = {drop.reason(), drop.side(), std::to_string(sum)};
    for (const uint64_t value : drop.values()) {
      if (by_worker) cells.push_back(std::to_string(value));
    }
    cells.push_back(std::to_string(drop.control()));
    if (wide) cells.push_back(drop.help());
    drops.AddRow(std::move(cells));
  }
  text += drops.rows() == 0 ? "no packet was dropped\n" : "\n" + drops.Text(Limit(wide));

  Table ports;
  add_columns(ports, "PORT-COUNTER", "PORT");
  for (const types::v1::PortCounter& counter : counters.port_counters()) {
    add_row(ports, {counter.name(), counter.port()}, counter.values(), counter.help());
  }
  if (ports.rows() != 0) text += "\n" + ports.Text(Limit(wide));
  return text;
}

}  // namespace rocegw::cli
