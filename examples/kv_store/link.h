// SPDX-License-Identifier: Apache-2.0
// A connection that carries whole messages, over TCP or over an RC queue pair. One thread at a
// time. Each side has at most one message under way, so that two receive buffers are enough flow
// control.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace kv {

using Milliseconds = std::chrono::milliseconds;
using Clock = std::chrono::steady_clock;

enum class Transport : uint8_t { kTcp, kRdma };

inline const char* WordOf(Transport transport) {
  return transport == Transport::kTcp ? "tcp" : "rdma";
}

class Link {
 public:
  virtual ~Link() = default;
  // Sends bytes, at most kLongestMessage. Returns false if the link is broken.
  virtual bool Send(const std::string& bytes, Milliseconds limit) = 0;
  // Receives one message. Returns false if none came in time or the link is broken: close it.
  virtual bool Receive(std::string& bytes, Milliseconds limit) = 0;
  virtual Transport transport() const = 0;
};

// Takes an accepted connection, on a thread that the listener must not wait for.
using OnLink = std::function<void(std::unique_ptr<Link>)>;

std::unique_ptr<Link> ConnectTcp(const std::string& address, uint16_t port, Milliseconds limit);
std::unique_ptr<Link> ConnectRdma(const std::string& address, uint16_t port, Milliseconds limit);

// Listens for TCP connections and hands each to `on_link`. Returns false if it cannot listen; else
// never.
bool ServeTcp(const std::string& address, uint16_t port, const OnLink& on_link);

}  // namespace kv
