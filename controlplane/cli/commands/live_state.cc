// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/commands/live_state.h"

#include <algorithm>
#include <array>
#include <iostream>

#include "controlplane/cli/client/state_client.h"
#include "controlplane/cli/documents/documents.h"
#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/views/debug_views.h"
#include "controlplane/cli/views/describe.h"
#include "controlplane/cli/views/state_views.h"

namespace rocegw::cli {
namespace {

// Rows of each table in `status`.
constexpr size_t kStatusRows = 20;

constexpr std::array<std::pair<std::string_view, std::string_view>, 15> kNouns = {
    {{"sessions", "sessions"},
     {"session", "sessions"},
     {"qps", "qps"},
     {"qp", "qps"},
     {"connections", "connections"},
     {"connection", "connections"},
     {"channels", "channels"},
     {"channel", "channels"},
     {"mrs", "mrs"},
     {"mr", "mrs"},
     {"srqs", "srqs"},
     {"srq", "srqs"},
     {"counters", "counters"},
     {"events", "events"},
     {"event", "events"}}};

std::string_view LiveNoun(const std::string& noun) {
  for (const auto& [word, plural] : kNouns) {
    if (noun == word) return plural;
  }
  return {};
}

template <typename List, typename Rows, typename View>
int PrintList(const Program& program, const List& list, const Rows& rows, View view) {
  if (program.options.format == "name") {
    for (const auto& row : rows) std::cout << row.name() << "\n";
  } else if (!PrintDocument(program, list)) {
    std::cout << view(list, {program.wide(), 0, ""});
  }
  return kOk;
}

// Prints rows by the last part of their names, or the full name; all rows without names.
template <typename Rows>
int DescribeRows(const Program& program, const Rows& rows, const std::vector<std::string>& names) {
  std::vector<std::string> missing = names;
  bool first = true;
  for (const auto& row : rows) {
    const std::string& name = row.name();
    const std::string brief = name.substr(name.rfind('/') + 1);
    const auto asked = std::ranges::find_if(
        missing, [&](const std::string& text) { return text == name || text == brief; });
    if (!names.empty() && asked == missing.end()) continue;
    if (asked != missing.end()) missing.erase(asked);
    if (program.options.format == "name") {
      std::cout << name << "\n";
    } else if (!PrintDocument(program, row)) {
      std::cout << (first ? "" : "\n") << Description(row, Program::Now());
    }
    first = false;
  }
  if (missing.empty()) return kOk;
  return Fail({kNotFound, "the gateway has no " + missing.front(), {}});
}

}  // namespace

CallResult OpenGateway(Program& program, const std::string& gateway, std::string& name) {
  if (!gateway.empty()) {
    if (auto result = program.OpenController(); !result.ok()) return result;
    return FullName(*FindKind("gateways"), gateway, {}, name);
  }
  if (auto result = program.Open(); !result.ok()) return result;
  if (program.is_gateway()) return {};
  return {kUsage, "of which gateway? --gateway NAME, or --local for the one on this host", {}};
}

bool IsLiveNoun(const std::string& noun) { return !LiveNoun(noun).empty(); }

int GetLive(Program& program, const std::string& noun, const LiveQuery& query) {
  std::string name;
  if (auto result = OpenGateway(program, query.gateway, name); !result.ok()) return Fail(result);
  StateClient client(program.rpc(), name);
  const std::string_view kind = LiveNoun(noun);
  if (kind == "sessions") {
    gateway::v1::ListSessionsResponse list;
    if (auto result = client.ListSessions(list); !result.ok()) return Fail(result);
    return PrintList(program, list, list.sessions(), SessionsView);
  }
  if (kind == "qps") {
    gateway::v1::ListQpsResponse list;
    if (auto result = client.ListQps(list); !result.ok()) return Fail(result);
    return PrintList(program, list, list.qps(), QpsView);
  }
  if (kind == "connections") {
    gateway::v1::ListConnectionsResponse list;
    if (auto result = client.ListConnections(list); !result.ok()) return Fail(result);
    return PrintList(program, list, list.connections(), ConnectionsView);
  }
  if (kind == "channels") {
    gateway::v1::ListChannelsResponse list;
    if (auto result = client.ListChannels(list); !result.ok()) return Fail(result);
    return PrintList(program, list, list.channels(), ChannelsView);
  }
  if (kind == "mrs") {
    gateway::v1::ListMrsResponse list;
    if (auto result = client.ListMrs(list); !result.ok()) return Fail(result);
    return PrintList(program, list, list.mrs(), MrsView);
  }
  if (kind == "srqs") {
    gateway::v1::ListSrqsResponse list;
    if (auto result = client.ListSrqs(list); !result.ok()) return Fail(result);
    return PrintList(program, list, list.srqs(), SrqsView);
  }
  if (kind == "events") {
    gateway::v1::ListEventsResponse list;
    if (auto result = client.ListEvents(list); !result.ok()) return Fail(result);
    if (program.options.format == "name") {
      for (const auto& event : list.events())
        std::cout << event.object() << " " << event.reason() << "\n";
    } else if (!PrintDocument(program, list)) {
      std::cout << EventsView(list, program.wide(), Program::Now());
    }
    return kOk;
  }
  if (noun.starts_with("po")) {
    gateway::v1::ListPoolsResponse list;
    if (auto result = client.ListPools(list); !result.ok()) return Fail(result);
    if (program.options.format == "name") {
      for (const auto& pool : list.pools()) std::cout << pool.pool() << "\n";
    } else if (!PrintDocument(program, list)) {
      std::cout << PoolUsageView(list, program.wide());
    }
    return kOk;
  }
  gateway::v1::GetCountersResponse counters;
  if (auto result = client.GetCounters(counters); !result.ok()) return Fail(result);
  return PrintList(program, counters, counters.counters(),
                   [&](const auto& list, const ViewOptions& options) {
                     return CountersView(list, options.wide, query.all_counters);
                   });
}

int DescribeLive(Program& program, const std::string& noun, const std::vector<std::string>& names,
                 const LiveQuery& query) {
  std::string name;
  if (auto result = OpenGateway(program, query.gateway, name); !result.ok()) return Fail(result);
  StateClient client(program.rpc(), name);
  const std::string_view kind = LiveNoun(noun);
  if (kind == "qps") {
    gateway::v1::ListQpsResponse list;
    if (auto result = client.ListQps(list); !result.ok()) return Fail(result);
    return DescribeRows(program, list.qps(), names);
  }
  if (kind == "connections") {
    gateway::v1::ListConnectionsResponse list;
    if (auto result = client.ListConnections(list); !result.ok()) return Fail(result);
    return DescribeRows(program, list.connections(), names);
  }
  if (kind == "channels") {
    gateway::v1::ListChannelsResponse list;
    if (auto result = client.ListChannels(list); !result.ok()) return Fail(result);
    return DescribeRows(program, list.channels(), names);
  }
  if (kind == "sessions") {
    gateway::v1::ListSessionsResponse list;
    if (auto result = client.ListSessions(list); !result.ok()) return Fail(result);
    return DescribeRows(program, list.sessions(), names);
  }
  if (kind == "mrs") {
    gateway::v1::ListMrsResponse list;
    if (auto result = client.ListMrs(list); !result.ok()) return Fail(result);
    return DescribeRows(program, list.mrs(), names);
  }
  if (kind == "srqs") {
    gateway::v1::ListSrqsResponse list;
    if (auto result = client.ListSrqs(list); !result.ok()) return Fail(result);
    return DescribeRows(program, list.srqs(), names);
  }
  return Fail(
      {kUsage,
       "of one gateway there are to describe: sessions, qps, connections, channels, mrs, srqs",
       {}});
}

int ShowGatewayStatus(Program& program, const LiveQuery& query) {
  std::string name;
  if (auto result = OpenGateway(program, query.gateway, name); !result.ok()) return Fail(result);
  StateClient client(program.rpc(), name);
  types::v1::GatewayStatus status;
  gateway::v1::ListSessionsResponse sessions;
  gateway::v1::ListQpsResponse qps;
  gateway::v1::ListMrsResponse mrs;
  gateway::v1::GetCountersResponse counters;
  if (auto result = client.GetStatus(status); !result.ok()) return Fail(result);
  const int code = status.ready() ? kOk : kConditionFalse;
  if (program.options.format == "name") {
    std::cout << status.name() << "\n";
    return code;
  }
  if (auto result = client.ListSessions(sessions); !result.ok()) return Fail(result);
  // Only workers know queue pairs. If one hangs, the other data is needed even more.
  const CallResult of_workers = client.ListQps(qps);
  if (auto result = client.ListMrs(mrs); !result.ok()) return Fail(result);
  if (auto result = client.GetCounters(counters); !result.ok()) return Fail(result);
  if (!of_workers.ok() && !program.is_table()) return Fail(of_workers);
  const NamedMessages all = {{"gateway", &status},
                             {"sessions", &sessions},
                             {"qps", &qps},
                             {"mrs", &mrs},
                             {"counters", &counters}};
  if (PrintDocument(program, all)) return code;
  const bool wide = program.wide();
  const std::string of = query.gateway.empty() ? "" : " --gateway " + ShortName(name);
  std::cout << StatusView(status, wide);
  if (sessions.sessions_size() > 0) {
    std::cout << "\n" << SessionsView(sessions, {wide, kStatusRows, "rocegwctl get sessions" + of});
  }
  if (qps.qps_size() > 0) {
    std::cout << "\n" << QpsView(qps, {wide, kStatusRows, "rocegwctl get qps" + of});
  }
  if (mrs.mrs_size() > 0) {
    std::cout << "\n" << MrsView(mrs, {wide, kStatusRows, "rocegwctl get mrs" + of});
  }
  std::cout << "\n" << CountersView(counters, wide, false);
  return of_workers.ok() ? code : Fail(of_workers);
}

}  // namespace rocegw::cli
