// SPDX-License-Identifier: Apache-2.0
#include "agent/probe/probe_outcome.h"

#include <sys/wait.h>

#include <cstring>
#include <string_view>

namespace rocegw::agent {
namespace {

// Exit status of rocegw-run when it finds no gateway.
constexpr int kNoGateway = 125;
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

types::v1::ConnectivityFault FaultOf(probe::Fault fault) {
  switch (fault) {
    case probe::Fault::kAttachRefused:
      return types::v1::ATTACH_REFUSED;
    case probe::Fault::kNoAddress:
      return types::v1::NO_ADDRESS;
    case probe::Fault::kUnreachable:
      return types::v1::UNREACHABLE;
    case probe::Fault::kConnectionRefused:
      return types::v1::CONNECTION_REFUSED;
    case probe::Fault::kTimedOut:
      return types::v1::TIMED_OUT;
    case probe::Fault::kConnectionLost:
      return types::v1::CONNECTION_LOST;
    case probe::Fault::kCorrupted:
      return types::v1::CORRUPTED;
    case probe::Fault::kFailed:
      break;
  }
  return types::v1::PROBE_FAILED;
}

// Removes the speaker from "rocegw[123]: the gateway ..." and "rocegw-run: no gateway ...".
std::string WithoutSpeaker(const std::string& line) {
  const size_t colon = line.find(": ");
  return line.starts_with("rocegw") && colon != std::string::npos ? line.substr(colon + 2) : line;
}

}  // namespace

fleet::v1::ProbeReport Fault(types::v1::ConnectivityFault fault, const std::string& message) {
  fleet::v1::ProbeReport report;
  report.set_fault(fault);
  report.set_message(message);
  return report;
}

fleet::v1::ProbeReport ReportOf(const probe::Line& line, const std::string& last_error) {
  fleet::v1::ProbeReport report;
  if (const auto* listening = std::get_if<probe::Listening>(&line)) {
    report.set_address(listening->address);
    report.set_port(listening->port);
  } else if (const auto* measured = std::get_if<probe::Measured>(&line)) {
    types::v1::Connectivity& out = *report.mutable_connectivity();
    out.set_connect_ns(measured->connect_ns);
    out.set_round_trips(measured->round_trips);
    out.set_round_trip_min_ns(measured->min_ns);
    out.set_round_trip_median_ns(measured->median_ns);
    out.set_round_trip_p99_ns(measured->p99_ns);
    out.set_bulk_bytes(measured->bulk_bytes);
    out.set_bulk_bytes_per_second(measured->bulk_bytes_per_second);
  } else if (const auto* failed = std::get_if<probe::Failed>(&line)) {
    const bool refused = failed->fault == probe::Fault::kAttachRefused && !last_error.empty();
    return Fault(FaultOf(failed->fault), refused ? WithoutSpeaker(last_error) : failed->message);
  }
  return report;
}

types::v1::PlainPath PlainOf(const probe::PlainPath& measured) {
  types::v1::PlainPath path;
  path.set_sent(measured.sent);
  path.set_received(measured.received);
  path.set_reordered(measured.reordered);
  path.set_dscp_kept(measured.dscp_kept);
  path.set_ecn_kept(measured.ecn_kept);
  path.set_ecn_marked(measured.ecn_marked);
  path.set_tcp_round_trip_median_ns(measured.tcp_median_ns);
  path.set_tcp_bytes_per_second(measured.tcp_bytes_per_second);
  if (measured.clock_ahead_ns.has_value()) path.set_clock_ahead_ns(*measured.clock_ahead_ns);
  path.set_problem(measured.problem);
  return path;
}

fleet::v1::ProbeReport ReportOfEnd(int status, const std::string& last_error) {
  const std::string said = last_error.empty() ? "" : ": " + WithoutSpeaker(last_error);
  if (WIFSIGNALED(status)) {
    return Fault(types::v1::PROBE_FAILED,
                 std::string("the probe was ended: ") + strsignal(WTERMSIG(status)) + said);
  }
  const int code = WEXITSTATUS(status);
  if (code == kNoGateway && !last_error.empty())
    return Fault(types::v1::ATTACH_REFUSED, WithoutSpeaker(last_error));
  if (code == kCannotRun || code == kNotFound)
    return Fault(types::v1::NO_PROBE, "the probe cannot be started" + said);
  return Fault(types::v1::PROBE_FAILED,
               "the probe ended with status " + std::to_string(code) + said);
}

}  // namespace rocegw::agent
