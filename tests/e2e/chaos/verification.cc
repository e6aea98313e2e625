// SPDX-License-Identifier: Apache-2.0
#include "tests/e2e/chaos/verification.h"

#include <poll.h>

#include <fstream>
#include <map>
#include <regex>

#include "controlplane/audit/chain.h"
#include "controlplane/audit/sealer.h"
#include "controlplane/controllers/gateway_config.h"
#include "controlplane/model/stored.h"
#include "controlplane/sync/fleet_follower.h"
#include "rocegw/admin/v1/gateways.grpc.pb.h"
#include "rocegw/admin/v1/operations.pb.h"

namespace rocegw::testing::chaos {
namespace {

using Objects = std::map<std::string, int64_t>;
using std::chrono::steady_clock;

constexpr char kElection[] = "election/housekeeper";

std::vector<store::Entry> ReadAll(store::Store& store, std::string_view prefix) {
  auto range = store.Range({.range = store::KeyRange::Prefix(prefix)});
  if (!range.ok()) GiveUp("the store cannot be read: " + range.status().text());
  return std::move(range->entries);
}

// Who led from which revision on; "": nobody.
StatusOr<std::map<store::Revision, std::string>> ReadTerms(store::Store& store) {
  auto newest = store.Range({.range = store::KeyRange::Key(kElection)});
  if (!newest.ok()) return newest.status();
  std::map<store::Revision, std::string> terms;
  store::BlockingWatch watch(store, store::KeyRange::Key(kElection), 1);
  const store::Revision last =
      newest->entries.empty() ? newest->revision : newest->entries.front().mod_revision;
  while (terms.empty() || terms.rbegin()->first < last) {
    auto next = watch.Next(std::chrono::seconds(2));
    if (!next.ok()) return next.status();
    if (!next->has_value()) break;
    for (const store::Change& change : (*next)->changes)
      terms[(*next)->revision] = change.deleted ? std::string() : change.entry.value;
  }
  return terms;
}

// Peers by name only: their revision is that of a status, which changes without their addresses.
bool IsPeer(const std::string& name, const std::string& gateway) {
  return name.starts_with("gateways/") && name != gateway;
}

Objects Comparable(Objects objects, const std::string& gateway) {
  for (auto& [name, revision] : objects) {
    if (IsPeer(name, gateway)) revision = 0;
  }
  return objects;
}

std::string Difference(const Objects& runs, const Objects& should) {
  std::string text;
  for (const auto& [name, revision] : should) {
    const auto found = runs.find(name);
    if (found == runs.end()) text += " without " + name;
    if (found != runs.end() && found->second != revision)
      text += " " + name + " at " + std::to_string(found->second) + " instead of " +
              std::to_string(revision);
  }
  for (const auto& [name, revision] : runs) {
    if (!should.contains(name)) text += " still " + name;
  }
  return text;
}

}  // namespace

std::string CheckObjects(const Channels& channels, const std::map<std::string, Register>& objects) {
  for (size_t i = 0; i < channels.size(); ++i) {
    for (const auto& [name, object] : objects) {
      uint64_t number = 0;
      const grpc::Status status = ReadObject(channels[i], name, number);
      const std::string at = name + " at controller " + std::to_string(i);
      if (!status.ok()) return at + ": " + status.error_message();
      if (number != object.acknowledged && number != object.attempted)
        return at + " is " + std::to_string(number) + ", acknowledged was " +
               std::to_string(object.acknowledged) + ", attempted " +
               std::to_string(object.attempted);
    }
  }
  return {};
}

std::string CheckAudit(store::Store& store, const std::vector<std::string>& acknowledged) {
  std::map<std::string, int> times;
  for (const store::Entry& entry : ReadAll(store, model::kAuditPrefix)) {
    admin::v1::AuditRecord record;
    if (!record.ParseFromString(entry.value)) return entry.key + " is not an audit record";
    if (!record.request_id().empty()) ++times[record.request_id()];
  }
  for (const auto& [id, count] : times) {
    if (count != 1) return "request " + id + " was done " + std::to_string(count) + " times";
  }
  for (const std::string& id : acknowledged) {
    if (!times.contains(id)) return "request " + id + " was acknowledged and has no audit record";
  }
  return {};
}

std::string CheckReconciler(store::Store& store, const Logs& logs, size_t& seals, size_t& terms) {
  std::vector<controlplane::v1::AuditSeal> chain;
  std::map<std::string, store::Revision> written;  // by head: at which revision
  for (const store::Entry& entry : ReadAll(store, audit::kSealPrefix)) {
    auto& seal = chain.emplace_back();
    if (!seal.ParseFromString(entry.value)) return entry.key + " is not a seal";
    if (entry.create_revision != entry.mod_revision) return entry.key + " was written twice";
    written[audit::HeadOf(seal)] = entry.mod_revision;
  }
  seals = chain.size();
  std::vector<audit::Digested> records;
  for (const store::Entry& entry : ReadAll(store, model::kAuditPrefix))
    records.push_back(audit::DigestOf(entry));
  const audit::Verdict verdict = audit::Verify(chain, std::move(records), {});
  if (!verdict.problem.empty()) return "the audit's chain: " + verdict.problem;

  auto led = ReadTerms(store);
  if (!led.ok()) return "the election's history: " + led.status().text();
  terms = 0;
  for (const auto& [revision, leader] : *led) terms += leader.empty() ? 0 : 1;
  const auto leader_at = [&](store::Revision revision) {
    auto at = led->upper_bound(revision);
    return at == led->begin() ? std::string() : std::prev(at)->second;
  };
  for (const auto& [head, revision] : written) {
    if (leader_at(revision).empty())
      return "seal " + head + " was made at revision " + std::to_string(revision) +
             ", when nobody led";
  }
  const std::regex sealed("sealed, head (r[0-9]+:[0-9a-f]+)");
  for (size_t i = 0; i < logs.files.size(); ++i) {
    std::ifstream file(logs.files[i]);
    for (std::string line; std::getline(file, line);) {
      std::smatch match;
      if (!std::regex_search(line, match, sealed)) continue;
      const auto seal = written.find(match[1]);
      if (seal == written.end())
        return "controller " + std::to_string(i) + " told of " + std::string(match[1]) +
               ", which is not there";
      const std::string leader = leader_at(seal->second);
      bool is_ours = false;
      for (const auto& [pid, controller] : logs.processes)
        is_ours =
            is_ours || (controller == i && leader.ends_with(" process " + std::to_string(pid)));
      if (!is_ours)
        return "controller " + std::to_string(i) + " made seal " + std::string(match[1]) +
               " while '" + leader + "' led";
    }
  }
  return {};
}

std::string AwaitConvergence(store::Store& store, AgentFleet& agents, std::chrono::seconds patience,
                             double& seconds) {
  auto follower = sync::FleetFollower::Start(store);
  if (!follower.ok()) return "the store cannot be followed: " + follower.status().text();
  const auto began = steady_clock::now();
  std::string problem;
  do {
    problem = {};
    size_t behind = 0;
    std::map<std::string, size_t> behind_by_controller;
    for (size_t i = 0; i < agents.size(); ++i) {
      const std::string name = AgentFleet::NameOf(i);
      Objects should;
      bool connected = false;
      std::string controller;
      (*follower)->Read([&](const sync::Fleet& fleet) {
        const types::v1::GatewayState& status = fleet.view.gateways.at(name).object.status();
        connected = status.connected();
        controller = status.controller();
        for (const auto& object : controllers::FullConfig(fleet.view, fleet.placement, name))
          should[object.name()] = object.revision();
      });
      should = Comparable(std::move(should), name);
      const Objects runs = Comparable(agents.gateway(i).Objects(), name);
      if (runs == should && connected) continue;
      ++behind_by_controller[controller];
      if (behind++ == 0)
        problem =
            name + (connected ? " runs" : " is not connected, runs") + Difference(runs, should);
    }
    seconds = std::chrono::duration<double>(steady_clock::now() - began).count();
    if (behind == 0) return {};
    problem += " (and " + std::to_string(behind - 1) + " more)";
    for (const auto& [controller, count] : behind_by_controller)
      problem += "; of controller " + controller + ": " + std::to_string(count);
    ::poll(nullptr, 0, 100);  // looked at ten times a second
  } while (steady_clock::now() - began < patience);
  return problem;
}

std::string Standing(const Channels& channels) {
  std::string text;
  for (size_t i = 0; i < channels.size(); ++i) {
    admin::v1::GetFleetProgressResponse progress;
    const grpc::Status status = admin::v1::Gateways::NewStub(channels[i])
                                    ->GetFleetProgress(PatientContext().get(), {}, &progress);
    text += "controller " + std::to_string(i) + ": " +
            (status.ok() ? progress.ShortDebugString() : status.error_message()) + "\n";
  }
  return text;
}

}  // namespace rocegw::testing::chaos
