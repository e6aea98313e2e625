// SPDX-License-Identifier: Apache-2.0
// Table of all connections with the indices by which messages find them: our communication ID, the
// peer's (address, CA GUID, communication ID), the peer's (address, QPN), and for SIDR (address,
// request ID). The address is part of each key of the peer: a claim from another address neither
// finds nor hides a connection. Owns the connections. An entry stays through timewait, so repeated
// and stale requests are recognised. Control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "gateway/base/containers/kept_nodes.h"
#include "gateway/cm/cm_config.h"
#include "gateway/cm/connection/connection.h"

namespace rocegw::hand_over {
class StateStream;
}

namespace rocegw::cm {

class ConnectionTable {
 public:
  // Creates a connection with a fresh, unpredictable communication ID.
  Connection& Create(RandomSource& random);
  // Destroys the connection; the reference is invalid afterwards.
  void Erase(Connection& connection);

  Connection* ByLocalId(uint32_t local_comm_id);
  Connection* ByRemoteId(const wire::Gid& peer, uint64_t ca_guid, uint32_t remote_comm_id);
  // Returns the newest connection with that queue pair of that node at this address.
  Connection* ByPeerQpn(const wire::Gid& peer, uint64_t ca_guid, Qpn remote_qpn);
  // Returns the newest connection to that queue pair.
  const Connection* ByPeer(const wire::Gid& peer, Qpn remote_qpn) const;
  Connection* BySidrRequest(const wire::Gid& peer, uint32_t request_id);

  // Adds the connection to the index by what it now knows of its peer.
  void IndexRemoteId(Connection& connection);
  void IndexRemoteQpn(Connection& connection);
  void IndexSidrRequest(Connection& connection);

  // `version`: of the record ConnectionManager.
  void HandOver(hand_over::StateStream& state, uint16_t version);

  size_t size() const { return by_local_id_.size(); }

  // Keeps memory for so many further connections, without datagram services (kept_nodes.h).
  void Keep(size_t wanted);
  bool Refill(size_t most);

  template <typename Visitor>
  void ForEach(Visitor visit) const {
    for (const auto& [id, connection] : by_local_id_) visit(connection);
  }
  template <typename Visitor>
  void ForEach(Visitor visit) {
    for (auto& [id, connection] : by_local_id_) visit(connection);
  }

 private:
  // Maps (node, number) to our communication ID.
  using Node = std::pair<wire::Gid, uint64_t>;  // address, CA GUID
  using ByNode = std::map<std::pair<Node, uint32_t>, uint32_t>;
  using ByAddress = std::map<std::pair<wire::Gid, uint32_t>, uint32_t>;
  using Connections = std::unordered_map<uint32_t, Connection>;

  template <typename Map>
  void Index(Map& map, KeptNodes<Map>& kept, const typename Map::key_type& key,
             const Connection& connection);
  template <typename Map>
  void EraseOwn(Map& map, KeptNodes<Map>& kept, const typename Map::key_type& key, uint32_t id);

  Connections by_local_id_;
  ByNode by_remote_id_;
  ByAddress by_peer_;  // peer address and its QPN
  ByAddress by_sidr_request_;
  KeptNodes<Connections> kept_connections_;
  KeptNodes<ByNode> kept_by_node_;
  KeptNodes<ByAddress> kept_by_address_;
};

}  // namespace rocegw::cm
