// SPDX-License-Identifier: Apache-2.0
// Programs that would keep the gateway from being replaced. A request in progress cannot be handed
// over, and a program can make one last as long as it likes (userfaultfd, FUSE). So a take-over
// first waits for slow requests while all others are served, and no program prevents it twice.
#include <algorithm>
#include <string>

#include "gateway/session/attach/attach_server.h"

namespace rocegw::session {

const char* AttachServer::Hindrance(const Connection& connection) const {
  if (const char* const reason = connection.session->Unsettled()) return reason;
  if (connection.messages.closing()) return "has requests in its closed ring";
  return connection.messages.socket().has_backlog() ? "does not read its answers" : nullptr;
}

std::string AttachServer::Unsettled() const {
  if (gate_.size() != 0) return "an attach waits for the agent's verdict";
  for (const auto& [id, connection] : connections_) {
    if (const char* const reason = Hindrance(*connection))
      return connection->session->peer().comm + " " + reason;
  }
  return "";
}

void AttachServer::BeginSettling() {
  first_after_begin_ = next_id_;
  std::erase_if(hindered_, [this](uint32_t id) { return !connections_.contains(id); });
  for (auto& [id, connection] : connections_) {
    connection->settles = Hindrance(*connection) != nullptr;
    UpdateInterest(*connection);
  }
}

bool AttachServer::settling() const {
  return std::ranges::any_of(connections_, [this](const auto& entry) {
    return entry.second->settles && Hindrance(*entry.second) != nullptr;
  });
}

std::string AttachServer::EndUnsettled(Unsettling which) {
  std::string prevents;
  const bool all = which == Unsettling::kAll;
  for (auto& [id, connection] : connections_) {
    const ClientSession& session = *connection->session;
    const char* const reason = Hindrance(*connection);
    if (reason == nullptr || session.ending() || (!all && !connection->settles)) continue;
    const MessageSocket& socket = connection->messages.socket();
    const bool silent =
        !session.greeted() || (socket.has_backlog() && !socket.waits_for_descriptors());
    if (silent || id >= first_after_begin_ || hindered_.contains(id)) {
      Drop(*connection, std::string("the gateway is replaced, and the program ") + reason);
    } else {
      hindered_.insert(id);
      const Peer& peer = session.peer();
      prevents = peer.comm + " (pid " + std::to_string(peer.pid) + ") of " + session.pool().name() +
                 " " + reason;
    }
  }
  return prevents;
}

void AttachServer::EndSettling() {
  for (auto& [id, connection] : connections_) {
    connection->settles = false;
    UpdateInterest(*connection);
  }
}

}  // namespace rocegw::session
