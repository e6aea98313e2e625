// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/views/debug_views.h"

#include <algorithm>
#include <map>
#include <sstream>
#include <tuple>
#include <vector>

#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/documents/quantity.h"
#include "controlplane/cli/views/table.h"
#include "controlplane/cli/views/wrapped.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::cli {
namespace {

using gateway::v1::ExplainResponse;
using gateway::v1::Finding;

constexpr size_t kLine = 80;

std::string Ago(int64_t seconds, int64_t now) {
  return seconds == 0 ? "-" : AgeText(std::max<int64_t>(0, now - seconds));
}

const char* HeadOf(gateway::v1::FindingKind kind) {
  switch (kind) {
    case gateway::v1::NOT_READY:
      return "Not fit for work";
    case gateway::v1::TAKES_NOTHING_NEW:
      return "Takes nothing new";
    case gateway::v1::CONFIGURATION_REJECTED:
      return "Configuration that it rejected";
    case gateway::v1::QUEUE_PAIR_FAILED:
      return "Queue pairs that do not work";
    case gateway::v1::LIMIT_REACHED:
      return "Limits that are reached";
    case gateway::v1::REQUEST_REFUSED:
      return "Requests that were refused";
    case gateway::v1::PACKETS_DROPPED:
      return "Packets that were dropped";
    case gateway::v1::PACKETS_LOST:
      return "Packets that were lost";
    default:
      return "Else";
  }
}

auto KeyOf(const Finding& finding) {
  return std::tuple(finding.kind(), finding.object(), finding.reason(),
                    // Refusals of one kind differ by their text.
                    finding.kind() == gateway::v1::REQUEST_REFUSED ? finding.message() : "");
}

}  // namespace

std::string EventsView(const gateway::v1::ListEventsResponse& list, bool wide, int64_t now) {
  std::vector<const types::v1::GatewayEvent*> events;
  for (const auto& event : list.events()) events.push_back(&event);
  std::ranges::stable_sort(events, {}, [](const auto* event) {
    return std::pair(event->last_time().seconds(), event->last_time().nanos());
  });
  if (events.empty()) return "no events\n";
  Table table;
  table.AddColumn("LAST", Column::kRight);
  if (wide) table.AddColumn("FIRST", Column::kRight);
  table.AddColumn("COUNT", Column::kRight);
  table.AddColumn("REASON", Column::kLeft);
  table.AddColumn("OBJECT", Column::kLeft);
  table.AddColumn("MESSAGE", Column::kCut);
  for (const auto* event : events) {
    std::vector<std::string> cells = {Ago(event->last_time().seconds(), now)};
    if (wide) cells.push_back(Ago(event->first_time().seconds(), now));
    cells.insert(cells.end(), {std::to_string(event->count()), event->reason(),
                               ShortName(event->object()), event->message()});
    table.AddRow(std::move(cells));
  }
  return table.Text(wide ? 0 : kLine);
}

std::string PoolUsageView(const gateway::v1::ListPoolsResponse& list, bool wide) {
  if (list.pools().empty()) return "no pools\n";
  Table table;
  table.AddColumn("POOL", Column::kCut);
  table.AddColumn("LIMIT", Column::kLeft);
  table.AddColumn("USED", Column::kRight);
  table.AddColumn("COMMITTED", Column::kRight);
  table.AddColumn("PEAK", Column::kRight);
  table.AddColumn("REFUSED", Column::kRight);
  if (wide) table.AddColumn("SOCKETS", Column::kLeft);
  for (const types::v1::PoolUsage& pool : list.pools()) {
    const std::string name = ShortName(pool.pool()) + (pool.leaving() ? " (leaving)" : "");
    bool first = true;
    const auto add = [&](std::vector<std::string> cells) {
      cells.insert(cells.begin(), first ? name : "");
      if (wide) cells.push_back(first && pool.sockets_size() != 0 ? pool.sockets(0) : "");
      first = false;
      table.AddRow(std::move(cells));
    };
    for (const types::v1::LimitUsage& limit : pool.limits()) {
      if (!wide && limit.used() == 0 && limit.committed() == 0 && limit.refused() == 0) continue;
      const Unit unit = UnitOfField(limit.limit());
      add({limit.limit(), QuantityText(limit.used(), unit), QuantityText(limit.committed(), unit),
           limit.has_peak() ? QuantityText(limit.peak(), unit) : "-",
           std::to_string(limit.refused())});
    }
    if (first) add({"-", "0", "0", "-", "0"});
  }
  return table.Text(wide ? 0 : kLine);
}

std::string ExplanationView(const ExplainResponse& explanation, int64_t now) {
  if (explanation.findings().empty())
    return "nothing was refused or dropped, and nothing is in the way\n";
  std::string text;
  auto kind = gateway::v1::FINDING_KIND_UNSPECIFIED;
  for (const Finding& finding : explanation.findings()) {
    if (finding.kind() != kind) {
      text += (text.empty() ? "" : "\n") + std::string(HeadOf(finding.kind())) + "\n";
      kind = finding.kind();
    }
    text += "  " + ForeignText(ShortName(finding.object()) + "  " + finding.reason());
    if (finding.count() != 0) {
      text += ", " + std::to_string(finding.count()) + (finding.count() == 1 ? " time" : " times");
    }
    if (finding.last_time().seconds() != 0) {
      text += std::string(finding.count() != 0 ? ", last " : ", since ") +
              Ago(finding.last_time().seconds(), now) + (finding.count() != 0 ? " ago" : "");
    }
    text += "\n" + Wrapped(finding.message(), "    ");
  }
  return text;
}

ExplainResponse Between(const ExplainResponse& earlier, const ExplainResponse& later) {
  std::map<decltype(KeyOf(Finding())), uint64_t> before;
  for (const Finding& finding : earlier.findings()) before[KeyOf(finding)] += finding.count();
  ExplainResponse moved;
  *moved.mutable_read_time() = later.read_time();
  for (const Finding& finding : later.findings()) {
    Finding& fresh = *moved.add_findings();
    fresh = finding;
    if (finding.count() == 0) continue;
    const uint64_t then = before[KeyOf(finding)];
    // A lower count means that the gateway was restarted.
    fresh.set_count(finding.count() >= then ? finding.count() - then : finding.count());
    if (fresh.count() == 0) moved.mutable_findings()->RemoveLast();
  }
  return moved;
}

}  // namespace rocegw::cli
