// SPDX-License-Identifier: Apache-2.0
// get, describe, watch.
#include <iostream>

#include "controlplane/cli/commands/live_state.h"
#include "controlplane/cli/printing.h"
#include "controlplane/cli/program.h"
#include "controlplane/cli/views/describe.h"
#include "controlplane/cli/views/object_views.h"

namespace rocegw::cli {
namespace {

constexpr char kKinds[] =
    "\nKinds: tenants (t), pools (po), ccPolicies (cc), gateways (gw),\n"
    "roleBindings (rb), operations (op), donors (do) of memory";

struct Query {
  std::string noun;
  std::vector<std::string> names;
  std::string tenant;
  std::string selector;
  bool watch = false;
  LiveQuery live;
};

CallResult UnknownNoun(const std::string& noun) {
  return {
      kUsage,
      (noun.empty() ? "which kind?" : "no kind is called '" + noun + "';") + " there are " +
          KnownKinds() +
          "; of one gateway: sessions, qps, connections, channels, mrs, srqs, counters, events, "
          "pools",
      {}};
}

// A name such as "pools/..." selects the kind, as `-o name` prints it: "pool blue/web" is
// tenants/blue/pools/web.
const Kind* KindOf(Query& query) {
  const Kind* kind = FindKind(query.noun);
  if (kind == nullptr && query.names.empty()) {
    kind = KindOfName(query.noun);
    if (kind != nullptr) query.names = {query.noun};
  }
  return kind;
}

std::string ParentOf(const Kind& kind, const Query& query) {
  if (kind.parent == "gateways")
    return query.live.gateway.empty() ? "" : "gateways/" + ShortName(query.live.gateway);
  return query.tenant.empty() ? "" : "tenants/" + ShortName(query.tenant);
}

CallResult Fetch(Program& program, const Kind& kind, const Query& query,
                 std::vector<MessagePtr>& out) {
  if (auto result = program.OpenController(); !result.ok()) return result;
  ObjectsClient client = program.objects();
  if (query.names.empty()) {
    ObjectList list;
    CallResult result = client.List(kind, ParentOf(kind, query), query.selector, list);
    out = std::move(list.objects);
    return result;
  }
  for (const std::string& text : query.names) {
    std::string name;
    if (auto result = FullName(kind, text, query.tenant, name); !result.ok()) return result;
    if (auto result = client.Get(kind, name, out.emplace_back()); !result.ok()) return result;
  }
  return {};
}

void PrintChange(const Program& program, const Kind& kind, const Change& change, Table& table) {
  const std::string& format = program.options.format;
  const MessagePtr gone = NewMessage(kind.object);
  SetText(*gone, "name", change.deleted);
  const auto& object = change.object == nullptr ? *gone : *change.object;
  if (format == "json" || format == "yaml") {
    if (format == "yaml") std::cout << "---\n";
    std::cout << ChangeJson(change.object == nullptr ? "deleted" : "changed", object);
  } else if (format == "name") {
    std::cout << TextOf(object, "name") << "\n";
  } else if (change.object == nullptr) {
    AddDeleted(kind, change.deleted, program.wide(), table);
  } else {
    AddObject(kind, object, program.wide(), Program::Now(), table);
  }
}

// Prints the existing objects, then every change, until interrupted.
int Watch(Program& program, Query query) {
  const Kind* const kind = KindOf(query);
  if (kind == nullptr) return Fail(UnknownNoun(query.noun));
  if (auto result = program.OpenController(); !result.ok()) return Fail(result);
  std::vector<std::string> wanted;
  for (const std::string& text : query.names) {
    if (auto result = FullName(*kind, text, query.tenant, wanted.emplace_back()); !result.ok()) {
      return Fail(result);
    }
  }
  Table table = ObjectTable(*kind, program.wide());
  bool synced = false;
  const auto flush = [&] {
    if (table.rows() != 0) {
      std::cout << table.NextText(program.line_limit(), Program::colour());
    }
    std::cout.flush();
  };
  const CallResult result = program.objects().Watch(
      *kind, ParentOf(*kind, query), query.selector, 0,
      [&](const Change& change) {
        const std::string name =
            change.object == nullptr ? change.deleted : TextOf(*change.object, "name");
        if (!wanted.empty() && std::ranges::count(wanted, name) == 0) return true;
        PrintChange(program, *kind, change, table);
        // The initial objects form one table.
        if (synced) flush();
        return std::cout.good();
      },
      [&] {
        synced = true;
        flush();
      });
  return result.ok() ? kOk : Fail(result);
}

int Get(Program& program, Query query) {
  if (IsLiveNoun(query.noun)) return GetLive(program, query.noun, query.live);
  // Pools as one gateway has them.
  if (FindKind(query.noun) == FindKind("pools") && query.names.empty() && !query.watch &&
      (!query.live.gateway.empty() || program.options.choice.local ||
       !program.options.choice.gateway_socket.empty())) {
    return GetLive(program, "pools", query.live);
  }
  if (query.watch) return Watch(program, query);
  const Kind* const kind = KindOf(query);
  if (kind == nullptr) return Fail(UnknownNoun(query.noun));
  std::vector<MessagePtr> objects;
  if (auto result = Fetch(program, *kind, query, objects); !result.ok()) return Fail(result);
  PrintObjects(program, *kind, objects, query.names.size() == 1);
  return kOk;
}

int Describe(Program& program, Query query) {
  if (IsLiveNoun(query.noun)) return DescribeLive(program, query.noun, query.names, query.live);
  const Kind* const kind = KindOf(query);
  if (kind == nullptr) return Fail(UnknownNoun(query.noun));
  std::vector<MessagePtr> objects;
  if (auto result = Fetch(program, *kind, query, objects); !result.ok()) return Fail(result);
  if (!program.is_table() || objects.empty()) {
    PrintObjects(program, *kind, objects, query.names.size() == 1);
    return kOk;
  }
  for (size_t i = 0; i < objects.size(); ++i) {
    std::cout << (i == 0 ? "" : "\n") << Description(*objects[i], Program::Now());
  }
  return kOk;
}

void AddQuery(CLI::App& command, Query& query) {
  command.add_option("KIND", query.noun, "plural, singular or short: see below");
  command.add_option("NAME", query.names, "all when none is given; TENANT/POOL, GATEWAY/DONOR");
  command.add_option("-t,--tenant", query.tenant, "only what belongs to this tenant")
      ->type_name("TENANT");
  command.add_option("-l,--selector", query.selector, "by labels: key=value,key!=value,key,!key")
      ->type_name("LABELS");
}

}  // namespace

void AddReadCommands(CLI::App& app, Program& program) {
  const auto query = std::make_shared<Query>();
  CLI::App* const get = program.Add(
      app, "get", "objects as a table; what one gateway holds",
      "  rocegwctl get tenants\n"
      "  rocegwctl get pools --tenant blue -o wide\n"
      "  rocegwctl get pool blue/web -o yaml > web.yaml\n"
      "  rocegwctl get gateways --selector zone=a --watch\n"
      "  rocegwctl get qps --gateway host-a\n"
      "  rocegwctl --local get counters --all" +
          std::string(kKinds) +
          ";\nof one gateway: sessions, qps, connections, channels, mrs (and windows),\n"
          "srqs, counters, events, and pools as it has them.",
      [&program, query] { return Get(program, *query); });
  AddQuery(*get, *query);
  get->add_flag("-w,--watch", query->watch, "go on with every change");
  get->add_option("-g,--gateway", query->live.gateway, "what this gateway holds")
      ->type_name("NAME");
  get->add_flag("--all", query->live.all_counters, "counters: also those that are zero");

  CLI::App* const describe =
      program.Add(app, "describe", "everything about objects, for reading",
                  "  rocegwctl describe pool blue/web\n"
                  "  rocegwctl describe gateway host-a host-b\n"
                  "  rocegwctl describe qp 0x04b2c1 --gateway host-a" +
                      std::string(kKinds) +
                      ";\nof one gateway: sessions, qps, connections, channels, mrs, srqs.",
                  [&program, query] { return Describe(program, *query); });
  AddQuery(*describe, *query);
  describe->add_option("-g,--gateway", query->live.gateway, "what this gateway holds")
      ->type_name("NAME");

  CLI::App* const watch =
      program.Add(app, "watch", "objects, then every change of them",
                  "  rocegwctl watch gateways\n"
                  "  rocegwctl watch pools --tenant blue -o json | jq .object.status\n"
                  "  rocegwctl watch operations\n"
                  "Kinds: those of get.",
                  [&program, query] { return Watch(program, *query); });
  AddQuery(*watch, *query);
}

}  // namespace rocegw::cli
