// SPDX-License-Identifier: Apache-2.0
// Inventory of a storage cluster: its nodes, their failure domains and transports, and its clients.
// An adapter or a person writes it as JSON; it is foreign input, checked once here. Pure; any
// thread.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "controlplane/migration/model/names.h"

namespace rocegw::migration {

struct InventoryNode {
  std::string name;
  std::map<std::string, std::string> domains;  // "rack": "r1"
  std::vector<std::string> daemons;            // "osd.3"
  Transport transport = Transport::kTcp;
  bool quorum = false;  // holds a vote that the cluster cannot lose twice
  bool has_gateway = true;
  bool has_rnic = false;
  std::string gateway_version;  // "1.4.2"; empty: not known
};

struct InventoryClient {
  std::string name;
  std::vector<std::string> nodes;  // nodes that it talks to; empty: all
  ClientKind kind = ClientKind::kUnknown;
};

struct Inventory {
  std::string cluster;
  std::string adapter;
  SystemClass system_class = SystemClass::kDualPath;
  std::vector<InventoryNode> nodes;
  std::vector<InventoryClient> clients;
};

inline constexpr size_t kMostNodes = 10'000;
inline constexpr size_t kMostClients = 100'000;
inline constexpr size_t kMostInventoryBytes = 32 << 20;

// Reads an inventory. `problem`: what is wrong with the text, one line; empty: it was read.
Inventory ReadInventory(std::string_view json, std::string& problem);
std::string InventoryJson(const Inventory& inventory);

// Returns "sha256:..." over everything but the nodes' transports, which a migration itself changes.
std::string HashOf(const Inventory& inventory);

// Returns true if `name` names a cluster, node, client or wave: 1 to 253 letters, digits, and -._:
bool IsName(std::string_view name);

}  // namespace rocegw::migration
