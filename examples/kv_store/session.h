// SPDX-License-Identifier: Apache-2.0
// A link to a replica over the transport that the replica offers, and requests on it. One thread at
// a time.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "examples/kv_store/link.h"
#include "examples/kv_store/message.h"
#include "examples/kv_store/settings.h"

namespace kv {

constexpr Milliseconds kConnectLimit(3000);
constexpr Milliseconds kReplyLimit(3000);

class Session {
 public:
  // Asks a replica over TCP which transport it offers, and connects. `wanted`: the transport to ask
  // for; nullopt: what the replica offers. `fallback`: use TCP if RDMA does not connect. Returns
  // nullptr if nothing connects.
  static std::unique_ptr<Session> Connect(const Place& place, std::optional<Transport> wanted,
                                          bool fallback);

  explicit Session(std::unique_ptr<Link> link, bool fell_back)
      : link_(std::move(link)), fell_back_(fell_back) {}

  // Returns false if the session is broken: make another one.
  bool Ask(const Message& request, Message& reply, Milliseconds limit = kReplyLimit);

  Transport transport() const { return link_->transport(); }
  // Returns true if RDMA was offered and TCP is used.
  bool fell_back() const { return fell_back_; }
  // Returns true after the replica said that it offers another transport.
  bool moved() const { return moved_; }

 private:
  std::unique_ptr<Link> link_;
  bool fell_back_;
  bool moved_ = false;
};

}  // namespace kv
