// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/commands/live_state.h"

#include <algorithm>
#include <iostream>
#include <memory>

#include "controlplane/cli/client/state_client.h"
#include "controlplane/cli/documents/documents.h"
#include "controlplane/cli/documents/kinds.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/views/debug_views.h"
#include "controlplane/cli/views/describe.h"
#include "controlplane/cli/views/state_lists.h"
#include "controlplane/cli/views/state_views.h"
#include "gateway/base/foreign_text.h"

namespace rocegw::cli {
namespace {

using google::protobuf::Message;

// Rows of each table in `status`.
constexpr size_t kStatusRows = 20;

// Other nouns of the same commands.
bool IsEvents(const std::string& noun) { return noun == "events" || noun == "event"; }
bool IsCounters(const std::string& noun) { return noun == "counters"; }

int PrintList(const Program& program, const StateList& kind, const Message& list) {
  if (program.options.format == "name") {
    for (const Message* row : RowsOf(list)) std::cout << ForeignText(NameOfRow(*row)) << "\n";
  } else if (!PrintDocument(program, list)) {
    std::cout << kind.view(list, {program.wide(), 0, ""});
  }
  return kOk;
}

// Prints rows by the last part of their names, or the full name; all rows without names.
int DescribeRows(const Program& program, const Message& list,
                 const std::vector<std::string>& names) {
  std::vector<std::string> missing = names;
  bool first = true;
  for (const Message* row : RowsOf(list)) {
    const std::string name = NameOfRow(*row);
    const std::string brief = name.substr(name.rfind('/') + 1);
    const auto asked = std::ranges::find_if(
        missing, [&](const std::string& text) { return text == name || text == brief; });
    if (!names.empty() && asked == missing.end()) continue;
    if (asked != missing.end()) missing.erase(asked);
    if (program.options.format == "name") {
      std::cout << ForeignText(name) << "\n";
    } else if (!PrintDocument(program, *row)) {
      std::cout << (first ? "" : "\n") << Description(*row, Program::Now());
    }
    first = false;
  }
  if (missing.empty()) return kOk;
  return Fail({kNotFound, "the gateway has no " + missing.front(), {}});
}

int PrintEvents(const Program& program, StateClient& client) {
  gateway::v1::ListEventsResponse list;
  if (auto result = client.List(list); !result.ok()) return Fail(result);
  if (program.options.format == "name") {
    for (const auto& event : list.events())
      std::cout << ForeignText(event.object() + " " + event.reason()) << "\n";
  } else if (!PrintDocument(program, list)) {
    std::cout << EventsView(list, program.wide(), Program::Now());
  }
  return kOk;
}

int PrintPools(const Program& program, StateClient& client) {
  gateway::v1::ListPoolsResponse list;
  if (auto result = client.List(list); !result.ok()) return Fail(result);
  if (program.options.format == "name") {
    for (const auto& pool : list.pools()) std::cout << ForeignText(pool.pool()) << "\n";
  } else if (!PrintDocument(program, list)) {
    std::cout << PoolUsageView(list, program.wide());
  }
  return kOk;
}

int PrintCounters(const Program& program, StateClient& client, bool all) {
  gateway::v1::GetCountersResponse counters;
  if (auto result = client.GetCounters(counters); !result.ok()) return Fail(result);
  if (program.options.format == "name") {
    for (const auto& counter : counters.counters())
      std::cout << ForeignText(counter.name()) << "\n";
  } else if (!PrintDocument(program, counters)) {
    std::cout << CountersView(counters, program.wide(), all);
  }
  return kOk;
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

bool IsLiveNoun(const std::string& noun) {
  return FindStateList(noun) != nullptr || IsEvents(noun) || IsCounters(noun);
}

int GetLive(Program& program, const std::string& noun, const LiveQuery& query) {
  std::string name;
  if (auto result = OpenGateway(program, query.gateway, name); !result.ok()) return Fail(result);
  StateClient client(program.rpc(), name);
  if (const StateList* const kind = FindStateList(noun)) {
    const std::unique_ptr<Message> list = kind->make();
    if (auto result = client.List(*list); !result.ok()) return Fail(result);
    return PrintList(program, *kind, *list);
  }
  if (IsEvents(noun)) return PrintEvents(program, client);
  if (noun.starts_with("po")) return PrintPools(program, client);
  return PrintCounters(program, client, query.all_counters);
}

int DescribeLive(Program& program, const std::string& noun, const std::vector<std::string>& names,
                 const LiveQuery& query) {
  std::string name;
  if (auto result = OpenGateway(program, query.gateway, name); !result.ok()) return Fail(result);
  StateClient client(program.rpc(), name);
  if (const StateList* const kind = FindStateList(noun)) {
    const std::unique_ptr<Message> list = kind->make();
    if (auto result = client.List(*list); !result.ok()) return Fail(result);
    return DescribeRows(program, *list, names);
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
    std::cout << ForeignText(status.name()) << "\n";
    return code;
  }
  if (auto result = client.List(sessions); !result.ok()) return Fail(result);
  // Only workers know queue pairs. If one hangs, the other data is needed even more.
  const CallResult of_workers = client.List(qps);
  if (auto result = client.List(mrs); !result.ok()) return Fail(result);
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
