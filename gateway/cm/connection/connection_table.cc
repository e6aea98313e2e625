// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection/connection_table.h"

namespace rocegw::cm {
namespace {

template <typename Map, typename Key>
Connection* Find(ConnectionTable& table, const Map& map, const Key& key) {
  const auto at = map.find(key);
  return at == map.end() ? nullptr : table.ByLocalId(at->second);
}

}  // namespace

Connection& ConnectionTable::Create(RandomSource& random) {
  uint32_t id = 0;
  do {
    id = static_cast<uint32_t>(random.Next() >> 32);
  } while (id == 0 || by_local_id_.contains(id));
  Connection& made = kept_connections_.Insert(by_local_id_, id, Connection())->second;
  made.local_comm_id = id;
  return made;
}

// Erases the entry of this connection; a newer connection may have replaced it.
template <typename Map>
void ConnectionTable::EraseOwn(Map& map, KeptNodes<Map>& kept, const typename Map::key_type& key,
                               uint32_t id) {
  const auto at = map.find(key);
  if (at != map.end() && at->second == id) kept.Erase(map, at);
}

template <typename Map>
void ConnectionTable::Index(Map& map, KeptNodes<Map>& kept, const typename Map::key_type& key,
                            const Connection& connection) {
  const auto at = map.find(key);
  if (at != map.end()) {
    at->second = connection.local_comm_id;
  } else {
    kept.Insert(map, key, connection.local_comm_id);
  }
}

void ConnectionTable::Erase(Connection& connection) {
  const uint32_t id = connection.local_comm_id;
  const wire::Gid& peer = connection.path.destination;
  EraseOwn(by_remote_id_, kept_by_node_,
           {{peer, connection.remote_ca_guid}, connection.remote_comm_id}, id);
  EraseOwn(by_peer_, kept_by_address_, {peer, connection.remote_qpn.value}, id);
  EraseOwn(by_sidr_request_, kept_by_address_, {peer, connection.remote_comm_id}, id);
  kept_connections_.Erase(by_local_id_, by_local_id_.find(id));
}

Connection* ConnectionTable::ByLocalId(uint32_t local_comm_id) {
  const auto at = by_local_id_.find(local_comm_id);
  return at == by_local_id_.end() ? nullptr : &at->second;
}

Connection* ConnectionTable::ByRemoteId(const wire::Gid& peer, uint64_t ca_guid,
                                        uint32_t remote_comm_id) {
  return Find(*this, by_remote_id_, std::pair(Node(peer, ca_guid), remote_comm_id));
}

Connection* ConnectionTable::ByPeerQpn(const wire::Gid& peer, uint64_t ca_guid, Qpn remote_qpn) {
  Connection* const found = Find(*this, by_peer_, std::pair(peer, remote_qpn.value));
  return found != nullptr && found->remote_ca_guid == ca_guid ? found : nullptr;
}

const Connection* ConnectionTable::ByPeer(const wire::Gid& peer, Qpn remote_qpn) const {
  const auto at = by_peer_.find(std::pair(peer, remote_qpn.value));
  return at == by_peer_.end() ? nullptr : &by_local_id_.at(at->second);
}

Connection* ConnectionTable::BySidrRequest(const wire::Gid& peer, uint32_t request_id) {
  return Find(*this, by_sidr_request_, std::pair(peer, request_id));
}

void ConnectionTable::IndexRemoteId(Connection& connection) {
  const Node node(connection.path.destination, connection.remote_ca_guid);
  Index(by_remote_id_, kept_by_node_, {node, connection.remote_comm_id}, connection);
}

void ConnectionTable::IndexRemoteQpn(Connection& connection) {
  const uint32_t qpn = connection.remote_qpn.value;
  Index(by_peer_, kept_by_address_, {connection.path.destination, qpn}, connection);
}

void ConnectionTable::IndexSidrRequest(Connection& connection) {
  Index(by_sidr_request_, kept_by_address_,
        {connection.path.destination, connection.remote_comm_id}, connection);
}

void ConnectionTable::Keep(size_t wanted) {
  kept_connections_.SetWanted(wanted);
  kept_by_node_.SetWanted(wanted);
  kept_by_address_.SetWanted(wanted);
}

bool ConnectionTable::Refill(size_t most) {
  const bool connections = kept_connections_.Refill(by_local_id_, most);
  const bool by_node = kept_by_node_.Refill(by_remote_id_, most);
  const bool by_address = kept_by_address_.Refill(by_peer_, most);
  return connections || by_node || by_address;
}

}  // namespace rocegw::cm
