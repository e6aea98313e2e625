// SPDX-License-Identifier: Apache-2.0
#include "controlplane/migration/model/inventory.h"

#include <algorithm>
#include <cctype>
#include <set>

#include "controlplane/migration/model/hash.h"
#include "controlplane/migration/model/json_fields.h"

namespace rocegw::migration {
namespace {

using Json = nlohmann::json;

InventoryNode ReadNode(const Json& object, const std::string& where, std::string& problem) {
  JsonFields fields(object, where, problem);
  InventoryNode node;
  node.name = fields.Name("name");
  node.domains = fields.Labels("domains");
  node.daemons = fields.Names("daemons", 1024);
  node.transport = fields.Word("transport", Transport::kTcp);
  node.quorum = fields.Flag("quorum", false);
  node.has_gateway = fields.Flag("gateway", true);
  node.has_rnic = fields.Flag("rnic", false);
  node.gateway_version = fields.Text("gateway_version", 64);
  fields.Finish();
  return node;
}

InventoryClient ReadClient(const Json& object, const std::string& where, std::string& problem) {
  JsonFields fields(object, where, problem);
  InventoryClient client;
  client.name = fields.Name("name");
  client.nodes = fields.Names("nodes", kMostNodes);
  client.kind = fields.Word("kind", ClientKind::kUnknown);
  fields.Finish();
  return client;
}

Json NodeJson(const InventoryNode& node, bool with_transport) {
  Json json = {{"name", node.name},
               {"domains", node.domains},
               {"daemons", node.daemons},
               {"quorum", node.quorum},
               {"gateway", node.has_gateway},
               {"rnic", node.has_rnic},
               {"gateway_version", node.gateway_version}};
  if (with_transport) json["transport"] = WordOf(node.transport);
  return json;
}

Json ToJson(const Inventory& inventory, bool with_transport) {
  Json nodes = Json::array();
  for (const InventoryNode& node : inventory.nodes) nodes.push_back(NodeJson(node, with_transport));
  Json clients = Json::array();
  for (const InventoryClient& client : inventory.clients) {
    clients.push_back(
        {{"name", client.name}, {"nodes", client.nodes}, {"kind", WordOf(client.kind)}});
  }
  return {{"cluster", inventory.cluster},
          {"adapter", inventory.adapter},
          {"class", WordOf(inventory.system_class)},
          {"nodes", std::move(nodes)},
          {"clients", std::move(clients)}};
}

std::string CheckNames(const Inventory& inventory) {
  std::set<std::string_view> nodes;
  for (const InventoryNode& node : inventory.nodes) {
    if (!nodes.insert(node.name).second) return "node " + node.name + " is listed twice";
  }
  std::set<std::string_view> clients;
  for (const InventoryClient& client : inventory.clients) {
    if (!clients.insert(client.name).second) return "client " + client.name + " is listed twice";
    for (const std::string& node : client.nodes) {
      if (!nodes.contains(node))
        return "client " + client.name + " names node " + node + ", which is not listed";
    }
  }
  return {};
}

}  // namespace

bool IsName(std::string_view name) {
  if (name.empty() || name.size() > 253) return false;
  return std::ranges::all_of(name, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_' ||
           c == ':';
  });
}

Inventory ReadInventory(std::string_view json, std::string& problem) {
  problem.clear();
  Inventory inventory;
  const Json document = ParseJsonObject(json, kMostInventoryBytes, problem);
  if (!problem.empty()) return {};
  JsonFields fields(document, "", problem);
  inventory.cluster = fields.Name("cluster");
  inventory.adapter = fields.Name("adapter");
  inventory.system_class = fields.Word("class", SystemClass::kDualPath);
  if (const Json* const nodes = fields.Array("nodes", kMostNodes)) {
    for (const Json& node : *nodes) {
      const std::string where = "nodes[" + std::to_string(inventory.nodes.size()) + "]";
      inventory.nodes.push_back(ReadNode(node, where, problem));
      if (!problem.empty()) return {};
    }
  }
  if (const Json* const clients = fields.Array("clients", kMostClients)) {
    for (const Json& client : *clients) {
      const std::string where = "clients[" + std::to_string(inventory.clients.size()) + "]";
      inventory.clients.push_back(ReadClient(client, where, problem));
      if (!problem.empty()) return {};
    }
  }
  fields.Finish();
  if (problem.empty() && inventory.nodes.empty()) problem = "no nodes";
  if (problem.empty()) problem = CheckNames(inventory);
  return problem.empty() ? inventory : Inventory();
}

std::string InventoryJson(const Inventory& inventory) {
  return ToJson(inventory, true).dump(2) + "\n";
}

std::string HashOf(const Inventory& inventory) { return HashText(ToJson(inventory, false).dump()); }

}  // namespace rocegw::migration
