// SPDX-License-Identifier: Apache-2.0
// All connections and the ways a message finds its own: by our communication ID, by the peer's (CA
// GUID, communication ID), by the peer's (CA GUID, QPN), and for SIDR by (peer address, request
// ID). Owns the connections. An entry stays through timewait, which is what makes repeated and
// stale requests recognisable. Control thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <unordered_map>
#include <utility>

#include "gateway/cm/cm_config.h"
#include "gateway/cm/connection.h"

namespace rocegw::cm {

class ConnectionTable {
 public:
  // A connection with a fresh, unpredictable communication ID.
  Connection& Create(RandomSource& random);
  // The reference is dead afterwards.
  void Erase(Connection& connection);

  Connection* ByLocalId(uint32_t local_comm_id);
  Connection* ByRemoteId(uint64_t ca_guid, uint32_t remote_comm_id);
  Connection* ByRemoteQpn(uint64_t ca_guid, Qpn remote_qpn);
  // The youngest to that queue pair.
  const Connection* ByPeer(const wire::Gid& peer, Qpn remote_qpn) const;
  Connection* BySidrRequest(const wire::Gid& peer, uint32_t request_id);

  // Enter what the connection now knows of its peer.
  void IndexRemoteId(Connection& connection);
  void IndexRemoteQpn(Connection& connection);
  void IndexSidrRequest(Connection& connection);

  size_t size() const { return by_local_id_.size(); }

  template <typename Visitor>
  void ForEach(Visitor visit) const {
    for (const auto& [id, connection] : by_local_id_) visit(std::as_const(*connection));
  }
  template <typename Visitor>
  void ForEach(Visitor visit) {
    for (const auto& [id, connection] : by_local_id_) visit(*connection);
  }

 private:
  std::unordered_map<uint32_t, std::unique_ptr<Connection>> by_local_id_;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> by_remote_id_;
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> by_remote_qpn_;
  std::map<std::pair<wire::Gid, uint32_t>, uint32_t> by_peer_;  // and its QPN
  std::map<std::pair<wire::Gid, uint32_t>, uint32_t> by_sidr_request_;
};

}  // namespace rocegw::cm
