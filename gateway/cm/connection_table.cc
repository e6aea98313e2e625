// SPDX-License-Identifier: Apache-2.0
#include "gateway/cm/connection_table.h"

namespace rocegw::cm {
namespace {

template <typename Map, typename Key>
Connection* Find(ConnectionTable& table, const Map& map, const Key& key) {
  const auto at = map.find(key);
  return at == map.end() ? nullptr : table.ByLocalId(at->second);
}

// Another connection may have taken the key since.
template <typename Map, typename Key>
void EraseOwn(Map& map, const Key& key, uint32_t local_comm_id) {
  const auto at = map.find(key);
  if (at != map.end() && at->second == local_comm_id) map.erase(at);
}

}  // namespace

Connection& ConnectionTable::Create(RandomSource& random) {
  uint32_t id = 0;
  do {
    id = static_cast<uint32_t>(random.Next() >> 32);
  } while (id == 0 || by_local_id_.contains(id));
  auto& slot = by_local_id_[id];
  slot = std::make_unique<Connection>();
  slot->local_comm_id = id;
  return *slot;
}

void ConnectionTable::Erase(Connection& connection) {
  const uint32_t id = connection.local_comm_id;
  EraseOwn(by_remote_id_, std::pair(connection.remote_ca_guid, connection.remote_comm_id), id);
  EraseOwn(by_remote_qpn_, std::pair(connection.remote_ca_guid, connection.remote_qpn.value), id);
  EraseOwn(by_peer_, std::pair(connection.path.destination, connection.remote_qpn.value), id);
  EraseOwn(by_sidr_request_, std::pair(connection.path.destination, connection.remote_comm_id), id);
  by_local_id_.erase(id);
}

Connection* ConnectionTable::ByLocalId(uint32_t local_comm_id) {
  const auto at = by_local_id_.find(local_comm_id);
  return at == by_local_id_.end() ? nullptr : at->second.get();
}

Connection* ConnectionTable::ByRemoteId(uint64_t ca_guid, uint32_t remote_comm_id) {
  return Find(*this, by_remote_id_, std::pair(ca_guid, remote_comm_id));
}

Connection* ConnectionTable::ByRemoteQpn(uint64_t ca_guid, Qpn remote_qpn) {
  return Find(*this, by_remote_qpn_, std::pair(ca_guid, remote_qpn.value));
}

const Connection* ConnectionTable::ByPeer(const wire::Gid& peer, Qpn remote_qpn) const {
  const auto at = by_peer_.find(std::pair(peer, remote_qpn.value));
  return at == by_peer_.end() ? nullptr : by_local_id_.at(at->second).get();
}

Connection* ConnectionTable::BySidrRequest(const wire::Gid& peer, uint32_t request_id) {
  return Find(*this, by_sidr_request_, std::pair(peer, request_id));
}

void ConnectionTable::IndexRemoteId(Connection& connection) {
  by_remote_id_[{connection.remote_ca_guid, connection.remote_comm_id}] = connection.local_comm_id;
}

void ConnectionTable::IndexRemoteQpn(Connection& connection) {
  by_remote_qpn_[{connection.remote_ca_guid, connection.remote_qpn.value}] =
      connection.local_comm_id;
  by_peer_[{connection.path.destination, connection.remote_qpn.value}] = connection.local_comm_id;
}

void ConnectionTable::IndexSidrRequest(Connection& connection) {
  by_sidr_request_[{connection.path.destination, connection.remote_comm_id}] =
      connection.local_comm_id;
}

}  // namespace rocegw::cm
