// SPDX-License-Identifier: Apache-2.0
#include "examples/kv_store/session.h"

#include <sstream>
#include <utility>

namespace kv {
namespace {

// Returns the session of an answered greeting; nullptr: the replica refuses the transport.
std::unique_ptr<Session> Greet(const Place& place, const std::string& wanted, bool fell_back,
                               uint16_t& rdma_port) {
  auto link = ConnectTcp(place.address, place.port, kConnectLimit);
  if (link == nullptr) return nullptr;
  auto session = std::make_unique<Session>(std::move(link), fell_back);
  Message reply;
  if (!session->Ask({.op = Op::kHello, .value = wanted}, reply) || reply.outcome != Outcome::kDone)
    return nullptr;
  std::istringstream words(reply.value);
  std::string word;
  words >> word;
  if (word == "rdma") words >> rdma_port;
  return session;
}

}  // namespace

std::unique_ptr<Session> Session::Connect(const Place& place, std::optional<Transport> wanted,
                                          bool fallback) {
  uint16_t rdma_port = 0;
  auto session = Greet(place, wanted.has_value() ? WordOf(*wanted) : "", false, rdma_port);
  if (session == nullptr || rdma_port == 0) return session;
  session.reset();
  if (auto link = ConnectRdma(place.address, rdma_port, kConnectLimit))
    return std::make_unique<Session>(std::move(link), false);
  if (!fallback) return nullptr;
  return Greet(place, "tcp", true, rdma_port);
}

bool Session::Ask(const Message& request, Message& reply, Milliseconds limit) {
  std::string bytes;
  if (!link_->Send(Encode(request), limit) || !link_->Receive(bytes, limit)) return false;
  auto read = Decode(bytes);
  if (!read.has_value() || read->op != request.op) return false;
  reply = std::move(*read);
  moved_ = moved_ || reply.moved;
  return true;
}

}  // namespace kv
