// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/views/connectivity_view.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <map>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/exit_code.h"
#include "controlplane/cli/views/table.h"
#include "controlplane/cli/views/wrapped.h"

namespace rocegw::cli {
namespace {

using admin::v1::TestConnectivityResponse;

constexpr size_t kLineLimit = 80;

// Formats with one decimal: "12.3".
std::string Microseconds(uint64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%.1f", static_cast<double>(ns) / 1000);
  return text;
}

std::string GigabitsPerSecond(uint64_t bytes_per_second) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2f", static_cast<double>(bytes_per_second) * 8 / 1e9);
  return text;
}

std::string Word(types::v1::ConnectivityFault fault) {
  std::string word = types::v1::ConnectivityFault_Name(fault);
  for (char& c : word) c = c == '_' ? ' ' : static_cast<char>(std::tolower(c));
  return word;
}

std::vector<std::string> Cells(const TestConnectivityResponse& test, bool wide) {
  const types::v1::Connectivity& found = test.connectivity();
  const bool ok = test.has_connectivity();
  std::vector<std::string> cells = {
      ShortName(test.from()),
      ShortName(test.to()),
      ok ? "ok" : "FAILED",
      ok ? Microseconds(found.round_trip_min_ns()) : "-",
      ok ? Microseconds(found.round_trip_median_ns()) : "-",
      ok ? Microseconds(found.round_trip_p99_ns()) : "-",
      found.bulk_bytes() == 0 ? "-" : GigabitsPerSecond(found.bulk_bytes_per_second()),
      ok ? OrDash(found.transport()) : Word(test.fault())};
  if (wide) {
    cells.push_back(OrDash(test.address()));
    cells.push_back(ok ? Microseconds(found.connect_ns()) : "-");
    cells.push_back(OrDash(found.transport_reason()));
  }
  return cells;
}

// Says how many of the received datagrams arrived as they were sent.
std::string Share(uint32_t kept, uint32_t received) {
  if (received == 0) return "-";
  if (kept == received) return "kept";
  if (kept == 0) return "lost";
  return std::to_string(uint64_t{kept} * 100 / received) + "% kept";
}

// Milliseconds with their sign.
std::string ClockText(int64_t ns) {
  char text[32];
  std::snprintf(text, sizeof text, "%+.1f", static_cast<double>(ns) / 1e6);
  return text;
}

std::vector<std::string> PlainCells(const TestConnectivityResponse& test) {
  const types::v1::PlainPath& path = test.connectivity().plain();
  const bool counted = path.sent() != 0;
  return {
      ShortName(test.from()),
      ShortName(test.to()),
      counted ? std::to_string(path.sent() - path.received()) + "/" + std::to_string(path.sent())
              : "-",
      counted ? std::to_string(path.reordered()) : "-",
      Share(path.dscp_kept(), path.received()),
      Share(path.ecn_kept() + path.ecn_marked(), path.received()),
      path.tcp_round_trip_median_ns() == 0 ? "-" : Microseconds(path.tcp_round_trip_median_ns()),
      path.tcp_bytes_per_second() == 0 ? "-" : GigabitsPerSecond(path.tcp_bytes_per_second()),
      path.has_clock_ahead_ns() ? ClockText(path.clock_ahead_ns()) : "-"};
}

// Returns a table of the network beside RDMA; empty if no test measured it.
std::string PlainView(const std::vector<TestConnectivityResponse>& tests, size_t limit) {
  Table table;
  table.AddColumn("FROM", Column::kCut);
  table.AddColumn("TO", Column::kCut);
  table.AddColumn("LOST", Column::kRight);
  table.AddColumn("REORDERED", Column::kRight);
  table.AddColumn("DSCP", Column::kLeft);
  table.AddColumn("ECN", Column::kLeft);
  table.AddColumn("TCP-US", Column::kRight);
  table.AddColumn("GBIT/S", Column::kRight);
  table.AddColumn("CLOCK-MS", Column::kRight);
  std::string problems;
  for (const TestConnectivityResponse& test : tests) {
    if (!test.connectivity().has_plain()) continue;
    table.AddRow(PlainCells(test));
    if (!test.connectivity().plain().problem().empty()) {
      problems += "\n" + ShortName(test.from()) + " to " + ShortName(test.to()) +
                  ", beside RDMA:\n" + Wrapped(test.connectivity().plain().problem(), "    ");
    }
  }
  return table.rows() == 0 ? std::string() : "\nbeside RDMA:\n" + table.Text(limit) + problems;
}

}  // namespace

std::string ConnectivityView(const std::vector<TestConnectivityResponse>& tests, bool wide) {
  Table table;
  table.AddColumn("FROM", Column::kCut);
  table.AddColumn("TO", Column::kCut);
  table.AddColumn("RESULT", Column::kLeft);
  table.AddColumn("MIN-US", Column::kRight);
  table.AddColumn("MEDIAN", Column::kRight);
  table.AddColumn("P99", Column::kRight);
  table.AddColumn("GBIT/S", Column::kRight);
  table.AddColumn("TRANSPORT", Column::kLeft);
  if (wide) {
    table.AddColumn("ADDRESS", Column::kLeft);
    table.AddColumn("CONNECT-US", Column::kRight);
    table.AddColumn("WHY", Column::kLeft);
  }
  std::string reasons;
  size_t failed = 0;
  for (const TestConnectivityResponse& test : tests) {
    table.AddRow(Cells(test, wide));
    if (test.has_connectivity()) continue;
    ++failed;
    reasons += "\n" + ShortName(test.from()) + " to " + ShortName(test.to()) + ", seen at " +
               ShortName(test.noticed_at()) + ": " + Word(test.fault()) + "\n" +
               Wrapped(test.message(), "    ");
    // On one line, so that it can be copied.
    if (!test.remedy().empty()) reasons += "    remedy: " + test.remedy() + "\n";
  }
  const size_t limit = wide ? 0 : kLineLimit;
  return table.Text(limit) + PlainView(tests, limit) + reasons + "\n" +
         std::to_string(tests.size() - failed) + " ok, " + std::to_string(failed) + " failed\n";
}

int CodeOf(const std::vector<TestConnectivityResponse>& tests) {
  const bool good = std::ranges::all_of(
      tests, [](const TestConnectivityResponse& test) { return test.has_connectivity(); });
  return good ? kOk : kConditionFalse;
}

}  // namespace rocegw::cli
