// SPDX-License-Identifier: Apache-2.0
#include "controlplane/cli/migrate/inventory_view.h"

#include <algorithm>
#include <map>
#include <string>
#include <vector>

#include "controlplane/cli/views/table.h"

namespace rocegw::cli {
namespace {

using migration::ClientKind;
using migration::Inventory;
using migration::InventoryClient;
using migration::InventoryNode;
using migration::Transport;
using migration::WordOf;

// Returns "3 tcp, 1 gateway".
std::string CountsText(const std::map<std::string, size_t>& counts) {
  std::vector<std::string> parts;
  for (const auto& [word, count] : counts) parts.push_back(std::to_string(count) + " " + word);
  return Joined(parts, ", ");
}

// Transports that the node could have instead.
std::string TargetsText(const InventoryNode& node) {
  std::vector<std::string> targets;
  if (node.transport != Transport::kTcp) targets.emplace_back(WordOf(Transport::kTcp));
  if (node.transport != Transport::kGateway && node.has_gateway)
    targets.emplace_back(WordOf(Transport::kGateway));
  if (node.transport != Transport::kRnic && node.has_rnic)
    targets.emplace_back(WordOf(Transport::kRnic));
  return Joined(targets);
}

std::string DomainsText(const InventoryNode& node) {
  std::vector<std::string> domains;
  for (const auto& [kind, name] : node.domains) domains.push_back(kind + " " + name);
  return Joined(domains);
}

std::string NodesText(const Inventory& inventory, size_t limit) {
  Table table;
  table.AddColumn("NODE", Column::kCut);
  table.AddColumn("TRANSPORT", Column::kLeft);
  table.AddColumn("CAN HAVE", Column::kLeft);
  table.AddColumn("VOTE", Column::kLeft);
  table.AddColumn("DOMAINS", Column::kCut);
  table.AddColumn("DAEMONS", Column::kCut);
  for (const InventoryNode& node : inventory.nodes) {
    table.AddRow({node.name, std::string(WordOf(node.transport)), TargetsText(node),
                  node.quorum ? "yes" : "-", DomainsText(node), Joined(node.daemons)});
  }
  return table.Text(limit);
}

std::string ClientsText(const Inventory& inventory, size_t limit, bool all_clients) {
  Table table;
  table.AddColumn("CLIENT", Column::kCut);
  table.AddColumn("KIND", Column::kLeft);
  table.AddColumn("NODES", Column::kCut);
  for (const InventoryClient& client : inventory.clients) {
    if (!all_clients && client.kind == ClientKind::kSwitched) continue;
    table.AddRow({client.name, std::string(WordOf(client.kind)),
                  client.nodes.empty() ? "all" : Joined(client.nodes)});
  }
  return table.rows() == 0 ? "" : "\n" + table.Text(limit);
}

}  // namespace

std::string InventoryText(const Inventory& inventory, size_t limit, bool all_clients) {
  std::map<std::string, size_t> transports;
  for (const InventoryNode& node : inventory.nodes)
    ++transports[std::string(WordOf(node.transport))];
  std::map<std::string, size_t> kinds;
  for (const InventoryClient& client : inventory.clients) ++kinds[std::string(WordOf(client.kind))];
  const auto votes = std::ranges::count_if(inventory.nodes, &InventoryNode::quorum);
  std::string text = "cluster  " + inventory.cluster + " (" + inventory.adapter + "), " +
                     std::string(WordOf(inventory.system_class)) + "\n";
  text += "nodes    " + CountsText(transports) + "; " + std::to_string(votes) + " with a vote\n";
  text += "clients  " + CountsText(kinds) + "\n\n";
  return text + NodesText(inventory, limit) + ClientsText(inventory, limit, all_clients);
}

}  // namespace rocegw::cli
