// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/plan/planner.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>
#include <set>

#include "controlplane/migration/plan/gate.h"

namespace rocegw::migration {
namespace {

constexpr size_t kMostProblems = 20;

bool IsRoce(Transport transport) { return transport != Transport::kTcp; }

// Returns true if peers with both transports understand each other while the migration runs.
// Gateways and RNICs speak the same protocol, so that any system mixes those two.
bool Mixes(SystemClass system_class, Transport from, Transport to) {
  if (IsRoce(from) && IsRoce(to)) return true;
  return system_class == SystemClass::kNegotiated || system_class == SystemClass::kDualPath;
}

// Major and minor number of a version.
std::optional<std::pair<int, int>> ReadVersion(const std::string& text) {
  int major = 0;
  int minor = 0;
  const char* const end = text.data() + text.size();
  const auto first = std::from_chars(text.data(), end, major);
  if (first.ec != std::errc() || first.ptr == end || *first.ptr != '.') return std::nullopt;
  if (std::from_chars(first.ptr + 1, end, minor).ec != std::errc()) return std::nullopt;
  return std::pair(major, minor);
}

class Planner {
 public:
  Planner(const Inventory& inventory, const PlanRequest& request)
      : inventory_(inventory), request_(request) {}

  PlanResult Make() {
    Plan& plan = result_.plan;
    plan.name = request_.name;
    plan.cluster = inventory_.cluster;
    plan.adapter = inventory_.adapter;
    plan.inventory_hash = HashOf(inventory_);
    plan.target = request_.target;
    plan.system_class = inventory_.system_class;
    plan.per_domain = request_.per_domain;
    plan.knobs = request_.knobs;
    plan.gates = request_.gates;
    plan.restarts = inventory_.system_class == SystemClass::kFlagDay ||
                    inventory_.system_class == SystemClass::kPerClient;
    if (!IsName(plan.name)) Problem("the plan's name must be letters, digits, and -._:");
    CheckKnobs();
    TakeNodes();
    CheckVersions();
    CheckClients();
    ChooseProcedure();
    if (result_.problems.empty()) MakeWaves();
    if (!result_.problems.empty()) plan = Plan();
    return std::move(result_);
  }

 private:
  void Problem(std::string text) {
    if (result_.problems.size() < kMostProblems) result_.problems.push_back(std::move(text));
  }
  void Note(std::string text) { result_.plan.notes.push_back(std::move(text)); }

  void CheckKnobs() {
    const Knobs& knobs = request_.knobs;
    if (knobs.max_unavailable == 0) Problem("max-unavailable must be at least 1");
    if ((knobs.window_begin == 0) != (knobs.window_end == 0) ||
        knobs.window_end < knobs.window_begin)
      Problem("a change window needs a begin and a later end");
    if (request_.gates.size() > kMostGates)
      Problem("at most " + std::to_string(kMostGates) + " gates");
    for (const std::string& gate : request_.gates) {
      std::string problem;
      (void)ReadGate(gate, problem);
      if (!problem.empty()) Problem("gate " + gate + ": " + problem);
    }
    if (request_.waves.empty()) Problem("no waves");
  }

  void TakeNodes() {
    for (const InventoryNode& node : inventory_.nodes) {
      if (node.transport == request_.target) {
        result_.plan.skipped.push_back(node.name);
        continue;
      }
      if (request_.target == Transport::kGateway && !node.has_gateway)
        Problem(node.name + " has no gateway");
      if (request_.target == Transport::kRnic && !node.has_rnic)
        Problem(node.name + " has no RNIC");
      PlannedNode planned{
          .name = node.name, .domain = {}, .from = node.transport, .quorum = node.quorum};
      if (!request_.per_domain.empty()) {
        const auto domain = node.domains.find(request_.per_domain);
        if (domain == node.domains.end()) {
          Problem(node.name + " has no domain '" + request_.per_domain + "'");
        } else {
          planned.domain = domain->second;
        }
      }
      result_.plan.nodes.push_back(std::move(planned));
    }
    if (result_.plan.nodes.empty() && result_.problems.empty())
      Problem("every node has the transport " + std::string(WordOf(request_.target)) + " already");
  }

  // Gateways of one migration are at most one minor version apart, the window that upgrades need.
  void CheckVersions() {
    std::optional<std::pair<int, int>> oldest;
    std::optional<std::pair<int, int>> newest;
    for (const InventoryNode& node : inventory_.nodes) {
      if (node.gateway_version.empty()) continue;
      const auto version = ReadVersion(node.gateway_version);
      if (!version.has_value()) {
        Problem(node.name + " has a gateway of an unknown version");
        continue;
      }
      if (!oldest.has_value() || *version < *oldest) {
        oldest = version;
        result_.plan.oldest_version = node.gateway_version;
      }
      if (!newest.has_value() || *version > *newest) {
        newest = version;
        result_.plan.newest_version = node.gateway_version;
      }
    }
    if (!oldest.has_value()) return;
    if (oldest->first != newest->first || newest->second - oldest->second > 1) {
      Problem("gateways have versions " + result_.plan.oldest_version + " to " +
              result_.plan.newest_version + ": more than one minor version apart; upgrade first");
    }
  }

  void CheckClients() {
    std::map<std::string_view, PlannedNode*> nodes;
    for (PlannedNode& node : result_.plan.nodes) nodes[node.name] = &node;
    size_t pinned = 0;
    for (const InventoryClient& client : inventory_.clients) {
      const bool touched =
          client.nodes.empty() ||
          std::ranges::any_of(client.nodes, [&](const auto& name) { return nodes.contains(name); });
      if (!touched || client.kind == ClientKind::kSwitched) continue;
      if (client.kind == ClientKind::kUnknown) {
        Problem("it is not known whether client " + client.name +
                " can move; say switched or pinned");
        continue;
      }
      ++pinned;
      if (result_.plan.restarts && request_.target != Transport::kTcp && !RoceOnly()) {
        Problem("client " + client.name + " is pinned to TCP, and a system of class " +
                std::string(WordOf(inventory_.system_class)) + " has one transport for all peers");
        continue;
      }
      for (auto& [name, node] : nodes) {
        node->keeps_old = node->keeps_old || client.nodes.empty() ||
                          std::ranges::find(client.nodes, name) != client.nodes.end();
      }
    }
    if (pinned != 0 && result_.problems.empty())
      Note(std::to_string(pinned) + " clients are pinned: the old path of their nodes stays");
  }

  // Returns true if every node is on RoCE already, and stays there.
  bool RoceOnly() const {
    return IsRoce(request_.target) && std::ranges::all_of(inventory_.nodes, [](const auto& node) {
             return IsRoce(node.transport);
           });
  }

  void ChooseProcedure() {
    const bool mixes = std::ranges::all_of(result_.plan.nodes, [&](const PlannedNode& node) {
      return Mixes(inventory_.system_class, node.from, request_.target);
    });
    if (mixes) return;
    result_.plan.flag_day = true;
    if (!request_.allow_flag_day) {
      Problem(
          "peers with " + std::string(WordOf(request_.target)) +
          " and with the old transport do not understand each other: this is a flag day, a window "
          "without service for the whole cluster; ask for it (--flag-day)");
    }
    if (!result_.plan.skipped.empty()) {
      Problem(result_.plan.skipped.front() +
              " has the new transport already, and the others cannot talk to it");
    }
    if (request_.waves.size() > 1) Problem("a flag day has one wave: --waves all=100%");
  }

  // Canaries come from nodes without a vote; then domain by domain, so that a wave touches few.
  void MakeWaves() {
    Plan& plan = result_.plan;
    std::vector<uint32_t> order(plan.nodes.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::ranges::stable_sort(order, [&](uint32_t a, uint32_t b) {
      const PlannedNode& left = plan.nodes[a];
      const PlannedNode& right = plan.nodes[b];
      return std::tie(left.quorum, left.domain) < std::tie(right.quorum, right.domain);
    });
    const std::vector<uint32_t> counts =
        CountsOf(request_.waves, static_cast<uint32_t>(order.size()));
    auto next = order.begin();
    for (size_t i = 0; i < counts.size(); ++i) {
      if (counts[i] == 0) continue;
      plan.waves.push_back({request_.waves[i].name, {next, next + counts[i]}});
      next += counts[i];
    }
    if (plan.flag_day) Note("flag day: the whole cluster is out of service while it changes");
    if (!plan.skipped.empty())
      Note(std::to_string(plan.skipped.size()) + " nodes have the transport already");
  }

  const Inventory& inventory_;
  const PlanRequest& request_;
  PlanResult result_;
};

}  // namespace

PlanResult MakePlan(const Inventory& inventory, const PlanRequest& request) {
  return Planner(inventory, request).Make();
}

}  // namespace rocegw::migration
